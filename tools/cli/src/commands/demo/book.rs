//! The account of a run of the demo: what the application wrote and when each response came, the records and writes of
//! the service, their cost, the parked changes, and the lag.
//!
//! *Lag* is the time from the response to an application's write until the commit of the last write derived from it. It
//! is computed from the functions' reports. Each derived write names the records that caused it, and creates a record
//! of its own, which may cause further writes. Records are matched to writes at the end, in order: an item's records
//! have the order of its writes. A record belongs to the service if it leaves `UpdatedAt` unchanged, because each edit
//! by the demo's application changes it. A record of a removal or a new key belongs to the service if the application
//! did not write it.
//!
//! A cascade has no lag: it waits until everything written before it has been handled. The writes derived from its
//! deletions are not traced back to the removal that started it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
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
    query::{Consistency, Query},
    schema::Schema,
    write::{Action, Table, Transaction, Write},
};
use engine::{
    batch::Handled,
    clock::{Clock as _, SystemClock},
};
use functions::handler::Function;
use keys::{
    item::{Item, text},
    key::Key,
};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, dynamo::DynamoStore};

use crate::{exit::report, service::Witness};

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

// ---- Lag ----

/// A record of the stream.
#[derive(Clone, Debug)]
struct SeenRecord {
    id: String,
    /// The item, and the stamp that identifies an application's write to it.
    stamp: Stamp,
    /// True if the record alone shows that the service wrote it.
    ours: bool,
    /// True if the entity of the item is declared.
    is_known: bool,
    /// True if the record has a difference in an application item that a derivation reads.
    is_change: bool,
}

/// A write of the service.
#[derive(Clone, Debug)]
struct Done {
    key: Key,
    /// Time of the response, in milliseconds since the epoch.
    at_ms: u64,
    /// Ids of the records that caused the write.
    causes: Vec<String>,
}

/// The lag of a change that caused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLag {
    /// Time of the response to the application, in milliseconds since the epoch.
    pub(crate) answered_ms: u64,
    /// Time from the response until the last write, in milliseconds.
    pub(crate) lag_ms: u64,
}

/// The records and writes from which the lag is computed.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Every record once, in the order of delivery.
    records: Vec<SeenRecord>,
    /// The service's writes, in any order.
    writes: Vec<Done>,
}

impl Trace {
    /// The lags of all changes that caused a write.
    pub(crate) fn followed(&mut self, answered_ms: &Answered) -> Vec<ChangeLag> {
        self.writes.sort_by_key(|write| write.at_ms);
        let made_by = self.made_by(answered_ms);
        let changes = self.records.iter().filter(|record| record.is_change && !is_ours(record, answered_ms));
        let changes: HashMap<&str, &Stamp> = changes.map(|record| (record.id.as_str(), &record.stamp)).collect();
        // For each write, the changes at the origin of its causes. A cause that is not a change belongs to an earlier
        // write.
        let mut follows: Vec<BTreeSet<&str>> = Vec::new();
        let mut last_ms: BTreeMap<&str, u64> = BTreeMap::new();
        for write in &self.writes {
            let mut origins = BTreeSet::new();
            for cause in &write.causes {
                if changes.contains_key(cause.as_str()) {
                    origins.insert(cause.as_str());
                } else if let Some(earlier) = made_by.get(cause.as_str()).and_then(|at| follows.get(*at)) {
                    origins.extend(earlier.iter().copied());
                }
            }
            for origin in &origins {
                last_ms.insert(*origin, write.at_ms);
            }
            follows.push(origins);
        }
        let followed = |(change, last_ms): (&str, u64)| {
            let answered_ms = *answered_ms.get(*changes.get(change)?)?;
            Some(ChangeLag { answered_ms, lag_ms: last_ms.saturating_sub(answered_ms) })
        };
        last_ms.into_iter().filter_map(followed).collect()
    }

    /// Forgets the changes before a time, which can cause no further writes, and returns the lags of those that caused
    /// one. The lags of later changes stay the same, because each item loses as many records as writes.
    pub(crate) fn settle(&mut self, answered_ms: &mut Answered, before_ms: u64) -> Vec<ChangeLag> {
        let mut followed = self.followed(answered_ms);
        followed.retain(|change| change.answered_ms < before_ms);
        let is_past = |at: &usize| self.writes.get(*at).is_some_and(|write| write.at_ms < before_ms);
        let made: Vec<(&str, usize)> = self.made_by(answered_ms).into_iter().filter(|(_, at)| is_past(at)).collect();
        let past_writes: HashSet<usize> = made.iter().map(|(_, at)| *at).collect();
        let past_records: HashSet<String> = made.into_iter().map(|(id, _)| id.to_owned()).collect();
        let is_answered = |stamp: &Stamp| answered_ms.get(stamp).is_some_and(|answered_ms| *answered_ms < before_ms);
        self.records.retain(|record| !past_records.contains(&record.id) && !is_answered(&record.stamp));
        let mut at = 0..;
        self.writes.retain(|_| at.next().is_none_or(|at| !past_writes.contains(&at)));
        answered_ms.retain(|_, answered_ms| *answered_ms >= before_ms);
        followed
    }

    /// For each record of the service, the position of its write: an item's first write belongs to its first record,
    /// and so on.
    fn made_by(&self, answered_ms: &Answered) -> HashMap<&str, usize> {
        let mut of_item: HashMap<&Key, VecDeque<usize>> = HashMap::new();
        for (at, write) in self.writes.iter().enumerate() {
            of_item.entry(&write.key).or_default().push_back(at);
        }
        let ours = self.records.iter().filter(|record| is_ours(record, answered_ms));
        ours.filter_map(|record| Some((record.id.as_str(), of_item.get_mut(&record.stamp.key)?.pop_front()?))).collect()
    }
}

/// True if the service made this record: no response to the application belongs to it.
fn is_ours(record: &SeenRecord, answered_ms: &Answered) -> bool {
    record.ours || (record.is_known && !answered_ms.contains_key(&record.stamp))
}

/// A histogram of lags in whole milliseconds. Its size is bounded by the longest lag, however many lags there are.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    n_by_ms: BTreeMap<u64, usize>,
}

impl Lags {
    /// The lag at this percentile; 0 if there are no lags.
    pub(crate) fn percentile_ms(&self, percent: usize) -> u64 {
        let wanted = (self.len() * percent).div_ceil(100);
        let mut n_so_far = 0;
        for (ms, n) in &self.n_by_ms {
            n_so_far += n;
            if n_so_far >= wanted {
                return *ms;
            }
        }
        0
    }

    /// The longest lag; 0 if there are none.
    pub(crate) fn max_ms(&self) -> u64 {
        self.n_by_ms.last_key_value().map_or(0, |(ms, _)| *ms)
    }

    pub(crate) fn len(&self) -> usize {
        self.n_by_ms.values().sum()
    }
}

impl FromIterator<ChangeLag> for Lags {
    fn from_iter<T: IntoIterator<Item = ChangeLag>>(followed: T) -> Self {
        let mut lags = Self::default();
        for change in followed {
            *lags.n_by_ms.entry(change.lag_ms).or_default() += 1;
        }
        lags
    }
}

// ---- The application's store, which records the cost of its writes and the time of each response ----

/// Identifies a write in the stream: the item, and its `UpdatedAt`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    key: Key,
    updated_at: String,
    removed: bool,
}

/// Time of the response to each write, in milliseconds since the epoch.
pub(crate) type Answered = HashMap<Stamp, u64>;

/// True if the lag of this item's changes is measured.
pub(crate) type HasLag = fn(&Key) -> bool;

/// The writes so far.
#[derive(Debug, Default)]
pub(crate) struct WriteTotals {
    pub(crate) units: f64,
    /// Responses to the writes whose lag is measured.
    pub(crate) answered_ms: Answered,
    pub(crate) n_refused: usize,
}

pub(crate) struct Metered {
    store: Arc<DynamoStore>,
    has_lag: HasLag,
    written: Mutex<WriteTotals>,
}

impl Metered {
    pub(crate) fn new(store: Arc<DynamoStore>, has_lag: HasLag) -> Self {
        Self { store, has_lag, written: Mutex::default() }
    }

    pub(crate) fn written(&self) -> MutexGuard<'_, WriteTotals> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stamps of these writes. A deletion contains no time, so its stamp has the `UpdatedAt` of the deleted item.
    async fn stamps(&self, writes: &[Write]) -> Result<Vec<Stamp>, StoreError> {
        let updated_at = |item: &Item| text(item, "UpdatedAt").map(str::to_owned);
        let mut stamps = Vec::new();
        for Write { key, action, .. } in writes.iter().filter(|write| (self.has_lag)(&write.key)) {
            let removed = matches!(action, Action::Delete);
            let updated_at = match action {
                Action::Put(item) => updated_at(item),
                Action::Update(update) => updated_at(&update.set),
                Action::Delete => {
                    let old = self.store.get(Table::Main, std::slice::from_ref(key)).await?;
                    old.first().and_then(|(_, item)| updated_at(item))
                }
                Action::Check => None,
            };
            stamps.extend(updated_at.map(|updated_at| Stamp { key: key.clone(), updated_at, removed }));
        }
        Ok(stamps)
    }

    fn answered(&self, stamps: Vec<Stamp>, units: f64) {
        let now_ms = SystemClock.now_ms();
        let mut written = self.written();
        written.units += units;
        written.answered_ms.extend(stamps.into_iter().map(|stamp| (stamp, now_ms)));
    }
}

impl Store for Metered {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.store.read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let stamps = self.stamps(std::slice::from_ref(write)).await?;
        let outcome = self.store.write(write).await?;
        if let Outcome::Done { units } = outcome {
            self.answered(stamps, units);
        }
        Ok(outcome)
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let stamps = self.stamps(std::slice::from_ref(write)).await?;
        let outcome = self.store.update(write).await?;
        if let Updated::Done { units, .. } = outcome {
            self.answered(stamps, units);
        }
        Ok(outcome)
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let stamps = self.stamps(transaction.writes()).await?;
        let outcome = self.store.transact(transaction).await?;
        if let TransactOutcome::Done { units } = &outcome {
            self.answered(stamps, units.iter().map(|(_, units)| *units).sum());
        }
        Ok(outcome)
    }
}

// ---- Memory ----

/// Peak memory so far, in MB of 1,048,576 bytes; `None` if the system does not report it. Only Linux does.
pub(crate) fn peak_mb() -> Option<f64> {
    high_water_mb(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the peak from the text of a process's status, in MB with one decimal.
fn high_water_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u32 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((f64::from(kilobytes) / 1024.0 * 10.0).round() / 10.0)
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

    fn stamp(sk: &str) -> Stamp {
        Stamp { key: Key::new("P", sk), updated_at: "t".to_owned(), removed: false }
    }

    fn seen(id: &str, sk: &str, is_change: bool) -> SeenRecord {
        SeenRecord { id: id.to_owned(), stamp: stamp(sk), ours: !is_change, is_known: true, is_change }
    }

    fn done(sk: &str, at_ms: u64, causes: &[&str]) -> Done {
        Done { key: Key::new("P", sk), at_ms, causes: causes.iter().map(|&cause| cause.to_owned()).collect() }
    }

    fn lags_ms(records: &[SeenRecord], writes: Vec<Done>, answered_ms: &Answered) -> Vec<u64> {
        let mut trace = Trace { records: records.to_vec(), writes };
        let mut followed = trace.followed(answered_ms);
        followed.sort_by_key(|change| change.answered_ms);
        followed.into_iter().map(|change| change.lag_ms).collect()
    }

    #[test]
    fn the_last_write_of_a_chain_ends_the_lag_of_its_first_change() {
        let records = [seen("follow", "F", true), seen("counter", "C", false), seen("display", "D", false)];
        let writes = vec![done("D", 130, &["counter"]), done("C", 120, &["follow"])];
        assert_eq!(lags_ms(&records, writes, &HashMap::from([(stamp("F"), 100)])), [30]);
    }

    /// Two follows. Each causes a write of the counter and one of the display.
    fn two_follows() -> ([SeenRecord; 4], Vec<Done>, Answered) {
        let records = [seen("one", "F", true), seen("c1", "C", false), seen("two", "G", true), seen("c2", "C", false)];
        let writes = vec![
            done("C", 110, &["one"]),
            done("D", 120, &["c1"]),
            done("C", 1_010, &["two"]),
            done("D", 1_025, &["c2"]),
        ];
        (records, writes, HashMap::from([(stamp("F"), 100), (stamp("G"), 1_000)]))
    }

    #[test]
    fn a_later_write_on_the_same_item_is_not_taken_for_an_earlier_one() {
        let (records, writes, answered_ms) = two_follows();
        assert_eq!(lags_ms(&records, writes, &answered_ms), [20, 25]);
    }

    #[test]
    fn settled_changes_are_forgotten_and_the_lags_of_the_rest_stay_the_same() {
        let (records, writes, mut answered_ms) = two_follows();
        let mut trace = Trace { records: records.to_vec(), writes };
        trace.records.push(seen("d1", "D", false));
        assert_eq!(trace.settle(&mut answered_ms, 50), []);
        assert_eq!((trace.records.len(), trace.writes.len(), answered_ms.len()), (5, 4, 2));

        assert_eq!(trace.settle(&mut answered_ms, 500), [ChangeLag { answered_ms: 100, lag_ms: 20 }]);
        let left: Vec<&str> = trace.records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!((left, trace.writes.len(), answered_ms.len()), (vec!["two", "c2"], 2, 1));
        assert_eq!(trace.followed(&answered_ms), [ChangeLag { answered_ms: 1_000, lag_ms: 25 }]);
    }

    #[test]
    fn a_write_whose_record_is_not_there_yet_is_kept() {
        let (records, writes, mut answered_ms) = two_follows();
        let mut trace = Trace { records: records.to_vec(), writes };
        trace.settle(&mut answered_ms, 2_000);
        let left: Vec<u64> = trace.writes.iter().map(|write| write.at_ms).collect();
        assert_eq!(left, [120, 1_025]);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let lags = Lags::default();
        assert_eq!((lags.percentile_ms(99), lags.max_ms(), lags.len()), (0, 0, 0));
        let of = |lag_ms| ChangeLag { answered_ms: 0, lag_ms };
        let lags: Lags = (1..=200).rev().map(of).collect();
        assert_eq!((lags.percentile_ms(50), lags.percentile_ms(99), lags.max_ms(), lags.len()), (100, 198, 200, 200));
        let lags: Lags = (1..=200).map(of).chain([of(7); 800]).collect();
        assert_eq!((lags.percentile_ms(50), lags.percentile_ms(99), lags.max_ms()), (7, 190, 200));
    }

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        let status = "Name:\tripple\nVmPeak:\t  999999 kB\nVmHWM:\t   65664 kB\nVmRSS:\t   60000 kB\n";
        assert_eq!(high_water_mb(status), Some(64.1));
        for none in ["", "VmRSS:\t 1 kB", "VmHWM:\t many kB", "VmHWM:\t 12"] {
            assert_eq!(high_water_mb(none), None, "{none}");
        }
    }
}
