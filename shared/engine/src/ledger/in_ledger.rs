//! Is a record of the stream in? Asked by who has read the record beside the functions, such as a verification.
//!
//! *Keeps true*: a record that is said to be in is in the counters that are read after the answer, or it is parked. What
//! the ledger has no proof of is said not to be in, whatever the reason.
//!
//! | ledger | a record is in when |
//! |---|---|
//! | receipts | its receipt is there |
//! | [`watermarks`](super::watermarks) | each counter that is asked for has passed it, or it is parked as an exception of its shard |

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{kind::Shape, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::{Engine, planning::lane_seed},
    count::CountsOf,
    counters::Target,
    input::Batch,
    ledger::{
        LedgerKind,
        exceptions::Exceptions,
        receipt_key,
        shard::{ShardItem, shard_key},
        watermarks::{Sequence, has_passed, mark_name, mark_of},
    },
    park,
    publishing::Publisher,
    record::{Decoded, event::Lane},
};

/// A record that counts somewhere.
#[derive(Clone, Debug)]
pub struct CountedRecord {
    id: String,
    sequence: Option<Sequence>,
    lane: Arc<Lane>,
    counts: CountsOf,
}

impl CountedRecord {
    /// Where it counts.
    #[must_use]
    pub fn counts(&self) -> &CountsOf {
        &self.counts
    }
}

impl<S: Store> Engine<S> {
    /// What a record of a lane counts as the functions do it; `None` if it counts nothing. A record that cannot be planned
    /// may count at every target that its key leaves open.
    #[must_use]
    pub fn counted(&self, record: &str, lane: &Arc<Lane>) -> Option<CountedRecord> {
        let record = Decoded::of(&self.context.schema.layout, record);
        let id = match &record.change {
            Ok(change) => change.id.clone(),
            Err(_) => park::id(&record.head, record.text),
        };
        let sequence = record.head.sequence_number.as_deref().and_then(Sequence::parse);
        let patience = Patience::new(self.context.clock.as_ref(), 0);
        let counts = CountsOf::of(&self.context, &Batch::parked(record, &Lane::default(), patience));
        (!counts.is_none()).then(|| CountedRecord { id, sequence, lane: Arc::clone(lane), counts })
    }

    /// Those of these records that are not proven to be in, as far as targets count that are asked for. They are read
    /// together.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the ledger or a counter cannot be read.
    pub async fn not_in(
        &self,
        records: Vec<CountedRecord>,
        is_asked: impl Fn(&Target) -> bool,
        patience: Patience<'_>,
    ) -> Result<Vec<CountedRecord>, GaveUp> {
        match self.context.ledger {
            LedgerKind::Receipts => {
                let held = self.all(Table::Ledger, records.iter().map(|it| receipt_key(&it.id)), patience).await?;
                Ok(records.into_iter().filter(|record| !held.contains_key(&receipt_key(&record.id))).collect())
            }
            LedgerKind::Watermarks => self.not_passed(records, is_asked, patience).await,
        }
    }

    async fn not_passed(
        &self,
        records: Vec<CountedRecord>,
        is_asked: impl Fn(&Target) -> bool,
        patience: Patience<'_>,
    ) -> Result<Vec<CountedRecord>, GaveUp> {
        let shards = records.iter().filter_map(|record| shard_key(&record.lane));
        let shards = self.all(Table::Ledger, shards, patience).await?;
        let shards: BTreeMap<Key, ShardItem> =
            shards.into_iter().map(|(key, item)| (key, ShardItem::of(Some(&item)))).collect();
        let mut exceptions = BTreeMap::new();
        for (key, _) in shards.iter().filter(|(_, shard)| shard.has_exceptions()) {
            let of_shard = records.iter().filter(|record| shard_key(&record.lane).as_ref() == Some(key));
            let sequences = of_shard.map(|record| record.sequence);
            exceptions.insert(key.clone(), Exceptions::read(&self.context, key, sequences, patience).await?);
        }
        let excepts = |record: &CountedRecord, counter: Option<&Key>| {
            let exceptions = shard_key(&record.lane).and_then(|key| exceptions.get(&key));
            exceptions.is_some_and(|exceptions| exceptions.excepts(&record.id, counter))
        };
        let mut open = Vec::new();
        let mut counting = Vec::new();
        for record in records {
            // No change of a stream shard is counted before the shard has its item.
            let shard = shard_key(&record.lane).and_then(|key| shards.get(&key));
            if excepts(&record, None) {
                continue;
            }
            match shard.and_then(|shard| self.counters(&record, &is_asked, shard)) {
                Some(counters) => counting.push((record, counters)),
                None => open.push(record),
            }
        }
        let counters = counting.iter().flat_map(|(_, counters)| counters).cloned();
        let held = self.all(Table::Main, counters, patience).await?;
        for (record, counters) in counting {
            let mark = mark_name(&record.lane).unwrap_or_default();
            let has = |counter: &Key| {
                let mark = held.get(counter).and_then(|item| mark_of(item, &mark));
                let is_passed = mark.zip(record.sequence).is_some_and(|(mark, sequence)| has_passed(mark, sequence));
                is_passed || excepts(&record, Some(counter))
            };
            if !counters.iter().all(has) {
                open.push(record);
            }
        }
        Ok(open)
    }

    /// The counters and buckets to which a record adds, of the targets that are asked for; `None` if they are not known.
    fn counters(
        &self,
        record: &CountedRecord,
        is_asked: impl Fn(&Target) -> bool,
        shard: &ShardItem,
    ) -> Option<Vec<Key>> {
        let targets = record.counts.planned()?.iter().filter(|target| is_asked(target));
        let counter = |target: &Target| {
            let derivation = self.context.catalogue.position(&target.derivation);
            let derivation = self.context.catalogue.derivation(derivation?)?;
            if matches!(derivation.kind.shape(), Shape::Rollup(_)) {
                return Some(target.item.clone());
            }
            let shard = lane_seed(record.lane.shard.as_deref()?) % shard.n_shards(&target.derivation)?.max(1);
            CounterKey { target: target.item.clone(), derivation: target.derivation.clone(), shard }.key().ok()
        };
        targets.map(counter).collect()
    }

    /// Those of these items that are there, each read once.
    async fn all(
        &self,
        table: Table,
        keys: impl Iterator<Item = Key>,
        patience: Patience<'_>,
    ) -> Result<BTreeMap<Key, Item>, GaveUp> {
        let keys: BTreeSet<Key> = keys.collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        Ok(patience.call(|| self.context.store.get(table, &keys)).await?.into_iter().collect())
    }

    /// Reads the birth marks, by which the functions leave out what a backfill has counted.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the registry cannot be read.
    pub async fn learn_births(&self, patience: Patience<'_>) -> Result<(), GaveUp> {
        Publisher::new(&self.context).learn_births(patience).await
    }
}
