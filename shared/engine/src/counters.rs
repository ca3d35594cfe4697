//! A count, by what it is about, and its counters in all their shards.

use derive::{derived::Items, schema::Schema, sources::sums, tally::Tally};
use keys::key::Key;

/// A count that a refused change was about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Name of the derivation.
    pub derivation: String,
    /// The item that the count is about; of a roll-up the bucket.
    pub item: Key,
}

/// What the shards of one counter come to.
#[must_use]
pub fn added_up(schema: &Schema, shards: &Items) -> Tally {
    let mut all = Tally::default();
    for tally in sums(schema, shards.values()).values() {
        all.add(tally);
    }
    all
}
