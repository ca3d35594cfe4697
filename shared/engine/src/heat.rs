//! Heat: which targets were busy, measured where it is felt.
//!
//! Every invocation counts, by derivation and target, the shards of a counter together: the changes that went in, the
//! transactions that took them there, and how often one met another writer or a throttle. What was hot is added to an
//! item of the ledger's table, one for each derivation, target and minute, and `ripple design --check --observed` reads
//! it from there.
//!
//! *Keeps true*: a measure holds nothing up. It is one `ADD` without a guard, sent once, when the batch is done. It may
//! be lost, or be there twice; nothing but a person's view of the table hangs on it, and no count does.
//!
//! *Cheap*. An engine sums up a minute in its own memory, and writes a target only when it met somebody, or when
//! [`EFFECTS_MIN`] changes went in since it was last written: a unit for a conflict, which cost more itself, or for so
//! many changes. What is written is all of the target's minute since then, the quiet transactions too; else conflicts
//! would be held against only those transactions that met one. What never was hot is forgotten with the minute.
//!
//! *Example*: 20 batches of 100 likes on one post within a minute are four writes of 1 unit, `Effects` 500 and
//! `Transactions` 5 each.
//!
//! Of items that are looked at, only those are measured that met somebody, under the first derivation of the write.
//! A throttle is one that is left when the SDK has tried again by itself.

mod kept;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use futures::{StreamExt, stream};
use keys::{counter::CounterKey, key::Key};
use store::{Busy, Outcome, Store};

pub use self::kept::{Heated, KEPT_S, MINUTE_MS, added, heated};
use crate::{
    account::Account,
    backoff::describe,
    batch::{Batch, Engine},
};

/// Changes of a target from which on it is written though nobody was met: at 500 changes a unit, a measure costs less
/// than a hundredth of what the cheaper ledger costs, and what is below 500 a minute and lane is not hot.
pub const EFFECTS_MIN: u64 = 500;

/// Targets that an invocation writes at most, the hottest first. The others wait for the next one of their minute.
const WRITES_MAX: usize = 10;

/// Targets of a minute that an engine remembers at most, the hottest: some hundred KB.
const TARGETS_MAX: usize = 1_000;

/// What was met, by derivation and target.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    targets: BTreeMap<Hot, Measured>,
    /// Where no item of a derivation's own was busy: the ledger's items, and calls that were refused as a whole.
    elsewhere: Measured,
}

/// What may be hot: a target, to a derivation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hot {
    /// Name of the derivation.
    pub derivation: String,
    /// The item that a counter is about; a bucket; or the item that was looked at.
    pub target: Key,
}

/// How much went in at a target, and whom that met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Changes that went in.
    pub n_effects: u64,
    /// Transactions that took them there, one for each counter or bucket that it wrote.
    pub n_transactions: u64,
    /// Sendings that met another writer.
    pub n_conflicts: u64,
    /// Sendings that were throttled.
    pub n_throttles: u64,
    /// Shards of its counter that were written or met somebody; none where it has no counter.
    pub shards: BTreeSet<u32>,
}

impl Measured {
    /// Adds another measure of the same.
    pub fn add(&mut self, other: &Self) {
        self.n_effects += other.n_effects;
        self.n_transactions += other.n_transactions;
        self.n_conflicts += other.n_conflicts;
        self.n_throttles += other.n_throttles;
        self.shards.extend(&other.shards);
    }

    fn met(&mut self, busy: Busy) {
        match busy {
            Busy::Conflict => self.n_conflicts += 1,
            Busy::Throttled => self.n_throttles += 1,
        }
    }

    /// Sendings that met somebody.
    fn n_met(&self) -> u64 {
        self.n_conflicts + self.n_throttles
    }

    fn is_hot(&self) -> bool {
        self.n_met() > 0 || self.n_effects >= EFFECTS_MIN
    }
}

impl Heat {
    /// So many changes went in at a counter or a bucket, by one transaction.
    pub(crate) fn went_in(&mut self, derivation: &str, item: &Key, n_changes: usize) {
        let measured = self.of(derivation, item);
        measured.n_effects += u64::try_from(n_changes).unwrap_or(u64::MAX);
        measured.n_transactions += 1;
    }

    /// A sending found an item busy; one of a derivation, or of nobody's.
    pub(crate) fn met(&mut self, derivation: Option<&str>, item: &Key, busy: Busy) {
        match derivation {
            Some(derivation) => self.of(derivation, item).met(busy),
            None => self.elsewhere.met(busy),
        }
    }

    /// Takes up what another measured.
    pub(crate) fn add(&mut self, other: &Self) {
        for (hot, measured) in &other.targets {
            self.targets.entry(hot.clone()).or_default().add(measured);
        }
        self.elsewhere.add(&other.elsewhere);
    }

    /// A call was not done at all, since something of it was busy.
    pub(crate) fn met_somewhere(&mut self, busy: Busy) {
        self.elsewhere.met(busy);
    }

    fn of(&mut self, derivation: &str, item: &Key) -> &mut Measured {
        let (target, shard) = match CounterKey::parse(item) {
            Some(counter) => (counter.target, Some(counter.shard)),
            None => (item.clone(), None),
        };
        let measured = self.targets.entry(Hot { derivation: derivation.to_owned(), target }).or_default();
        measured.shards.extend(shard);
        measured
    }

    /// Sendings that met another writer, wherever.
    #[must_use]
    pub fn n_conflicts(&self) -> u64 {
        self.all().map(|measured| measured.n_conflicts).sum()
    }

    /// Sendings that were throttled, wherever.
    #[must_use]
    pub fn n_throttles(&self) -> u64 {
        self.all().map(|measured| measured.n_throttles).sum()
    }

    /// How often each derivation met another writer, and how often it was throttled, target by target.
    pub(crate) fn met_by_derivation(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let met = self.targets.iter().filter(|(_, measured)| measured.n_met() > 0);
        met.map(|(hot, measured)| (hot.derivation.as_str(), measured.n_conflicts, measured.n_throttles))
    }

    /// How often each derivation met somebody, for a log: `like-count 3, view-count 1`; `None` where none did.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        let mut met = BTreeMap::<&str, u64>::new();
        for (hot, measured) in self.targets.iter().filter(|(_, measured)| measured.n_met() > 0) {
            *met.entry(&hot.derivation).or_default() += measured.n_met();
        }
        let told: Vec<String> = met.into_iter().map(|(derivation, n_met)| format!("{derivation} {n_met}")).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    fn all(&self) -> impl Iterator<Item = &Measured> {
        self.targets.values().chain([&self.elsewhere])
    }
}

/// What an engine remembers of the minute that runs: what its targets had since they were last written.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    number: u64,
    targets: BTreeMap<Hot, Measured>,
}

impl Recent {
    /// Takes in what an invocation met, and gives out what must be written of it.
    fn taken(&self, heat: &Heat, minute: u64) -> Vec<(Hot, Measured)> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.number != minute {
            *recent = Minute { number: minute, targets: BTreeMap::new() };
        }
        for (hot, measured) in &heat.targets {
            recent.targets.entry(hot.clone()).or_default().add(measured);
        }
        let targets = std::mem::take(&mut recent.targets).into_iter();
        let (mut hot, cold): (Vec<_>, Vec<_>) = targets.partition(|(_, measured)| measured.is_hot());
        hot.sort_by_key(|(_, measured)| Reverse((measured.n_met(), measured.n_effects)));
        let later = hot.split_off(hot.len().min(WRITES_MAX));
        recent.targets = if later.len() + cold.len() > TARGETS_MAX {
            later.into_iter().take(TARGETS_MAX).collect()
        } else {
            later.into_iter().chain(cold).collect()
        };
        hot
    }
}

impl<S: Store> Engine<S> {
    /// Adds what was hot to the ledger's record.
    pub(crate) async fn record_heat(&self, batch: &Batch<'_>, account: &mut Account) {
        if account.heat.targets.is_empty() || batch.patience.is_over() {
            return;
        }
        let now_ms = self.clock.now_ms();
        let writes = self.recent.taken(&account.heat, now_ms / MINUTE_MS).into_iter().map(|(hot, measured)| {
            let write = added(&hot, &measured, now_ms);
            async move { (self.store.write(&write).await, write.key) }
        });
        let mut done = stream::iter(writes).buffer_unordered(WRITES_MAX);
        while let Some((outcome, key)) = done.next().await {
            match outcome {
                Ok(Outcome::Done { units }) => account.commits.push(self.bookkeeping(&key, units, 0)),
                Ok(Outcome::GuardFailed) => {}
                Err(error) => tracing::debug!(key = key.for_log(), cause = %describe(&error), "a measure is lost"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An invocation in which so many changes went in at a target, and so many sendings met another writer.
    fn heat(target: &str, n_changes: usize, n_conflicts: usize) -> Heat {
        let (mut heat, counter) = (Heat::default(), Key::new(target, "METADATA#COUNT#like-count#03"));
        heat.went_in("like-count", &counter, n_changes);
        for _ in 0..n_conflicts {
            heat.met(Some("like-count"), &counter, Busy::Conflict);
        }
        heat
    }

    /// What is written of it, as `target: effects in transactions, conflicts`.
    fn taken(recent: &Recent, minute: u64, heat: &Heat) -> String {
        let told = |(hot, all): &(Hot, Measured)| {
            format!("{}: {} in {}, {}", hot.target, all.n_effects, all.n_transactions, all.n_conflicts)
        };
        recent.taken(heat, minute).iter().map(told).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_target_is_written_when_it_met_somebody_with_all_that_went_in_before() {
        let recent = Recent::default();
        assert_eq!(taken(&recent, 1, &heat("p", 3, 0)), "");
        assert_eq!(taken(&recent, 1, &heat("q", 1, 0)), "");
        assert_eq!(taken(&recent, 1, &heat("p", 4, 2)), "p / METADATA: 7 in 2, 2");
        assert_eq!(taken(&recent, 1, &heat("p", 1, 0)), "", "what is written is forgotten");
    }

    #[test]
    fn a_target_is_written_once_in_500_changes_though_it_met_nobody() {
        let recent = Recent::default();
        let written: Vec<String> = (0..12).map(|_| taken(&recent, 1, &heat("p", 100, 0))).collect();
        let hot = "p / METADATA: 500 in 5, 0";
        assert_eq!(written, ["", "", "", "", hot, "", "", "", "", hot, "", ""]);
    }

    #[test]
    fn what_was_not_hot_is_forgotten_with_its_minute() {
        let recent = Recent::default();
        assert_eq!(taken(&recent, 1, &heat("p", 499, 0)), "");
        assert_eq!(taken(&recent, 2, &heat("p", 1, 0)), "");
        assert_eq!(taken(&recent, 2, &heat("p", 499, 0)), "p / METADATA: 500 in 2, 0");
    }

    #[test]
    fn the_hottest_are_written_first_and_the_others_with_the_next_invocation() {
        let recent = Recent::default();
        let mut all = Heat::default();
        for at in 1..=12 {
            all.targets.extend(heat(&format!("p{at:02}"), 1, at).targets);
        }
        let first: Vec<String> = recent
            .taken(&all, 1)
            .iter()
            .map(|(hot, measured)| format!("{} {}", hot.target.pk, measured.n_conflicts))
            .collect();
        assert_eq!(
            (first.len(), first.first().unwrap().as_str(), first.last().unwrap().as_str()),
            (10, "p12 12", "p03 3")
        );
        assert_eq!(taken(&recent, 1, &heat("q", 1, 0)), "p02 / METADATA: 1 in 1, 2; p01 / METADATA: 1 in 1, 1");
    }

    #[test]
    fn an_engine_remembers_no_more_targets_than_it_may() {
        let recent = Recent::default();
        let mut all = Heat::default();
        for at in 0..=TARGETS_MAX {
            all.targets.extend(heat(&format!("p{at:04}"), 1, 0).targets);
        }
        assert_eq!(recent.taken(&all, 1), []);
        assert_eq!(recent.0.lock().unwrap().targets.len(), 0, "of too many cold ones none is worth keeping");
    }

    #[test]
    fn shards_are_told_together_and_who_was_met_by_derivation() {
        let mut heat = Heat::default();
        let counter = |shard: u32| Key::new("POST#p", format!("METADATA#COUNT#like-count#{shard:02}"));
        for shard in [3, 12, 3] {
            heat.went_in("like-count", &counter(shard), 2);
        }
        heat.met(Some("like-count"), &counter(5), Busy::Throttled);
        heat.met(Some("post-detail"), &Key::new("POST#p", "METADATA"), Busy::Conflict);
        heat.met(None, &Key::new("CHECKPOINT#s", "CHECKPOINT"), Busy::Conflict);
        heat.met_somewhere(Busy::Throttled);
        let hot = Hot { derivation: "like-count".to_owned(), target: Key::new("POST#p", "METADATA") };
        let shards = BTreeSet::from([3, 5, 12]);
        let likes = Measured { n_effects: 6, n_transactions: 3, n_conflicts: 0, n_throttles: 1, shards };
        assert_eq!(heat.targets.get(&hot), Some(&likes));
        assert_eq!((heat.n_conflicts(), heat.n_throttles()), (2, 2));
        assert_eq!(heat.busy().as_deref(), Some("like-count 1, post-detail 1"));
        assert_eq!(Heat::default().busy(), None);
    }
}
