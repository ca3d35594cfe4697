//! The counters of a target, in all their shards.

use derive::{derived::Items, schema::Schema, sources::sums, tally::Tally};

/// What the shards of one counter come to.
#[must_use]
pub fn added_up(schema: &Schema, shards: &Items) -> Tally {
    let mut all = Tally::default();
    for tally in sums(schema, shards.values()).values() {
        all.add(tally);
    }
    all
}
