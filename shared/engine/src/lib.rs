//! The engine: takes a batch of stream records and brings derived data in step.
//!
//! It is given a [`Schema`](derive::schema::Schema), a [`Catalogue`](derive::catalogue::Catalogue) and a
//! [`Store`](store::Store) as values and knows no entity and no derivation. Lambda, the command line and the tests
//! call the same [`Engine::handle`](batch::Engine::handle).
//!
//! Each part of the engine has one job over one `Context`. The parts depend in one direction, and the test
//! `dependencies_run_one_way` has their order. The main ones, the lowest first: [`record`], [`ledger`], [`account`],
//! `context`, [`park`], `plan`, [`count`], [`job`], [`look`], [`fan_out`], [`jobs`] and [`batch`]. What runs apart from
//! a batch is above it: [`redrive`](mod@redrive), [`sweep`] and [`inspect`]. A batch goes through these steps:
//!
//! 1. [`record`]: the event is cut into raw records, which are decoded one by one. One that does not decode stops nobody.
//! 2. `plan`: each record is planned by itself. When much cannot be read, the [brake](mod@batch::brake) is put on: nothing
//!    is applied.
//! 3. [`count`]: effects that must count once go in through the [`ledger`].
//! 4. [`look`]: requested items are refreshed: compared with their definition, and written where they differ.
//!    [`fan_out`]: where they are many, a [job](job::Job) does it page by page. An item that cannot be read is
//!    [listed](look::listing).
//! 5. [`park`]: what can never be applied is kept, with its cause. A change that is refused is
//!    [listed](count::recount).
//! 6. [`account`]: what was done, what it cost, and what is not done. [`contention`]: conflicts and throttles.
//!    [`loss`]: a batch that comes so late that others may be lost leaves a mark.
//! 7. The [response](batch::Handled) names the lowest record that is not done.
//!
//! The named [steps](protocol::ProtocolStep) of the protocol, and the [guards](derive::guard::Guard), say which anomaly
//! each prevents. [`bookkeeping`] shows each item that is kept of all this. [`inspect`] has what operators ask of an
//! engine, such as orders to [`jobs`]; [`redrive`](mod@redrive) applies what was parked, and its
//! [`replay`](redrive::replay) takes records again; on a schedule there is the [`sweep`]. What the functions have, and
//! what of it is filled, is in the [`registry`]; an instance writes it by [`publishing`].

pub mod account;
mod attribute;
pub mod backoff;
pub mod batch;
pub mod bookkeeping;
pub mod clock;
pub mod contention;
mod context;
mod corrections;
pub mod count;
pub mod counters;
pub mod fan_out;
#[cfg(test)]
mod fixture;
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
