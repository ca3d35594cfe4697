//! The counters of a target, in all their shards.

use derive::{derivation::Items, query::Query, refresh::sums, schema::Schema, tally::Tally};
use keys::{
    counter::{self, CounterKey},
    item::Item,
};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    count::recount::Target,
};

impl<S: Store> Engine<S> {
    /// The counters of a target: all shards that there are.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn counters_of(&self, target: &Target, patience: Patience<'_>) -> Result<Items, GaveUp> {
        let Target { derivation, item } = target;
        let query = Query::prefix(None, &item.pk, counter::derivation_prefix(item, derivation));
        let shards = self.pages(&query, patience).await?;
        let is_of = |it: &CounterKey| it.target == *item && it.derivation == *derivation;
        let of = |shard: Item| {
            let key = self.schema.layout.key(&shard)?;
            CounterKey::parse(&key).filter(is_of).map(|_| (key, shard))
        };
        Ok(shards.into_iter().filter_map(of).collect())
    }
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
