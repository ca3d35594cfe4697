//! A table's design: the [`document`] that describes it, and its [`review`].
//!
//! *Keeps true*: the document matches the code. The keys come from the declarations, the requests from the patterns,
//! the prices from the store's model, and the bookkeeping items from the code that stores them. A change of any of
//! these changes the page's text.
//!
//! All functions take a [`Design`] of any table.

pub mod asked;
pub mod cost;
pub mod document;
pub mod followed;
pub mod price;
pub mod review;
pub mod samples;
pub mod sentence;

use derive::{catalogue::Catalogue, schema::Schema};
use engine::bookkeeping::Kept;

use crate::{asked::PatternRequests, review::FindingAnswer, samples::Samples};

/// A table, with the known facts about its use.
#[derive(Clone, Debug)]
pub struct Design {
    /// Keys, indexes and entities.
    pub schema: Schema,
    /// The derivations.
    pub catalogue: Catalogue,
    /// An item of each entity.
    pub samples: Samples,
    /// The access patterns; empty if they are unknown.
    pub patterns: Vec<PatternRequests>,
    /// The items that Ripple keeps for itself.
    pub kept: Vec<Kept>,
    /// The answers to findings of the review.
    pub answers: Vec<FindingAnswer>,
}

impl Design {
    /// A design from the declarations alone. Its patterns are the declared reads.
    #[must_use]
    pub fn declared(schema: Schema, catalogue: Catalogue) -> Self {
        let (samples, kept) =
            (Samples::made_up(&schema).as_read_by(&schema, &catalogue), engine::bookkeeping::kept(&schema.layout));
        let patterns = schema.accesses.iter().map(|access| PatternRequests::declared(&schema, access)).collect();
        Self { patterns, schema, catalogue, samples, kept, answers: Vec::new() }
    }

    /// True if the entities are rows of a table's design, with ids of their own. Entities of a manifest have only
    /// names.
    pub(crate) fn has_rows(&self) -> bool {
        self.schema.entities().any(|entity| entity.id != entity.name)
    }
}
