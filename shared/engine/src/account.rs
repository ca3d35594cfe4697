//! The account of a batch: its records, its writes, their cost, and the records that are not done.
//!
//! # Numbers
//!
//! The numbers of a batch by derivation, and its lag, for monitoring.
//!
//! *Keeps true*: every write of the account is in the numbers of the derivations that it belongs to, with equal parts
//! of its units; and no lag is left out, however many records a batch has.
//!
//! *Lag* is the time from a record's creation to the last write that it causes in the invocation. It covers one step:
//! the counter's record causes the display, and the application's record causes the counter. DynamoDB Streams has whole
//! seconds, rounded down, so a lag is up to a second too great.
//!
//! # Contention
//!
//! Every invocation counts conflicts and throttles by derivation, for its log and its metrics. They are not stored, and no derived count depends on them.
//! They do not show which keys are hot: CloudWatch Contributor Insights for DynamoDB reports that.
//!
//! A refreshed item counts under the first derivation of its write. A throttle counts only if it remains after the
//! SDK's own retries.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    derived::Items,
    family::Family,
    position::{DerivationAt, RecordAt},
    schema::{Schema, Unreadable},
    sources::sums,
    tally::Tally,
    write::{Action, Table, Write},
};
use keys::{item::Item, key::Key, size::item_bytes};
use store::{Busy, Units};

use crate::ledger::parked_partition;

#[cfg(doc)]
use crate::limits::BrakeLimits;

/// What happened in one invocation.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Records in the batch.
    pub n_records: usize,
    /// When the records' writes happened, by position, in milliseconds since the epoch; DynamoDB Streams has whole
    /// seconds, rounded down.
    pub created_ms: Vec<Option<u64>>,
    /// Requests to derivations, with retries and parked records, by position in the catalogue.
    pub shares: BTreeMap<DerivationAt, Share>,
    /// Records of application items with a difference that a derivation reads.
    pub n_changes: usize,
    /// All other records of declared entities.
    pub n_echoes: usize,
    /// Records of items without a type, or with an undeclared one.
    pub n_ignored: usize,
    /// Changes and removals of items that count by their insert alone: they are not applied.
    pub n_late_changes: usize,
    /// Changes that some count leaves out because they predate its effective time: the backfill counted them.
    pub n_before_birth: usize,
    /// Changes that were already counted.
    pub n_duplicates: usize,
    /// Calls that were retried.
    pub n_retries: usize,
    /// Refreshed items that were correct.
    pub n_in_step: usize,
    /// Items that cannot be interpreted, as listed.
    pub unreadable: Vec<ListedItem>,
    /// Numbers of a batch that the circuit breaker (the brake) would stop, if it did not
    /// [only warn](BrakeLimits::only_warns).
    pub braked: Option<MuchUnreadable>,
    /// What was written.
    pub commits: Vec<Commit>,
    /// Changes that were parked.
    pub parked: Vec<Parked>,
    /// Changes that were refused, because the ledger does not show whether they are counted.
    pub refused: Vec<Refused>,
    /// Conflicts and throttles, by derivation.
    pub contention: Box<Contention>,
    /// Age of the oldest record when the batch arrived, in milliseconds, if it is so old that other records may be
    /// lost: see [`loss`](crate::loss).
    pub late_ms: Option<u64>,
    /// Records that arrived behind later ones of their shard: `batch` has the rule.
    pub n_out_of_order: usize,
    /// True if the oldest record is that old only because it was written before Ripple was attached to the table.
    pub is_first_backlog: bool,
    /// Positions of records that are not done, with the reason.
    pub undone: BTreeMap<RecordAt, String>,
    /// The first failure that lasts until the operator changes the set-up, such as a missing permission.
    pub standing: Option<String>,
}

/// A completed write.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The item.
    pub key: Key,
    /// The table of the item.
    pub table: Table,
    /// The write's action; `None` for the ledger's items and when a job is created.
    pub action: Option<Action>,
    /// When the response arrived, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Write units; for a transaction, this write's part of the sum by item size.
    pub units: Units,
    /// Names of the derivations that it belongs to; empty for the ledger's items.
    pub derivations: Vec<String>,
    /// Positions of the records that caused it.
    pub causes: BTreeSet<RecordAt>,
    /// True if it restores a derived part that another writer changed, although no source changed.
    pub is_correction: bool,
}

/// An item that cannot be interpreted, and is on the operator's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// Position of the record that showed it.
    pub position: RecordAt,
    /// The item.
    pub key: Key,
    /// The derivation, or [`ALL_DERIVATIONS`](crate::look::listing::ALL_DERIVATIONS).
    pub derivation: String,
    /// Why.
    pub why: Unreadable,
}

/// Number of unreadable items in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuchUnreadable {
    /// Unreadable items.
    pub n_unreadable: usize,
    /// Items of the batch.
    pub n_items: usize,
}

/// A change that was parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event, if it could be read.
    pub id: String,
    /// Why.
    pub cause: String,
}

/// A change that was refused. Its counts are listed for a recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event.
    pub id: String,
    /// Why.
    pub why: String,
    /// The counts that it would have added to; empty if the record cannot be read.
    pub targets: Vec<Target>,
}

impl Account {
    /// Adds another account of the same batch.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_duplicates += other.n_duplicates;
        self.n_retries += other.n_retries;
        self.n_in_step += other.n_in_step;
        self.unreadable.extend(other.unreadable);
        self.braked = self.braked.or(other.braked);
        self.contention.add(&other.contention);
        for (derivation, share) in &other.shares {
            self.share(*derivation).add(share);
        }
        self.commits.extend(other.commits);
        self.parked.extend(other.parked);
        self.refused.extend(other.refused);
        for (position, why) in other.undone {
            undone(self, [position], &why);
        }
    }

    /// The share of a derivation, to add to it.
    pub(crate) fn share(&mut self, derivation: DerivationAt) -> &mut Share {
        self.shares.entry(derivation).or_default()
    }

    /// Notes that a record is parked for these derivations.
    pub(crate) fn parked_for(&mut self, derivations: impl IntoIterator<Item = DerivationAt>) {
        for derivation in derivations.into_iter().collect::<BTreeSet<DerivationAt>>() {
            self.share(derivation).n_parked += 1;
        }
    }

    /// Notes a retry for these derivations.
    pub(crate) fn sends_again(&mut self, derivations: impl IntoIterator<Item = DerivationAt>) {
        self.n_retries += 1;
        for derivation in derivations.into_iter().collect::<BTreeSet<DerivationAt>>() {
            self.share(derivation).n_retries += 1;
        }
    }
}

/// Marks records as not done.
pub fn undone(account: &mut Account, positions: impl IntoIterator<Item = RecordAt>, why: &str) {
    for position in positions {
        account.undone.entry(position).or_insert_with(|| why.to_owned());
    }
}

/// Parts of a transaction's units, by the size of each write in billed steps of 1 KB.
///
/// The item of an update may be larger than the update itself, and no response shows its size. So these are parts of an
/// exact sum, but not exact themselves.
#[must_use]
pub fn apportioned(writes: &[&Write], units: &[(Table, Units)]) -> Vec<Units> {
    let sum = |table: Table| units.iter().filter(|(of, _)| *of == table).map(|(_, units)| units).sum::<Units>();
    let all = |table: Table| writes.iter().filter(|write| write.table == table).map(|write| weight(write)).sum::<f64>();
    let tables: BTreeSet<Table> = writes.iter().map(|write| write.table).collect();
    let rates: BTreeMap<Table, f64> =
        tables.into_iter().map(|table| (table, sum(table) / all(table).max(1.0))).collect();
    writes.iter().map(|write| weight(write) * rates.get(&write.table).copied().unwrap_or(0.0)).collect()
}

fn weight(write: &Write) -> f64 {
    let bytes = match &write.action {
        Action::Put(item) => item_bytes(item),
        Action::Update(update) => item_bytes(&update.set),
        Action::Delete | Action::Check => item_bytes(&Item::new()),
    };
    let kilobytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    f64::from(kilobytes.max(1))
}

// ---- Changes of a batch with a receipt, derived from the writes ----

/// Prefix of a receipt's partition key.
const RECEIPT: &str = "RECEIPT#";

impl Account {
    /// Positions of the changes that were counted, each proven by a receipt. A parked change has a receipt too, but is
    /// not counted. Under watermarks there are no receipts.
    #[must_use]
    pub fn received(&self) -> BTreeSet<RecordAt> {
        let parked = parked_partition(Family::Additive);
        let causes = |is_such: &dyn Fn(&str) -> bool| -> BTreeSet<RecordAt> {
            let commits = self.commits.iter().filter(|commit| commit.table == Table::Ledger && is_such(&commit.key.pk));
            commits.flat_map(|commit| commit.causes.iter().copied()).collect()
        };
        let receipts = causes(&|pk| pk.starts_with(RECEIPT));
        &receipts - &causes(&|pk| pk == parked)
    }
}

// ---- The numbers of a batch by derivation, and its lag, for monitoring ----

/// Requests to a derivation, with retries and parked records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Changes with an effect on it.
    pub n_changes: usize,
    /// Planned effects: additions, refreshes and searches.
    pub n_effects: usize,
    /// Retries; those of a transaction count for every derivation in it.
    pub n_retries: usize,
    /// Records that were parked for it.
    pub n_parked: usize,
}

/// The numbers of one derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Its requests.
    pub share: Share,
    /// Items that were written.
    pub n_writes: usize,
    /// Write units; a write for several derivations is divided equally.
    pub units: Units,
    /// Writes that restored a derived part that another writer changed.
    pub n_corrections: usize,
    /// Calls that conflicted with another writer.
    pub n_conflicts: u64,
    /// Calls that were throttled.
    pub n_throttles: u64,
    /// The greatest lag, in milliseconds; `None` if nothing was written.
    pub lag_ms_max: Option<u64>,
}

impl Share {
    /// Adds another share of the same derivation.
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_changes += other.n_changes;
        self.n_effects += other.n_effects;
        self.n_retries += other.n_retries;
        self.n_parked += other.n_parked;
    }
}

impl Account {
    /// The lag of each record that caused a write, in milliseconds, in no order.
    #[must_use]
    pub fn lags_ms(&self) -> Vec<u64> {
        let mut lags_ms = BTreeMap::<RecordAt, u64>::new();
        for commit in self.commits.iter().filter(|commit| commit.table == Table::Main) {
            for position in &commit.causes {
                if let Some(lag_ms) = self.lag_ms(*position, commit.at_ms) {
                    let greatest_ms = lags_ms.entry(*position).or_default();
                    *greatest_ms = lag_ms.max(*greatest_ms);
                }
            }
        }
        lags_ms.into_values().collect()
    }

    /// Writes that restored a derived part that another writer changed.
    #[must_use]
    pub fn n_corrections(&self) -> usize {
        self.commits.iter().filter(|commit| commit.is_correction).count()
    }

    fn lag_ms(&self, position: RecordAt, at_ms: u64) -> Option<u64> {
        let created_ms = self.created_ms.get(position.0).copied().flatten()?;
        Some(at_ms.saturating_sub(created_ms))
    }
}

impl Account {
    /// The numbers of a batch, by the name of the derivation. A derivation with nothing to report is left out.
    pub(crate) fn figures(&self, catalogue: &Catalogue) -> BTreeMap<String, Figures> {
        let mut figures = BTreeMap::<String, Figures>::new();
        for (derivation, share) in &self.shares {
            figures.entry(catalogue.label(*derivation).to_owned()).or_default().share = *share;
        }
        for commit in &self.commits {
            let lag_ms = commit.causes.iter().filter_map(|at| self.lag_ms(*at, commit.at_ms)).max();
            let n_derivations = u32::try_from(commit.derivations.len()).unwrap_or(u32::MAX);
            for name in &commit.derivations {
                let figures = figures.entry(name.clone()).or_default();
                figures.n_writes += 1;
                figures.units += commit.units / f64::from(n_derivations);
                figures.n_corrections += usize::from(commit.is_correction);
                figures.lag_ms_max = figures.lag_ms_max.max(lag_ms);
            }
        }
        for (name, n_conflicts, n_throttles) in self.contention.by_derivation() {
            let figures = figures.entry(name.to_owned()).or_default();
            figures.n_conflicts += n_conflicts;
            figures.n_throttles += n_throttles;
        }
        figures
    }
}

// ---- Contention: conflicts and throttles ----

/// The conflicts and throttles of an invocation.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    derivations: BTreeMap<String, Conflicts>,
    /// Conflicts and throttles outside of derivations: on the ledger's items, and of calls that were refused as a
    /// whole.
    elsewhere: Conflicts,
}

/// Numbers of conflicts and throttles.
#[derive(Clone, Copy, Debug, Default)]
struct Conflicts {
    n_conflicts: u64,
    n_throttles: u64,
}

impl Conflicts {
    fn count(&mut self, busy: Busy) {
        match busy {
            Busy::Conflict => self.n_conflicts += 1,
            Busy::Throttled => self.n_throttles += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.n_conflicts += other.n_conflicts;
        self.n_throttles += other.n_throttles;
    }
}

impl Contention {
    /// Counts a call that found an item of this derivation busy; `None` if the item belongs to no derivation.
    pub(crate) fn met(&mut self, derivation: Option<&str>, busy: Busy) {
        match derivation {
            Some(derivation) => self.derivations.entry(derivation.to_owned()).or_default().count(busy),
            None => self.elsewhere.count(busy),
        }
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        for (derivation, met) in &other.derivations {
            self.derivations.entry(derivation.clone()).or_default().add(*met);
        }
        self.elsewhere.add(other.elsewhere);
    }

    /// All calls that conflicted with another writer.
    #[must_use]
    pub fn n_conflicts(&self) -> u64 {
        self.all().map(|met| met.n_conflicts).sum()
    }

    /// All calls that were throttled.
    #[must_use]
    pub fn n_throttles(&self) -> u64 {
        self.all().map(|met| met.n_throttles).sum()
    }

    /// For each derivation, the numbers of conflicts and of throttles.
    pub fn by_derivation(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.derivations.iter().map(|(derivation, met)| (derivation.as_str(), met.n_conflicts, met.n_throttles))
    }

    /// The number of conflicts and throttles of each derivation, for a log: `like-count 3, view-count 1`; `None` if
    /// there are none.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        let met = |(derivation, n_conflicts, n_throttles): (&str, u64, u64)| {
            format!("{derivation} {}", n_conflicts + n_throttles)
        };
        let met: Vec<String> = self.by_derivation().map(met).collect();
        (!met.is_empty()).then(|| met.join(", "))
    }

    fn all(&self) -> impl Iterator<Item = &Conflicts> {
        self.derivations.values().chain([&self.elsewhere])
    }
}

// ---- The target of a count ----

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{account::Commit, fixture::layout, ledger::receipt};

    #[test]
    fn what_has_a_receipt_is_in_unless_it_is_parked() {
        let layout = layout();
        let commit = |table, key: Key, position: usize| Commit {
            key,
            table,
            action: None,
            at_ms: 0,
            units: 2.0,
            derivations: Vec::new(),
            causes: BTreeSet::from([RecordAt(position)]),
            is_correction: false,
        };
        let commits = vec![
            commit(Table::Ledger, receipt(&layout, "e1", 0).key, 1),
            commit(Table::Ledger, receipt(&layout, "e2", 0).key, 2),
            commit(Table::Ledger, Key::new(parked_partition(Family::Additive), "e2#00"), 2),
            commit(Table::Ledger, Key::new(parked_partition(Family::LevelTriggered), "e1#00"), 1),
            commit(Table::Main, Key::new("RECEIPT#none of ours", "x"), 3),
        ];
        let account = Account { commits, ..Account::default() };
        assert_eq!(account.received(), BTreeSet::from([RecordAt(1)]));
    }

    #[test]
    fn conflicts_and_throttles_are_counted_by_derivation_and_all_together() {
        let (mut contention, mut other) = (Contention::default(), Contention::default());
        contention.met(Some("like-count"), Busy::Throttled);
        contention.met(Some("like-count"), Busy::Conflict);
        contention.met(Some("post-detail"), Busy::Conflict);
        contention.met(None, Busy::Conflict);
        other.met(Some("like-count"), Busy::Conflict);
        other.met(None, Busy::Throttled);
        contention.add(&other);
        assert_eq!((contention.n_conflicts(), contention.n_throttles()), (4, 2));
        assert_eq!(contention.busy().as_deref(), Some("like-count 3, post-detail 1"));
        let by_derivation: Vec<_> = contention.by_derivation().collect();
        assert_eq!(by_derivation, [("like-count", 2, 1), ("post-detail", 1, 0)]);
        assert_eq!(Contention::default().busy(), None);
    }
}
