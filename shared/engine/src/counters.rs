//! The target of a count, and the sum over all shards of its counter.

use derive::{derived::Items, schema::Schema, sources::sums, tally::Tally};
use keys::key::Key;

/// A count, identified by its derivation and its item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Name of the derivation.
    pub derivation: String,
    /// The item with the count; for a roll-up, the bucket.
    pub item: Key,
}

/// The sum over the shards of one counter.
#[must_use]
pub fn added_up(schema: &Schema, shards: &Items) -> Tally {
    let mut all = Tally::default();
    for tally in sums(schema, shards.values()).values() {
        all.add(tally);
    }
    all
}
