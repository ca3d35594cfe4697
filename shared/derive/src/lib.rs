//! Derived data as pure functions: what is derived from what, which writes a change requires, and what everything
//! should be.
//!
//! There is no clock, no randomness, no I/O and no async here. The engine reads what this crate requests, and sends
//! what this crate decides.
//!
//! - A [`catalogue`] is a list of [derivations](derivation), each a declaration of one of the [`kinds`].
//! - [`plan`] gives the [effects](effect) of a [`change`].
//! - [`refresh`] gives the correct state of an item, once a refresh request names it.
//! - [`access`] declares the reads of the application, which the engine does not use.
//! - [`whole`] gives all derived data, from the application's items alone. It never calls the other two.

pub mod access;
pub mod bucket;
pub mod catalogue;
pub mod change;
pub mod claims;
pub mod clock;
pub mod coalesce;
pub mod condition;
pub mod declaration;
pub mod definition;
pub mod derivation;
pub mod derived;
pub mod effect;
pub mod expression;
pub mod family;
pub mod fit;
#[cfg(test)]
mod fixture;
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
