//! Counts that can be checked within the collection of their target.
//!
//! The items of a collection are consecutive in the table, so a slice passes a count's sources and its counter without
//! extra reads. Only a target that does not add up is read: all of its counters, then all of its sources. If a slice
//! ends in the middle of a collection, its targets do not add up in the slice, but do when they are read.
//!
//! *Keeps true*: a suspect differs in a separate read of the target, not only in what a slice passed.
//!
//! # Zero
//!
//! Counters of zero are deleted, so that a target without counted items leaves nothing behind.
//!
//! *Keeps true*: no count is lost, and none counts twice. A missing counter counts as zero, and the next count creates
//! it. The sweep deletes a counter's home or satellite only while its count and its sum are zero, it has no watermark, and
//! none has moved since it was read. It never deletes a home that has spread: the home decides where stream shards count.
//! It first removes watermarks that are too old to be needed; the next round deletes the counter.
//! The deletion requests a refresh of the display, which then does not differ.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    gathering::CollectionCount,
    guard::Guard,
    position::DerivationAt,
    refresh::Look,
    schema::Schema,
    sources::sums,
    tally::Tally,
    write::{Action, Table, Write},
};
use futures::{StreamExt, stream};
use keys::{
    counter::{COUNTER, CounterKey, REVISION, SPREAD, SUM, VALUE},
    item::Item,
    key::Key,
    value::is_zero,
};
use store::{Outcome, Store};

use crate::{
    account::{Target, added_up},
    backoff::{GaveUp, Patience},
    count::marked::pruning,
    ledger::watermarks::{HORIZON_MS, KEPT_MS, marks},
    protocol::ProtocolStep,
    reading::{self, CALLS_AT_ONCE},
    redrive::waiting::Waiting,
    sweep::{
        TableSweep,
        suspects::{Differing, of_numbers},
    },
};

/// Maximum number of a target's items that are read to count them; `verify` checks larger ones. Bounds time.
const SOURCES_MAX: usize = 10_000;

/// Maximum number of targets of a collection; `verify` checks larger ones. Bounds memory.
const TARGETS_MAX: usize = 10_000;

/// The current collection, and the sums of its targets so far.
pub(super) struct Collections {
    counts: Vec<CollectionCount>,
    pk: String,
    targets: BTreeMap<Target, CollectionSums>,
}

/// The sums over a target's items that were seen.
#[derive(Default)]
struct CollectionSums {
    sources: Tally,
    counters: Tally,
}

impl Collections {
    /// Ends the current collection, and returns its targets that do not add up.
    pub(super) fn end(&mut self) -> Vec<Target> {
        let targets = std::mem::take(&mut self.targets);
        if targets.len() >= TARGETS_MAX {
            return Vec::new();
        }
        targets.into_iter().filter(|(_, sums)| sums.sources != sums.counters).map(|(target, _)| target).collect()
    }

    fn of(&mut self, derivation: &str, item: Key) -> &mut CollectionSums {
        self.targets.entry(Target { derivation: derivation.to_owned(), item }).or_default()
    }
}

impl<S: Store> TableSweep<'_, S> {
    /// The counts that a slice compares.
    pub(super) fn collections(&self) -> Collections {
        let counts = CollectionCount::all(&self.context.schema, &self.context.catalogue);
        Collections { counts, pk: String::new(), targets: BTreeMap::new() }
    }

    /// Adds an item to the sums. If it begins a new collection, returns the targets of the previous one that do not add
    /// up.
    pub(super) fn add_up(&self, collections: &mut Collections, key: &Key, item: &Item) -> Vec<Target> {
        let ended = if collections.pk == key.pk { Vec::new() } else { collections.end() };
        collections.pk.clone_from(&key.pk);
        if collections.targets.len() >= TARGETS_MAX {
            return ended;
        }
        let Some(image) = self.context.schema.image(key, item) else { return ended };
        if image.is(COUNTER) {
            let counter = CounterKey::parse(key);
            let counter = counter.filter(|it| self.named(&collections.counts, &it.derivation).is_some());
            if let Some(CounterKey { target, derivation, .. }) = counter {
                let seen = collections.of(&derivation, target);
                for tally in sums(&self.context.schema, [item]).values() {
                    seen.counters.add(tally);
                }
            }
            return ended;
        }
        let adds =
            |it: &CollectionCount| Some((it.count, it.adds(&self.context.schema, &self.context.catalogue, &image)?));
        let all: Vec<_> = collections.counts.iter().filter_map(adds).collect();
        for (at, (target, tally)) in all {
            collections.of(self.context.catalogue.name(at), target).sources.add(&tally);
        }
        ended
    }

    fn named<'a>(&self, counts: &'a [CollectionCount], name: &str) -> Option<&'a CollectionCount> {
        counts.iter().find(|it| self.context.catalogue.name(it.count) == name)
    }

    /// True if a count is pending: for a parked change of its own, or for a mirror that it counts.
    pub(super) fn count_waits(&self, target: &Target, waiting: &Waiting) -> bool {
        let counts = CollectionCount::all(&self.context.schema, &self.context.catalogue);
        let count = self.named(&counts, &target.derivation).filter(|count| count.mirror.is_some());
        waiting.has_target(target) || count.is_some_and(|count| waiting.has_any_of(&count.query(&target.item)))
    }

    /// The targets among these whose counters currently differ from their sources.
    pub(super) async fn counts_now(
        &self,
        targets: Vec<Target>,
        patience: Patience<'_>,
    ) -> Result<Vec<Differing>, GaveUp> {
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let counts = CollectionCount::all(&self.context.schema, &self.context.catalogue);
        let counts = &counts;
        let compared = targets.into_iter().map(|target| async move {
            match self.named(counts, &target.derivation) {
                Some(count) => self.count_now(count, &target, patience).await,
                None => Ok(None),
            }
        });
        let mut compared = stream::iter(compared).buffer_unordered(CALLS_AT_ONCE);
        let mut differing = Vec::new();
        while let Some(one) = compared.next().await {
            differing.extend(one?);
        }
        Ok(differing)
    }

    async fn count_now(
        &self,
        count: &CollectionCount,
        target: &Target,
        patience: Patience<'_>,
    ) -> Result<Option<Differing>, GaveUp> {
        let stored = added_up(&self.context.schema, &reading::counters_of(self.context, target, patience).await?);
        let Some(sources) = self.sources_now(count, &target.item, patience).await? else { return Ok(None) };
        let mut counted = Tally::default();
        for (_, adds) in &sources {
            counted.add(adds);
        }
        let first = CounterKey::home(target.item.clone(), &target.derivation);
        let Some(key) = first.key().ok().filter(|_| stored != counted) else { return Ok(None) };
        let difference = of_numbers([(key.clone(), stored)].into_iter().chain(sources));
        let derivations: Vec<DerivationAt> = [Some(count.count), count.mirror].into_iter().flatten().collect();
        let look = Look {
            item: key,
            entity: COUNTER.to_owned(),
            derivations: derivations.iter().copied().collect(),
            named: BTreeSet::new(),
        };
        Ok(Some(Differing { look, stored: None, decided_by: BTreeSet::new(), derivations, difference }))
    }

    /// The sources of a target with what each adds; `None` if they are too many, or not certain.
    async fn sources_now(
        &self,
        count: &CollectionCount,
        target: &Key,
        patience: Patience<'_>,
    ) -> Result<Option<Vec<(Key, Tally)>>, GaveUp> {
        let (query, mut sources, mut n_read, mut after) = (count.query(target), Vec::new(), 0, None);
        if !count.is_sure(target) {
            return Ok(None);
        }
        loop {
            let page = patience.call(|| self.context.store.query(Table::Main, &query, after.clone())).await?;
            n_read += page.items.len();
            for item in &page.items {
                let Some(key) = self.context.schema.layout.key(item) else { continue };
                let image = self.context.schema.image(&key, item);
                if count.is_taken(&self.context.schema, &key, image.as_ref()) {
                    return Ok(None);
                }
                let adds = image.and_then(|image| count.adds(&self.context.schema, &self.context.catalogue, &image));
                let Some((_, tally)) = adds.filter(|(of, _)| of == target) else { continue };
                if !count.is_sure(&key) {
                    return Ok(None);
                }
                sources.push((key, tally));
            }
            after = page.next;
            if after.is_none() {
                return Ok(Some(sources));
            }
            if n_read > SOURCES_MAX {
                return Ok(None);
            }
        }
    }
}

/// The target of a suspect, if the suspect is a count.
pub(super) fn target_of(look: &Look) -> Option<Target> {
    let counter = CounterKey::parse(&look.item).filter(|_| look.entity == COUNTER)?;
    Some(Target { derivation: counter.derivation, item: counter.target })
}

// ---- Counters of zero ----

/// True if this is a counter's home or satellite with nothing counted.
pub(super) fn is_zero_counter(schema: &Schema, key: &Key, item: &Item) -> bool {
    CounterKey::parse(key).is_some()
        && schema.image(key, item).is_some_and(|image| image.is(COUNTER))
        && [VALUE, SUM].iter().all(|name| item.get(name).is_none_or(is_zero))
}

impl<S: Store> TableSweep<'_, S> {
    /// The write for a counter of zero; none while it has watermarks that may be needed.
    pub(super) fn collection(&self, key: &Key, item: &Item) -> Option<Write> {
        let now_ms = self.context.clock.now_ms();
        let takes = |step| self.context.takes(step);
        let kept_ms = if takes(ProtocolStep::PruneLate) { KEPT_MS } else { HORIZON_MS / 1_000 };
        if takes(ProtocolStep::ZeroWithoutMarks) && marks(item).next().is_some() {
            return pruning(key, item, kept_ms, now_ms);
        }
        if item.contains_key(SPREAD) && takes(ProtocolStep::HomeStays) {
            return None;
        }
        let revision = Some(item.get(REVISION)).filter(|_| takes(ProtocolStep::ZeroRevision));
        let mut guard = Guard::still_zero(revision);
        guard.asks.retain(|ask| takes(ProtocolStep::HomeStays) || ask.attribute() != Some(SPREAD));
        let guard = Some(guard);
        Some(Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard })
    }

    /// Sends these writes for counters of zero, and returns the number of deleted counters.
    pub(super) async fn collect_counters(&self, writes: Vec<Write>, patience: Patience<'_>) -> Result<usize, GaveUp> {
        let deletions = writes.into_iter().map(|write| async move {
            let outcome = patience.call(|| self.context.store.write(&write)).await;
            outcome.map(|outcome| (outcome, write.action == Action::Delete))
        });
        let mut n_collected = 0;
        let mut deletions = stream::iter(deletions).buffer_unordered(CALLS_AT_ONCE);
        while let Some(outcome) = deletions.next().await {
            n_collected += usize::from(matches!(outcome?, (Outcome::Done { .. }, true)));
        }
        Ok(n_collected)
    }
}
