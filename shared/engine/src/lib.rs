//! The engine: takes a batch of stream records and brings derived data in step.
//!
//! It is given a [`Schema`](derive::schema::Schema), a [`Catalogue`](derive::catalogue::Catalogue) and a
//! [`Store`](store::Store) as values and knows no entity and no derivation. Lambda, the command line and the tests
//! call the same [`Engine::handle`](batch::Engine::handle).
//!
//! A batch goes through these steps:
//!
//! 1. [`record`]: records are decoded one by one; one that does not decode stops nobody.
//! 2. Planning, a record at a time. A panic is caught, here and where an item is looked at.
//! 3. [`additive`]: effects that must count once go in through the [`ledger`].
//! 4. [`looking`]: items whose bell rang are looked at, and written where they differ.
//! 5. [`park`]: what can never be applied is kept, with its cause. [`listing`]: so are items that cannot be read.
//! 6. The [response](batch::Handled) names the lowest record that is not done.

pub mod account;
pub mod additive;
pub mod backoff;
pub mod batch;
mod bells;
mod caught;
pub mod clock;
pub mod ledger;
pub mod listing;
pub mod looking;
mod own_image;
pub mod park;
pub mod record;
pub mod verify;
