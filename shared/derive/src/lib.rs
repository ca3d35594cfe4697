//! Derived data as values: what is derived from what, which writes follow from a change, and what everything should be.
//!
//! Everything here is pure: no clock, no randomness, no I/O, no async. The engine fetches what is asked for here and
//! sends what is decided here.
//!
//! - A [`catalogue`] is a list of [derivations](derivation), each a declaration of one of the [`kinds`].
//! - [`plan`] says what a [`change`] asks for, as [effects](effect).
//! - [`refresh`] says what an item should be, once a refresh request names it.
//! - [`whole`] says what all derived data should be, from the ground alone. It never calls the other two.

pub mod bucket;
pub mod catalogue;
pub mod change;
pub mod claims;
pub mod coalesce;
pub mod collection;
pub mod condition;
pub mod declaration;
pub mod definition;
pub mod derivation;
pub mod derived;
pub mod effect;
pub mod family;
pub mod fit;
#[cfg(test)]
mod fixture;
pub mod flaw;
pub mod gathering;
pub mod guard;
pub mod kind;
pub mod kinds;
pub mod outline;
pub mod part;
pub mod plan;
pub mod position;
pub mod query;
pub mod refresh;
pub mod schema;
pub mod sources;
pub mod tally;
pub mod whole;
pub mod write;
