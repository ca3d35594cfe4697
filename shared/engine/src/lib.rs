//! The engine: handles batches of stream records, and keeps derived data correct.
//!
//! It receives a [`Schema`](derive::schema::Schema), a [`Catalogue`](derive::catalogue::Catalogue) and a
//! [`Store`](store::Store) as values, and its code contains no entity and no derivation. Lambda, the command line and
//! the tests call the same [`Engine::handle`](batch::Engine::handle).
//!
//! Each part of the engine has one job over one `Context`. The parts depend in one direction, and the test
//! `dependencies_run_one_way` has their order. The main ones, the lowest first: [`record`], [`ledger`], [`account`],
//! `context`, [`park`], `plan`, [`count`], [`job`], [`look`], [`fan_out`], [`jobs`] and [`batch`]. Above them are the
//! parts that run apart from a batch: [`redrive`](mod@redrive), [`sweep`] and [`inspect`]. A batch goes through these
//! steps:
//!
//! 1. [`record`]: divides the event into raw records, and decodes each alone. One that does not decode blocks no other.
//! 2. `plan`: plans each record alone. If much is unreadable, the [brake](mod@batch::brake), a circuit breaker, stops
//!    the batch, and nothing is applied.
//! 3. [`count`]: applies effects that must count once, through the [`ledger`].
//! 4. [`look`]: refreshes the requested items: compares them with their definition, and writes those that differ.
//!    [`fan_out`]: if they are many, a [job](job::Job) refreshes them page by page. Unreadable items are
//!    [listed](look::listing).
//! 5. [`park`]: stores changes that can never be applied, with their cause. Refused changes are
//!    [listed](count::RECOUNT).
//! 6. [`account`]: reports what was done, what it cost, and what is not done, and counts conflicts and throttles.
//!    [`loss`]: a batch that arrives so late that other records may be lost leaves a mark.
//! 7. The [response](batch::Handled) names the lowest record that is not done.
//!
//! The named [steps](protocol::ProtocolStep) of the protocol and the [guards](derive::guard::Guard) state the anomaly
//! that each prevents. [`bookkeeping`] has a sample of each of the service's own items. [`inspect`] serves an
//! operator's tools, such as orders to [`jobs`]; [`redrive`](mod@redrive) applies parked changes, and handles records
//! again (a replay); the [`sweep`] runs on a schedule. The [`registry`] has the
//! functions' derivations and whether they are filled; an instance writes it by [`publishing`].

pub mod account;
mod attribute;
pub mod backoff;
pub mod batch;
pub mod bookkeeping;
pub mod clock;
mod context;
mod corrections;
pub mod count;
pub mod fan_out;
pub mod input;
pub mod inspect;
pub mod job;
pub mod jobs;
pub mod ledger;
pub mod limits;
pub mod look;
pub mod loss;
pub mod park;
mod plan;
pub mod protocol;
pub mod publishing;
pub mod reading;
pub mod record;
pub mod redrive;
pub mod registry;
mod requests;
pub mod sweep;

/// What the engine's own tests share.
#[cfg(test)]
mod fixture {
    use keys::layout::Layout;

    /// A table with the shipped names and no indexes.
    pub(crate) fn layout() -> Layout {
        Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") }
    }
}
