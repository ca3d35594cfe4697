//! Lag: from the answer to a write of the application to the commit of the last write that follows from it.
//!
//! What follows from what is told by the functions: each of their writes names the records that it follows from. A
//! write of theirs comes back as a record of its item, and what follows from that record follows from the same writes
//! of the application. Where several writes on an item are in the stream at once, the first of their records is taken
//! for all of them, since looking at an item reads what all of them left.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{catalogue::Catalogue, change::Sight, schema::Schema, write::Table};
use engine::batch::Handled;
use keys::{item::text, key::Key};
use runtime::handler::Function;
use std::sync::Arc;

use crate::{
    exit::report,
    service::Witness,
    workload::writer::{Stamp, Written},
};

/// Name under which the ledger's own write units are accounted. Stable.
const LEDGER: &str = "ledger";

/// What a run of the service did, seen from outside.
pub(crate) struct Ledgerbook {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    seen: Mutex<Seen>,
}

/// The account of a run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Ids of records of ground items with a difference that a derivation reads, with the write that each is of.
    changes: HashMap<String, Stamp>,
    /// Ids of the other records, with the changes that they follow from.
    echoes: HashMap<String, BTreeSet<String>>,
    /// Changes that the newest writes on an item follow from, until a record of the item comes.
    pending: HashMap<Key, BTreeSet<String>>,
    /// When the last write was done that follows from a change.
    last_ms: HashMap<String, u64>,
    /// Writes of the service in the application's table.
    pub(crate) n_derived_writes: usize,
    /// Its write units, by derivation, those of the ledger apart.
    pub(crate) units: BTreeMap<String, f64>,
    /// Changes that were parked.
    pub(crate) parked: BTreeSet<String>,
}

impl Ledgerbook {
    /// A run that has not begun.
    pub(crate) fn new(schema: Arc<Schema>, catalogue: Arc<Catalogue>) -> Self {
        Self { schema, catalogue, seen: Mutex::new(Seen::default()) }
    }

    /// The account so far.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Ledgerbook {
    fn handled(&self, _function: Function, handled: &Handled, _elapsed: Duration) {
        let mut seen = self.seen();
        let mut origins: Vec<BTreeSet<String>> = Vec::new();
        for change in &handled.changes {
            let Some(change) = change else {
                origins.push(BTreeSet::new());
                continue;
            };
            let item = change.new_image().or_else(|| change.old_image());
            let updated_at = item.and_then(|item| text(item, "UpdatedAt")).unwrap_or_default().to_owned();
            let stamp = Stamp { key: change.key.clone(), updated_at, removed: change.new_image().is_none() };
            let reads = self.catalogue.reads_difference(&Sight::of(&self.schema, change));
            origins.push(seen.origins(&change.id, stamp, reads));
        }
        for commit in &handled.account.commits {
            let names = &commit.derivations;
            if commit.table == Table::Ledger {
                *seen.units.entry(LEDGER.to_owned()).or_default() += commit.units;
                continue;
            }
            seen.n_derived_writes += 1;
            let n_names = f64::from(u32::try_from(names.len().max(1)).unwrap_or(1));
            for name in names {
                *seen.units.entry(name.clone()).or_default() += commit.units / n_names;
            }
            let follows: BTreeSet<String> =
                commit.causes.iter().filter_map(|at| origins.get(*at)).flatten().cloned().collect();
            for change in &follows {
                let last = seen.last_ms.entry(change.clone()).or_default();
                *last = (*last).max(commit.at_ms);
            }
            seen.pending.entry(commit.key.clone()).or_default().extend(follows);
        }
        seen.parked.extend(handled.account.parked.iter().map(|parked| parked.id.clone()));
    }

    fn trouble(&self, line: &str) {
        report(line);
    }
}

impl Seen {
    /// The changes that a record follows from; itself, when it is one.
    fn origins(&mut self, id: &str, stamp: Stamp, reads: bool) -> BTreeSet<String> {
        if reads {
            self.changes.insert(id.to_owned(), stamp);
            return BTreeSet::from([id.to_owned()]);
        }
        if let Some(known) = self.echoes.get(id) {
            return known.clone();
        }
        let origins = self.pending.remove(&stamp.key).unwrap_or_default();
        self.echoes.insert(id.to_owned(), origins.clone());
        origins
    }

    /// Records of ground items with a difference that a derivation reads.
    pub(crate) fn n_changes(&self) -> usize {
        self.changes.len()
    }

    /// The other records.
    pub(crate) fn n_echoes(&self) -> usize {
        self.echoes.len()
    }

    /// The lag of every change from which a write followed, in milliseconds, in ascending order.
    pub(crate) fn lags_ms(&self, written: &Written) -> Vec<u64> {
        let lag = |(change, last_ms): (&String, &u64)| {
            let answered_ms = written.answered_ms.get(self.changes.get(change)?)?;
            Some(last_ms.saturating_sub(*answered_ms))
        };
        let mut lags: Vec<u64> = self.last_ms.iter().filter_map(lag).collect();
        lags.sort_unstable();
        lags
    }
}

/// The value below which so many percent of the values are.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}
