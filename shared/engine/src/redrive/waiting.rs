//! Pending work: an item that differs has not drifted if pending work will still change it.
//!
//! A parked change is applied by its redrive, an unreadable item counts once it is corrected, and a job continues by
//! itself. Each is reported elsewhere.
//!
//! # In the ledger
//!
//! A process that reads the stream beside the functions, such as a verification, asks whether records are counted.
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

use derive::{family::Family, kind::Shape, position::DerivationAt, query::Query, sources::Source, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    account::Target,
    attribute::sort_key,
    backoff::{GaveUp, Patience},
    batch::Engine,
    context::Context,
    count::{exceptions::Exceptions, marked, targets},
    fan_out::{
        UnderwayFanOut,
        again::{self, DueItem},
    },
    input::Batch,
    jobs::sweep::jobs,
    ledger::{
        LedgerKind, ShardItem, receipt_key, shard_key,
        watermarks::{Sequence, has_passed, mark_name, mark_of},
    },
    look::listing::{ALL_DERIVATIONS, UNREADABLE},
    park::{self, ParkedChange, ParkedPages},
    plan,
    protocol::ProtocolStep,
    publishing,
    record::{Decoded, Lane},
};

/// How long items and counts stay pending for a parked change whose item is unknown, in milliseconds: a day. After
/// that, differences are reported. A count is then reported with the [doubt](Waiting::doubt), and no repair adds to it:
/// the redrive would add the change a second time.
const UNKNOWN_MS: u64 = 24 * 3_600 * 1_000;

/// What may still change an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingWork {
    /// A parked change.
    Parked,
    /// The sweep, at this time in milliseconds since the epoch.
    Sweep {
        /// The time.
        due_ms: u64,
    },
    /// A fan-out.
    Job {
        /// The sort key of the job.
        key: String,
        /// True if an operator paused it.
        is_paused: bool,
    },
}

/// Items and counts that are pending because of parked changes and jobs.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Items that parked changes belong to, or would refresh.
    items: BTreeSet<Key>,
    /// Items whose searches of an index are to be repeated, and those that are to be refreshed about now, with the
    /// derivations, by their positions, and when the last one is due, in milliseconds since the epoch.
    noted: BTreeMap<Key, (BTreeSet<DerivationAt>, u64)>,
    /// Derivations of pending searches by parked changes; by their positions.
    derivations: BTreeSet<DerivationAt>,
    /// Fan-outs in progress.
    fan_outs: Vec<UnderwayFanOut>,
    /// Counts that parked changes would add to.
    counts: CountsOf,
    /// True if a change with an unknown item is parked, so that it may belong to any item.
    is_any_item: bool,
    /// Id of a change that may add to any count, and has been parked so long that no count is pending for it.
    unknown: Option<String>,
}

impl Waiting {
    /// What may still change an item whose part of these derivations differs, as these sources decided it; `None` if
    /// nothing is pending. A fan-out whose cursor is past an item does not change it. `stored` is the stored item, which has
    /// its index keys.
    #[must_use]
    pub fn pending<'a>(
        &self,
        item: &Key,
        stored: Option<&Item>,
        sources: impl IntoIterator<Item = &'a Source>,
        derivations: impl IntoIterator<Item = &'a DerivationAt>,
    ) -> Option<PendingWork> {
        let sources: Vec<&Source> = sources.into_iter().collect();
        let derivations: Vec<DerivationAt> = derivations.into_iter().copied().collect();
        let is_parked = |source: &&Source| match source {
            Source::Item(key) => self.items.contains(key),
            Source::First(of) => self.items.range(of.begin()..).take_while(|key| of.may_be(key)).next().is_some(),
            Source::Counters(_) => false,
        };
        if self.is_any_item
            || self.items.contains(item)
            || sources.iter().any(is_parked)
            || derivations.iter().any(|at| self.derivations.contains(at))
        {
            return Some(PendingWork::Parked);
        }
        let due = |(of_note, due_ms): &(BTreeSet<DerivationAt>, u64)| {
            derivations.iter().any(|at| of_note.contains(at)).then_some(*due_ms)
        };
        let noted = |source: &&Source| match source {
            Source::Item(key) => self.noted.get(key).and_then(due),
            Source::First(of) => {
                let mut noted = self.noted.range(of.begin()..).take_while(|(key, _)| of.may_be(key));
                noted.find_map(|(_, note)| due(note))
            }
            Source::Counters(_) => None,
        };
        if let Some(due_ms) = self.noted.get(item).and_then(due).or_else(|| sources.iter().find_map(noted)) {
            return Some(PendingWork::Sweep { due_ms });
        }
        let mut fan_outs = self.fan_outs.iter().filter(|fan_out| derivations.contains(&fan_out.derivation));
        let fan_out = fan_outs.find(|fan_out| fan_out.still_reaches(item, stored, &sources))?;
        Some(PendingWork::Job { key: fan_out.job.clone(), is_paused: fan_out.is_paused })
    }

    /// True if any item that a query of the table would return is pending.
    pub(crate) fn has_any_of(&self, query: &Query) -> bool {
        self.items.iter().any(|item| item.pk == query.pk && query.sk.holds(&item.sk))
    }

    /// Why a count that is not pending may not be repaired, if there is a reason.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let id = self.unknown.as_ref()?;
        Some(format!(
            "the parked change {id} may add to it, and its key cannot be read: see `ripple parked {id}`, and run \
             `ripple parked --discard {id}` before a repair"
        ))
    }

    /// True if this count is pending.
    #[must_use]
    pub fn has_target(&self, target: &Target) -> bool {
        self.counts.has(target)
    }
}

/// The pending work. A parked record that cannot be read does not show which item it belongs to. There may be a million
/// searches to repeat, because an index may lag: only those that `is_asked` selects are returned.
pub(crate) async fn what_is_under_way<S: Store>(
    context: &Context<S>,
    is_asked: impl Fn(&Key) -> bool,
    patience: Patience<'_>,
) -> Result<Waiting, GaveUp> {
    let mut waiting = Waiting::default();
    if !context.takes(ProtocolStep::Underway) {
        return Ok(waiting);
    }
    parked_of(context, Family::Additive, patience, &mut waiting).await?;
    parked_of(context, Family::LevelTriggered, patience, &mut waiting).await?;
    let jobs = patience.call(|| jobs(&context.store, &context.schema.layout)).await?;
    waiting.fan_outs = jobs.iter().filter_map(|job| UnderwayFanOut::of(context, job)).collect();
    let due = again::due(context, again::soon(context), None, is_asked, patience).await?;
    for DueItem { item, derivations, due_ms } in due {
        let positions = derivations.iter().filter_map(|name| context.catalogue.position(name));
        let (of_note, last_ms) = waiting.noted.entry(item).or_default();
        of_note.extend(positions);
        *last_ms = due_ms.max(*last_ms);
    }
    Ok(waiting)
}

/// The pending work that changes counts. Jobs and parked changes of other families change no count.
pub(crate) async fn what_counts_wait_for<S: Store>(
    context: &Context<S>,
    patience: Patience<'_>,
) -> Result<Waiting, GaveUp> {
    let mut waiting = Waiting::default();
    if context.takes(ProtocolStep::Underway) {
        parked_of(context, Family::Additive, patience, &mut waiting).await?;
    }
    Ok(waiting)
}

/// Adds the pending items and counts of a family's parked changes.
async fn parked_of<S: Store>(
    context: &Context<S>,
    family: Family,
    patience: Patience<'_>,
    waiting: &mut Waiting,
) -> Result<(), GaveUp> {
    let mut pages = ParkedPages::of(family);
    while let Some((query, after)) = pages.next() {
        let page = patience.call(|| context.store.query(Table::Ledger, &query, after.clone())).await?;
        for parked in pages.take(page) {
            waits_for(context, &parked, patience, waiting);
        }
    }
    Ok(())
}

/// Adds the pending items and counts of a parked change.
fn waits_for<S: Store>(context: &Context<S>, parked: &ParkedChange, patience: Patience<'_>, waiting: &mut Waiting) {
    let text = parked.record().unwrap_or_default();
    let record = Decoded::of(&context.schema.layout, &text);
    let key = record.key(&context.schema.layout);
    let batch = Batch::parked(record, &parked.lane, patience);
    let is_old = context.clock.now_ms().saturating_sub(parked.parked_at_ms) >= UNKNOWN_MS;
    if parked.family == Family::Additive && key.is_none() && is_old {
        return waiting.unknown = Some(parked.id.clone());
    }
    if parked.family == Family::Additive {
        return waiting.counts.extend(CountsOf::of(context, &batch));
    }
    waiting.is_any_item |= key.is_none() && !is_old;
    waiting.items.extend(key.clone());
    let Ok(asked) = plan::asked_of(context, parked.family, &batch) else {
        // If the record belongs to a counter, the item that displays the count would be refreshed.
        return waiting.items.extend(key.and_then(|key| Some(CounterKey::parse(&key)?.target)));
    };
    waiting.items.extend(asked.requests.requested.into_keys().map(|(item, _)| item));
    waiting.derivations.extend(asked.requests.finds.into_keys().map(|(derivation, _)| derivation));
    waiting.derivations.extend(asked.ground.into_iter().map(|touch| touch.derivation));
}

/// True if an item, or one of the sources that were named for it, is listed as unreadable.
pub(crate) async fn is_listed_unreadable<'a, S: Store>(
    context: &Context<S>,
    items: impl IntoIterator<Item = &'a Key>,
    derivations: &[DerivationAt],
    patience: Patience<'_>,
) -> Result<bool, GaveUp> {
    let names: Vec<&str> = derivations.iter().map(|at| context.catalogue.name(*at)).chain([ALL_DERIVATIONS]).collect();
    let listed = |item| names.iter().map(move |name| Key::new(UNREADABLE, sort_key(name, item)));
    let keys: Vec<Key> = items.into_iter().flat_map(listed).collect();
    Ok(!patience.call(|| context.store.get(Table::Ledger, &keys)).await?.is_empty())
}

// ---- Whether records are counted ----

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
                let stored = self.all(Table::Ledger, records.iter().map(|it| receipt_key(&it.id)), patience).await?;
                Ok(records.into_iter().filter(|record| !stored.contains_key(&receipt_key(&record.id))).collect())
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
        let stored = marked::marked(&self.context, counting.iter().flat_map(of).collect(), patience).await?;
        for (record, counters) in counting {
            let name = mark_of_lane(&record);
            let has = |counter: &Key| {
                let item = stored.get(&(counter.clone(), name.clone()));
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
