//! Finds out whether records are counted, for a process that reads the stream beside the functions, such as a
//! verification.
//!
//! *Keeps true*: a record that is reported as counted is in the counters that are read afterwards, or it is parked. A
//! record without a proof in the ledger is reported as not counted, whatever the reason.
//!
//! | ledger | a record is counted if |
//! |---|---|
//! | receipts | its receipt exists |
//! | [`watermarks`](crate::ledger::watermarks) | each requested counter has passed it, or it is an exception |

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{family::Family, kind::Shape, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    context::Context,
    count::{exceptions::Exceptions, recount::targets, spread},
    counters::Target,
    input::Batch,
    ledger::{
        LedgerKind, receipt_key,
        shard::{ShardItem, shard_key},
        watermarks::{Sequence, has_passed, mark_name, mark_of},
    },
    park, plan, publishing,
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
    /// Its counts.
    #[must_use]
    pub fn counts(&self) -> &CountsOf {
        &self.counts
    }
}

impl<S: Store> Engine<S> {
    /// The counts of a record from this stream shard, as the functions compute them; `None` if it counts nothing.
    /// A record that cannot be planned may count at every target that its key permits.
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

    /// The records that are not proven to be counted, for the requested targets. All are read together.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the ledger or a counter cannot be read.
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
            // No change of a stream shard is counted before the shard's item exists.
            let shard = shard_key(&record.lane).and_then(|key| shards.get(&key));
            if excepts(&record, None) {
                continue;
            }
            match shard.and_then(|shard| self.counters(&record, &is_asked, shard)) {
                Some(counters) => counting.push((record, counters)),
                None => open.push(record),
            }
        }
        let mark_of_lane = |record: &CountedRecord| mark_name(&record.lane).unwrap_or_default();
        let of = |(record, counters): &(CountedRecord, Vec<Key>)| {
            let mark = mark_of_lane(record);
            counters.iter().map(|counter| (counter.clone(), mark.clone())).collect::<Vec<_>>()
        };
        let held = spread::marked(&self.context, counting.iter().flat_map(of).collect(), patience).await?;
        for (record, counters) in counting {
            let name = mark_of_lane(&record);
            let has = |counter: &Key| {
                let item = held.get(&(counter.clone(), name.clone()));
                let mark = item.and_then(|item| mark_of(item, &name));
                let is_passed = mark.zip(record.sequence).is_some_and(|(mark, sequence)| has_passed(mark, sequence));
                is_passed || excepts(&record, Some(counter))
            };
            if !counters.iter().all(has) {
                open.push(record);
            }
        }
        Ok(open)
    }

    /// The counters and buckets that a record adds to, for the requested targets; `None` if they are unknown.
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
            let home = CounterKey::home(target.item.clone(), &target.derivation).key().ok()?;
            Some(shard.counts_at(home, &target.derivation, &record.lane))
        };
        targets.map(counter).collect()
    }

    /// The items that exist among these, each read once.
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

    /// Reads the effective times of derivations: the functions do not count earlier changes, which a backfill has
    /// counted.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the registry cannot be read.
    pub async fn learn_births(&self, patience: Patience<'_>) -> Result<(), GaveUp> {
        publishing::learn_births(&self.context, patience).await
    }
}

// ---- The counts that records add to, for callers other than the application of records ----

/// Counts that records add to.
#[derive(Clone, Debug, Default)]
pub struct CountsOf {
    pub(crate) targets: BTreeSet<Target>,
    /// Names of the counts that records without a plan may add to.
    pub(crate) derivations: BTreeSet<String>,
    /// True if not even the item of some record is known, so that it may add to any count.
    pub is_any: bool,
}

impl CountsOf {
    /// The counts that the first record of a batch adds to.
    pub(crate) fn of<S: Store>(context: &Context<S>, batch: &Batch<'_>) -> Self {
        if let Ok(asked) = plan::asked_of(context, Family::Additive, batch) {
            let targets = asked.entries.iter().flat_map(|entry| targets(&context.catalogue, &entry.change));
            return Self { targets: targets.collect(), ..Self::default() };
        }
        let key = batch.records.first().and_then(|record| record.key(&context.schema.layout));
        let derivations = key.iter().flat_map(|key| Self::at(context, key)).collect();
        Self { derivations, is_any: key.is_none(), ..Self::default() }
    }

    /// Names of the counts that an item with this key may add to.
    fn at<S>(context: &Context<S>, key: &Key) -> impl Iterator<Item = String> {
        let entities = context.schema.entities().filter(|definition| definition.key.parse_key(key).is_some());
        let entities: BTreeSet<&str> = entities.map(|definition| definition.name.as_str()).collect();
        let counts = context.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
        let counts =
            counts.filter(move |derivation| derivation.kind.entities().iter().any(|name| entities.contains(name)));
        counts.map(|derivation| derivation.name.clone())
    }

    /// Adds other counts.
    pub fn extend(&mut self, other: Self) {
        self.targets.extend(other.targets);
        self.derivations.extend(other.derivations);
        self.is_any |= other.is_any;
    }

    /// True if this target is, or may be, one of them.
    #[must_use]
    pub fn has(&self, target: &Target) -> bool {
        self.is_any || self.derivations.contains(&target.derivation) || self.targets.contains(target)
    }

    /// True if any of them may belong to these derivations.
    #[must_use]
    pub fn is_any_of(&self, derivations: &BTreeSet<String>) -> bool {
        self.is_any
            || self.targets.iter().any(|target| derivations.contains(&target.derivation))
            || self.derivations.iter().any(|name| derivations.contains(name))
    }

    /// True if any of them may be one of these targets.
    #[must_use]
    pub fn is_any_at(&self, targets: &BTreeSet<Target>) -> bool {
        self.is_any
            || self.targets.iter().any(|target| targets.contains(target))
            || targets.iter().any(|target| self.derivations.contains(&target.derivation))
    }

    /// The targets; `None` if there may be unknown ones.
    pub(crate) fn planned(&self) -> Option<&BTreeSet<Target>> {
        (!self.is_any && self.derivations.is_empty()).then_some(&self.targets)
    }

    pub(crate) fn is_none(&self) -> bool {
        !self.is_any && self.targets.is_empty() && self.derivations.is_empty()
    }
}
