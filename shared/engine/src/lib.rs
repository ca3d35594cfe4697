//! The engine: takes a batch of stream records and brings derived data in step.
//!
//! It is given a [`Schema`](derive::schema::Schema), a [`Catalogue`](derive::catalogue::Catalogue) and a
//! [`Store`](store::Store) as values and knows no entity and no derivation. Lambda, the command line and the tests
//! call the same [`Engine::handle`](batch::Engine::handle).
//!
//! A batch goes through these steps:
//!
//! 1. [`event`]: it is cut into raw records. [`record`]: they are decoded one by one; one that does not decode stops
//!    nobody.
//! 2. Planning, a record at a time. A panic is caught, here and where an item is looked at.
//! 3. [`brake`]: when much cannot be read, nothing is applied.
//! 4. [`additive`]: effects that must count once go in through the [`ledger`].
//! 5. [`looking`]: items whose bell rang are looked at, and written where they differ. [`fan_out`]: where they are many,
//!    a [`job`] does it page by page.
//! 6. [`park`]: what can never be applied is kept, with its cause. [`recount`]: what is refused is listed; and
//!    [`listing`]: so are items that cannot be read.
//! 7. [`contention`]: conflicts and throttles are counted; [`figures`]: so is what was done, by derivation. [`loss`]: a
//!    batch that comes so late that others may be lost leaves a mark.
//! 8. The [response](batch::Handled) names the lowest record that is not done.
//!
//! The named [steps](protocol::ProtocolStep) of the protocol, and the [guards](derive::guard::Guard), say which anomaly each
//! prevents. [`bookkeeping`] shows each item that is kept of all this. For the operator there are [`lists`], [`jobs`], [`redrive`], [`replay`] and [`inspect`];
//! on a schedule there is the [`sweep`]. What the functions have, and what of it is filled, is in the [`registry`].

pub mod account;
mod attribute;
pub mod backoff;
pub mod batch;
pub mod bookkeeping;
pub mod clock;
pub mod contention;
mod context;
pub mod count;
pub mod counters;
pub mod fan_out;
#[cfg(test)]
mod fixture;
pub mod inspect;
pub mod jobs;
pub mod ledger;
pub mod look;
#[cfg(feature = "mutants")]
mod mutants;
pub mod park;
mod partition;
pub mod protocol;
pub mod record;
pub mod registry;
mod sort_key;
pub mod sweep;
