//! The account of a run of the service: records seen, writes, their cost, and parked changes.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{
    catalogue::Catalogue,
    change::{Change, Sight},
    effect::Effect,
    family::Family,
    plan::plan,
    position::RecordAt,
    schema::Schema,
    write::Table,
};
use engine::batch::Handled;
use functions::handler::Function;
use keys::item::{Item, text};

use crate::{
    exit::report,
    lag::{Done, SeenRecord, Trace},
    metered::{HasLag, Stamp},
    service::Witness,
};

/// Name of the ledger's write units, beside those of the derivations. Stable.
const LEDGER: &str = "ledger";

/// Product attributes that the application increments without a new `UpdatedAt`, because an increment is not an edit.
const UNSTAMPED: [&str; 2] = ["Inventory", "ViewCount"];

/// Number of recent record ids to remember, so that a record counts once, even if it is redelivered or reaches both
/// functions. One function may be far behind the other during a large fan-out.
const RECENT_MAX: usize = 100_000;

pub(crate) struct Bookkeeper {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    has_lag: HasLag,
    book: Mutex<Book>,
}

/// The account of a run. Its size does not grow with the run, except for the trace of the lag.
#[derive(Debug, Default)]
pub(crate) struct Book {
    recent: Recent,
    /// Records of application items with a difference that a derivation reads.
    pub(crate) n_changes: usize,
    /// All other records.
    pub(crate) n_echoes: usize,
    /// Changes and removals of items that count by their insert alone: they are not applied.
    pub(crate) n_late_changes: usize,
    /// Writes to the application's table.
    pub(crate) n_writes: usize,
    /// Writes by derivation.
    pub(crate) wrote: BTreeMap<String, Wrote>,
    /// Write units by derivation, and under [`LEDGER`] those of the ledger.
    pub(crate) units: BTreeMap<String, f64>,
    /// Ids of the changes that were parked.
    pub(crate) parked: BTreeSet<String>,
    /// Records and writes of the items whose lag is measured.
    pub(crate) trace: Trace,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wrote {
    /// Number of writes.
    pub(crate) n: usize,
    /// Time of the response to the last write, in milliseconds since the epoch.
    pub(crate) last_ms: u64,
}

/// Hashes of the ids of the most recently delivered records.
#[derive(Debug, Default)]
struct Recent {
    hashes: HashSet<u64>,
    in_order: VecDeque<u64>,
}

impl Recent {
    /// Notes a record. True if it is delivered for the first time.
    fn is_first(&mut self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        let is_first = self.hashes.insert(hash);
        if is_first {
            self.in_order.push_back(hash);
        }
        if self.in_order.len() > RECENT_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        is_first
    }
}

impl Book {
    /// Derived write units.
    pub(crate) fn derived_units(&self) -> f64 {
        self.units.values().fold(0.0, |sum, units| sum + units)
    }

    pub(crate) fn wrote(&self, derivation: &str) -> Wrote {
        self.wrote.get(derivation).copied().unwrap_or_default()
    }
}

impl Bookkeeper {
    /// Starts the account of a run that measures the lag of these items.
    pub(crate) fn new(schema: Arc<Schema>, catalogue: Arc<Catalogue>, has_lag: HasLag) -> Self {
        Self { schema, catalogue, has_lag, book: Mutex::new(Book::default()) }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decided from the record instead of the engine's account, so that a redelivered record counts once.
    fn is_late(&self, change: &Change) -> bool {
        let planned = plan(&self.schema, &self.catalogue, &[Family::Additive], change);
        planned.effects.iter().any(|(_, effect)| *effect == Effect::Late)
    }

    fn delivered(&self, book: &mut Book, change: &Change) {
        let seen = self.seen(change);
        book.n_changes += usize::from(seen.is_change);
        book.n_echoes += usize::from(!seen.is_change);
        book.n_late_changes += usize::from(self.is_late(change));
        if (self.has_lag)(&change.key) {
            book.trace.records.push(seen);
        }
    }

    fn seen(&self, change: &Change) -> SeenRecord {
        let stamped =
            |item: Option<&Item>| item.and_then(|item| text(item, "UpdatedAt")).unwrap_or_default().to_owned();
        let (old, new) = (change.old_image(), change.new_image());
        let sight = Sight::of(&self.schema, change);
        let image = sight.new.as_ref().or(sight.old.as_ref());
        let derived = image.is_some_and(|image| image.definition.derived);
        let stays = |name: &str| old.and_then(|item| item.get(name)) == new.and_then(|item| item.get(name));
        let counted = image.is_some_and(|image| image.is("Product")) && !UNSTAMPED.into_iter().all(stays);
        let unstamped = old.is_some() && new.is_some() && stamped(old) == stamped(new);
        SeenRecord {
            id: change.id.clone(),
            stamp: Stamp { key: change.key.clone(), updated_at: stamped(new.or(old)), removed: new.is_none() },
            ours: derived || (unstamped && !counted),
            is_known: image.is_some(),
            is_change: self.catalogue.reads_difference(&sight),
        }
    }
}

impl Witness for Bookkeeper {
    fn handled(&self, _function: Function, handled: &Handled, _elapsed: Duration) {
        let mut book = self.book();
        // Each function gets only the records that match its filters. The filters match all records of an item or none,
        // so an item's records arrive in order, whichever function is first.
        for change in handled.changes.iter().flatten() {
            if book.recent.is_first(&change.id) {
                self.delivered(&mut book, change);
            }
        }
        for commit in &handled.account.commits {
            if commit.table == Table::Ledger {
                *book.units.entry(LEDGER.to_owned()).or_default() += commit.units;
                continue;
            }
            book.n_writes += 1;
            // The units of a write for several derivations are divided equally among them.
            let n_parts = f64::from(u32::try_from(commit.derivations.len().max(1)).unwrap_or(1));
            for name in &commit.derivations {
                *book.units.entry(name.clone()).or_default() += commit.units / n_parts;
                let wrote = book.wrote.entry(name.clone()).or_default();
                *wrote = Wrote { n: wrote.n + 1, last_ms: wrote.last_ms.max(commit.at_ms) };
            }
            if (self.has_lag)(&commit.key) {
                let cause = |at: &RecordAt| Some(handled.changes.get(at.0)?.as_ref()?.id.clone());
                let causes = commit.causes.iter().filter_map(cause).collect();
                book.trace.writes.push(Done { key: commit.key.clone(), at_ms: commit.at_ms, causes });
            }
        }
        book.parked.extend(handled.account.parked.iter().map(|parked| parked.id.clone()));
    }

    fn trouble(&self, line: &str) {
        report(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_delivered_again_is_known_and_old_ones_are_forgotten() {
        let mut recent = Recent::default();
        let first: Vec<bool> = ["a", "b", "a"].into_iter().map(|id| recent.is_first(id)).collect();
        assert_eq!(first, [true, true, false]);
        for at in 0..RECENT_MAX {
            assert!(recent.is_first(&at.to_string()));
        }
        assert!(!recent.is_first("0"));
        assert_eq!((recent.hashes.len(), recent.in_order.len()), (RECENT_MAX, RECENT_MAX));
        assert!(recent.is_first("a"));
    }
}
