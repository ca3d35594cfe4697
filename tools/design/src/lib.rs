//! A table's design, from the values that make its keys and its requests: the [`document`] that shows it, and
//! the [`review`] that a good reviewer would do; and the [`filters`] of the records that each function needs.
//!
//! *Keeps true*: what the document says is what is done. Keys are those of the entities' own declarations, requests are
//! those that the patterns really make, prices are what the store's model asks for them, and the service's own items
//! are made by the code that keeps them. So the page cannot be out of date without its text being another.
//!
//! Everything takes a [`Design`], of any table. Only [`shipped`] names the one that comes with this service.

pub mod asked;
pub mod document;
pub mod filters;
pub mod followed;
pub mod price;
pub mod review;
pub mod samples;
pub mod shipped;
mod template;

use derive::{catalogue::Catalogue, schema::Schema};
use engine::bookkeeping::Kept;

use crate::{asked::PatternRequests, review::answer::FindingAnswer, samples::Samples};

/// A table, with all that is known of its use.
#[derive(Clone, Debug)]
pub struct Design {
    /// How it is called, and what its items look like.
    pub schema: Schema,
    /// What is derived in it.
    pub catalogue: Catalogue,
    /// An item of each entity.
    pub samples: Samples,
    /// What is asked of it; empty where that is not known.
    pub patterns: Vec<PatternRequests>,
    /// What the service keeps for itself.
    pub kept: Vec<Kept>,
    /// What was answered to findings of the review.
    pub answers: Vec<FindingAnswer>,
}

impl Design {
    /// The design of a table of which nothing but its declarations is known.
    #[must_use]
    pub fn declared(schema: Schema, catalogue: Catalogue) -> Self {
        let (samples, kept) = (Samples::made_up(&schema), engine::bookkeeping::kept(&schema.layout));
        Self { schema, catalogue, samples, patterns: Vec::new(), kept, answers: Vec::new() }
    }
}
