//! The account of a batch: what was seen, what was written, what it cost, and what is not done.
//!
//! # Figures
//!
//! The figures of a batch by derivation, and its lag, for whoever watches the service.
//!
//! *Keeps true*: every write of the account is in the figures of the derivations on whose behalf it was made, in equal
//! parts of its units; and no lag is left out, however many records a batch has.
//!
//! *Lag* is the time from a record's creation to the last write that follows from it in the invocation. It is that of
//! one step: a display follows from the record of its counter, which follows from the application's. DynamoDB Streams
//! has whole seconds, rounded down, so a lag is up to a second too great.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    family::Family,
    position::{DerivationAt, RecordAt},
    schema::Unreadable,
    write::{Action, Table, Write},
};
use keys::{item::Item, key::Key, size::item_bytes};
use store::Units;

use crate::{contention::Contention, counters::Target, ledger::parked_partition};

#[cfg(doc)]
use crate::limits::BrakeLimits;

/// What happened in one invocation.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Records in the batch.
    pub n_records: usize,
    /// When the writes of the records were made, by position, in milliseconds since the epoch; DynamoDB Streams has
    /// whole seconds, rounded down.
    pub created_ms: Vec<Option<u64>>,
    /// What was asked of derivations, and what stood in their way, by position in the catalogue.
    pub shares: BTreeMap<DerivationAt, Share>,
    /// Records of ground items with a difference that a derivation reads.
    pub n_changes: usize,
    /// The other records of declared entities.
    pub n_echoes: usize,
    /// Records of items that have no type, or one that nobody declared.
    pub n_ignored: usize,
    /// Changes and removals of items of which only the insert counts: nothing is applied of them.
    pub n_late_changes: usize,
    /// Changes that some count does not count by itself, since they were written before its birth mark: whatever filled
    /// it counted them.
    pub n_before_birth: usize,
    /// Changes that the ledger had already.
    pub n_duplicates: usize,
    /// Calls that were sent again.
    pub n_retries: usize,
    /// Items that were refreshed and were in step.
    pub n_in_step: usize,
    /// Items that cannot be interpreted, as listed.
    pub unreadable: Vec<ListedItem>,
    /// So much cannot be read that the brake would hold the batch, if it did not [only warn](BrakeLimits::only_warns).
    pub braked: Option<MuchUnreadable>,
    /// What was written.
    pub commits: Vec<Commit>,
    /// Changes that were parked.
    pub parked: Vec<Parked>,
    /// Changes that were refused, since the ledger does not show whether they are in.
    pub refused: Vec<Refused>,
    /// Conflicts and throttles, by derivation.
    pub contention: Box<Contention>,
    /// Age of the oldest record when the batch came, in milliseconds, where it is one of which others may be lost
    /// already: see [`loss`](crate::loss).
    pub late_ms: Option<u64>,
    /// The oldest record is so old only because it was written before Ripple was attached to the table.
    pub is_first_backlog: bool,
    /// Positions of records that are not done, with the reason.
    pub undone: BTreeMap<RecordAt, String>,
    /// The first failure that lasts until somebody changes the set-up, such as a missing permission.
    pub standing: Option<String>,
}

/// A write that was done.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The item.
    pub key: Key,
    /// In which table.
    pub table: Table,
    /// What it did to the item; `None` for the ledger's own and where a job begins.
    pub action: Option<Action>,
    /// When the answer came, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Write units, of a transaction's sum this write's part by item size.
    pub units: Units,
    /// Names of the derivations on whose behalf; none for the ledger's own.
    pub derivations: Vec<String>,
    /// Positions of the records that it follows from.
    pub causes: BTreeSet<RecordAt>,
    /// Does it put right what somebody had made of the item's derived part, though none of its sources changed?
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

/// How much of a batch cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuchUnreadable {
    /// Items that cannot be read.
    pub n_unreadable: usize,
    /// Items of the batch.
    pub n_items: usize,
}

/// A change that was parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event, where it could be read.
    pub id: String,
    /// Why.
    pub cause: String,
}

/// A change that was refused. The counts that it was about are listed for a recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event.
    pub id: String,
    /// Why.
    pub why: String,
    /// What it would have added to; empty where the record cannot be read.
    pub targets: Vec<Target>,
}

impl Account {
    /// Takes up what another came to, of the same batch.
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

    /// What was asked of a derivation, to add to it.
    pub(crate) fn share(&mut self, derivation: DerivationAt) -> &mut Share {
        self.shares.entry(derivation).or_default()
    }

    /// A record is parked on behalf of these derivations.
    pub(crate) fn parked_for(&mut self, derivations: impl IntoIterator<Item = DerivationAt>) {
        for derivation in derivations.into_iter().collect::<BTreeSet<DerivationAt>>() {
            self.share(derivation).n_parked += 1;
        }
    }

    /// Something is sent again, on behalf of these derivations.
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

/// Parts of a transaction's units, by the size of what each write carries, in 1 KB steps as they are billed.
///
/// The item of an update may be larger than what the update carries, which no answer says; so these are parts of an
/// exact sum, not exact themselves.
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

// ---- Which changes of a batch went in through the ledger, derived from what was written ----

/// What the partition key of a receipt begins with.
const RECEIPT: &str = "RECEIPT#";

impl Account {
    /// Positions of the changes that went in, each proven by a receipt. What is parked has a receipt too, and is not
    /// in. Under watermarks there are no receipts.
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

// ---- The figures of a batch by derivation, and its lag, for whoever watches the service ----

/// What was asked of a derivation, and what stood in its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Changes that asked something of it.
    pub n_changes: usize,
    /// What records asked of it: to add, to refresh an item, to search.
    pub n_effects: usize,
    /// Sendings again, of a transaction those of all that is in it.
    pub n_retries: usize,
    /// Records that were parked on its behalf.
    pub n_parked: usize,
}

/// What happened on behalf of one derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// What was asked of it.
    pub share: Share,
    /// Items that were written.
    pub n_writes: usize,
    /// Write units: of a write for several derivations an equal part.
    pub units: Units,
    /// Writes that put right what somebody had made of an item.
    pub n_corrections: usize,
    /// Sendings that met another writer.
    pub n_conflicts: u64,
    /// Sendings that were throttled.
    pub n_throttles: u64,
    /// The greatest lag, in milliseconds; `None` where nothing was written.
    pub lag_ms_max: Option<u64>,
}

impl Share {
    /// Adds another share of the same.
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_changes += other.n_changes;
        self.n_effects += other.n_effects;
        self.n_retries += other.n_retries;
        self.n_parked += other.n_parked;
    }
}

impl Account {
    /// The lag of each record that something follows from, in milliseconds, in no order.
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

    /// Writes that put right what somebody had made of an item.
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
    /// What a batch came to, by the name of the derivation. A derivation with nothing to report is left out.
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

#[cfg(test)]
mod tests {
    use keys::key::Key;

    use super::*;
    use crate::fixture::layout;
    use crate::{account::Commit, ledger::receipt};

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
}
