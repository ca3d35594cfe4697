//! Step mode: the stream is held before the functions, and a person decides when each record is delivered.
//!
//! A mapping invokes a function as always; the invocation waits here. While the stream is held, each record is a batch
//! of its own: the function gets it alone, once or as often as the person likes, also after later ones, or twice at
//! once, and an invocation may be killed after a number of writes. The mapping gets its response when all records of
//! its batch were delivered, so no checkpoint passes an undelivered record.
//!
//! *Why no record is delivered before an earlier undelivered one*: Lambda does not do that within a shard, and the
//! watermarks ledger relies on it.
//!
//! # Killed invocations
//!
//! [`KillingStore`] ends an invocation after a number of writes, as Lambda does at a time-out, at any point of the
//! invocation. A call counts if it writes into the application's table. Writes to the ledger alone, such as the note of
//! a new stream shard, do not count.
//!
//! *Keeps true*: a write is either sent and gets its response, or is not sent at all, so the listed writes are those
//! that happened. The first write beyond the limit never gets a response; the caller of the invocation then drops it.

pub(crate) mod act;
mod delivering;
pub(crate) mod page;
pub(crate) mod scene;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use derive::{
    family::Family,
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use engine::{
    batch::{Engine, Handled},
    ledger::watermarks::Sequence,
    record::key_of,
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Units, Updated};
use tokio::sync::watch;

use crate::{
    flow::entry::UnansweredInvocation,
    step::delivering::{BatchEnvelope, DeliveredRecord, DeliveryReport, DeliveryWay, EndedHow, HeldBatch, WhichRecord},
};

/// Records that can be delivered again: the last ones.
const DELIVERED_MAX: usize = 30;

/// Stored reports: the last ones.
const REPORTS_MAX: usize = 60;

/// A function whose invocations can be held.
pub trait SteppedFunction<S>: Send + Sync {
    /// Its name.
    fn name(&self) -> String;

    /// The families of derivations that it runs.
    fn families(&self) -> Vec<Family>;

    /// An instance of the function with this store.
    fn instance(&self, store: Arc<KillingStore<Arc<S>>>) -> Engine<Arc<KillingStore<Arc<S>>>>;

    /// An instance has handled a batch.
    fn handled(&self, handled: &Handled, elapsed: Duration);

    /// An instance ended without an answer.
    fn unanswered(&self, unanswered: &UnansweredInvocation, elapsed: Duration);
}

/// Result of an invocation that waited at the gate.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// The function gets this event.
    Handle(String),
    /// The function has handled all records of the event, and returned this state of the tumbling window.
    Delivered {
        /// JSON of that state; `None` without a window.
        state: Option<String>,
    },
    /// The service stops. The function has handled the records before this one.
    Stopped {
        /// Sequence number of the first unhandled record; `None` if the function has handled none.
        failed_from: Option<String>,
        /// JSON of the state of the tumbling window.
        state: Option<String>,
    },
}

/// True if everything written before a moment is handled, with all its effects.
pub type QuietSince = Box<dyn Fn(Instant) -> bool + Send + Sync>;

/// Holds the stream before the functions of this process.
pub struct StepGate<S> {
    pub(crate) functions: Vec<Arc<dyn SteppedFunction<S>>>,
    store: Arc<S>,
    held: Mutex<HeldStream>,
    /// Number of changes to the state.
    changes: watch::Sender<u64>,
    /// Only one record is delivered at a time.
    delivering: tokio::sync::Mutex<()>,
    quiet: OnceLock<QuietSince>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamFlow {
    /// The functions get the records at once.
    #[default]
    Flows,
    /// The functions get the records that a person delivers.
    Held,
    /// The service stops.
    Stops,
}

/// The held and the delivered records.
#[derive(Default)]
pub(crate) struct HeldStream {
    pub(crate) flow: StreamFlow,
    /// Held invocations by their number, each with the position of its function.
    batches: BTreeMap<u64, (usize, HeldBatch)>,
    n_batches: u64,
    /// The invocation whose record is being delivered.
    busy: Option<u64>,
    /// The newest first.
    pub(crate) delivered: VecDeque<DeliveredRecord>,
    /// The newest first.
    pub(crate) reports: VecDeque<DeliveryReport>,
    n_reports: u64,
}

impl<S: Store + 'static> StepGate<S> {
    /// A gate before these functions with their store. The stream flows.
    #[must_use]
    pub fn new(store: &Arc<S>, functions: Vec<Arc<dyn SteppedFunction<S>>>) -> Self {
        let (store, delivering) = (Arc::clone(store), tokio::sync::Mutex::default());
        let quiet = OnceLock::new();
        Self { functions, store, held: Mutex::default(), changes: watch::Sender::default(), delivering, quiet }
    }

    /// Tells the gate how to check that everything is handled.
    pub fn watches(&self, quiet: QuietSince) {
        // Only the first call has an effect.
        drop(self.quiet.set(quiet));
    }

    fn is_quiet(&self, since: Instant) -> bool {
        self.quiet.get().is_some_and(|is_quiet| is_quiet(since))
    }

    /// Lets an invocation of a function through, or holds it until its records were delivered.
    pub async fn pass(&self, function: &str, event: String) -> Passage {
        if self.held().flow == StreamFlow::Flows {
            return Passage::Handle(event);
        }
        let at = self.functions.iter().position(|it| it.name() == function);
        let (Some(at), Some(batch)) = (at, HeldBatch::of(&event)) else { return Passage::Handle(event) };
        let number = self.changed(|held| {
            held.n_batches += 1;
            held.batches.insert(held.n_batches, (at, batch));
            held.n_batches
        });
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(passage) = self.held().passage(number) {
                return passage;
            }
            // The sender lives as long as the gate.
            drop(changes.changed().await);
        }
    }

    /// Releases all held invocations, because the service stops: the mapping gets no response for undelivered records.
    pub fn stop(&self) {
        self.changed(|held| held.flow = StreamFlow::Stops);
    }

    /// Holds the stream, or lets it flow.
    pub(crate) fn hold(&self, is_held: bool) {
        self.changed(|held| match held.flow {
            StreamFlow::Stops => {}
            _ if is_held => held.flow = StreamFlow::Held,
            _ => held.flow = StreamFlow::Flows,
        });
    }

    /// The held and the delivered records.
    pub(crate) fn held(&self) -> MutexGuard<'_, HeldStream> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the number of changes to the state.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes the state.
    fn changed<T>(&self, change: impl FnOnce(&mut HeldStream) -> T) -> T {
        let changed = change(&mut self.held());
        self.changes.send_modify(|n| *n += 1);
        changed
    }
}

/// The next record of a function, and its invocation.
pub(crate) struct NextRecord {
    number: u64,
    envelope: BatchEnvelope,
    record: delivering::HeldRecord,
}

impl HeldStream {
    /// The result for an invocation; `None` while it is held.
    fn passage(&mut self, number: u64) -> Option<Passage> {
        let (_, batch) = self.batches.get(&number).filter(|_| self.busy != Some(number))?;
        let state = batch.envelope.state.clone();
        let passage = match (batch.waiting.front(), self.flow) {
            (None, _) => Passage::Delivered { state },
            (Some(_), StreamFlow::Held) => return None,
            (Some(_), StreamFlow::Flows) => Passage::Handle(batch.rest()),
            (Some(first), StreamFlow::Stops) => {
                let failed_from = (batch.n_delivered > 0).then(|| first.sequence_number.clone());
                Passage::Stopped { failed_from, state }
            }
        };
        self.batches.remove(&number);
        Some(passage)
    }

    /// The next record of a function, in the order of the stream.
    pub(crate) fn next(&self, function: usize) -> Option<NextRecord> {
        let ours = self.batches.iter().filter(|(_, (at, _))| *at == function);
        let firsts = ours.filter_map(|(number, (_, batch))| Some((number, batch, batch.waiting.front()?)));
        let (number, batch, record) = firsts.min_by_key(|(_, _, record)| Sequence::parse(&record.sequence_number))?;
        Some(NextRecord { number: *number, envelope: batch.envelope.clone(), record: record.clone() })
    }

    /// Number of held records of a function.
    pub(crate) fn n_waiting(&self, function: usize) -> usize {
        self.batches.values().filter(|(at, _)| *at == function).map(|(_, batch)| batch.waiting.len()).sum()
    }
}

// ---- Delivering records at once that are not part of a scene ----

/// Longest wait for a record, and for the end of its effects.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Time between two checks that everything is handled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Number of deliveries of a record that is not done.
const TRIES_MAX: usize = 20;

impl<S: Store + 'static> StepGate<S> {
    /// Delivers a function's records until its next record is of this item.
    ///
    /// # Errors
    ///
    /// Why the record does not come, for a person.
    async fn bring(&self, function: usize, key: &Key, layout: &Layout) -> Result<(), String> {
        let (began, mut n_failed) = (Instant::now(), 0);
        loop {
            let next = self.held().next(function).map(|next| key_of(layout, &next.record.json));
            match next {
                Some(of) if of.as_ref() == Some(key) => return Ok(()),
                Some(_) => self.deliver_next(function, &mut n_failed).await?,
                None if began.elapsed() > WAIT_MAX => return Err(format!("no record of {key} has come in a minute")),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Delivers all records, until everything written before is handled, with all its effects.
    ///
    /// # Errors
    ///
    /// Why it does not end, for a person.
    async fn let_through(&self) -> Result<(), String> {
        let (began, mut n_failed) = (Instant::now(), 0);
        loop {
            for function in 0..self.functions.len() {
                while self.held().next(function).is_some() {
                    self.deliver_next(function, &mut n_failed).await?;
                }
            }
            if self.is_quiet(began) {
                return Ok(());
            }
            if began.elapsed() > WAIT_MAX {
                return Err("records still come after a minute, because others write into the table".to_owned());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn deliver_next(&self, function: usize, n_failed: &mut usize) -> Result<(), String> {
        let report = self.deliver_unseen(function, &WhichRecord::Next, DeliveryWay::Once).await;
        for end in report.iter().flat_map(|report| &report.ends) {
            if let EndedHow::Again(why) = &end.how {
                *n_failed += 1;
                if *n_failed >= TRIES_MAX {
                    return Err(format!("a record is not done after {TRIES_MAX} deliveries: {why}"));
                }
            }
        }
        Ok(())
    }
}

// ---- A store that ends an invocation ----

/// A store that limits the number of calls that write.
#[derive(Debug)]
pub struct KillingStore<S> {
    store: S,
    /// Limit on the calls that write; no limit if `None`.
    n_calls_max: Option<usize>,
    calls: watch::Sender<WriteCalls>,
    landed: Mutex<Vec<LandedWrite>>,
}

/// Number of calls that write.
#[derive(Clone, Copy, Debug, Default)]
struct WriteCalls {
    /// The counted ones.
    n_done: usize,
    n_counting: usize,
    /// All calls in flight.
    n_under_way: usize,
    /// True if another call tried to write.
    is_over: bool,
}

/// A write that was done.
#[derive(Clone, Debug)]
struct LandedWrite {
    write: Write,
    /// Its write units; those of a transaction are with its first write.
    units: Units,
}

impl<S: Store> KillingStore<S> {
    /// A store that answers no write after this number of calls that write.
    #[must_use]
    pub fn new(store: S, n_calls_max: Option<usize>) -> Self {
        Self { store, n_calls_max, calls: watch::Sender::default(), landed: Mutex::default() }
    }

    /// Waits until the limit is reached and another call tries to write.
    pub async fn killed(&self) {
        let ended = |calls: &WriteCalls| calls.is_over && calls.n_under_way == 0;
        // The sender lives as long as the store.
        drop(self.calls.subscribe().wait_for(ended).await);
    }

    /// True if the limit is reached.
    fn is_used_up(&self) -> bool {
        self.n_calls_max.is_some_and(|n_max| self.calls.borrow().n_done >= n_max)
    }

    /// The writes that were done.
    fn landed(&self) -> MutexGuard<'_, Vec<LandedWrite>> {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call write, or blocks it forever.
    async fn admitted(&self, writes: &[Write]) {
        let (mut changes, counts) = (self.calls.subscribe(), usize::from(counts(writes)));
        let n_max = self.n_calls_max.unwrap_or(usize::MAX);
        loop {
            let mut is_admitted = false;
            self.calls.send_if_modified(|calls| {
                is_admitted = calls.n_done + calls.n_counting < n_max;
                calls.n_counting += if is_admitted { counts } else { 0 };
                calls.n_under_way += usize::from(is_admitted);
                // A call in flight may turn out to write nothing, and leaves its place to this one.
                let is_over = !is_admitted && calls.n_done >= n_max;
                let is_new = is_admitted || is_over != calls.is_over;
                calls.is_over = is_over;
                is_new
            });
            if is_admitted {
                return;
            }
            drop(changes.changed().await);
        }
    }

    /// Notes how a call ended: whether it wrote, and its units.
    fn ended(&self, writes: &[Write], done: Option<Units>) {
        if let Some(units) = done {
            let units = std::iter::once(units).chain(std::iter::repeat(0.0));
            let landed = writes.iter().cloned().zip(units).map(|(write, units)| LandedWrite { write, units });
            self.landed().extend(landed);
        }
        let counts = usize::from(counts(writes));
        self.calls.send_modify(|calls| {
            calls.n_under_way -= 1;
            calls.n_counting -= counts;
            calls.n_done += if done.is_some() { counts } else { 0 };
        });
    }
}

/// True if a call with these writes writes into the application's table.
fn counts(writes: &[Write]) -> bool {
    writes.iter().any(|write| write.table == Table::Main)
}

impl<S: Store> Store for KillingStore<S> {
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
        let writes = std::slice::from_ref(write);
        self.admitted(writes).await;
        let outcome = self.store.write(write).await;
        let done = match &outcome {
            Ok(Outcome::Done { units }) => Some(*units),
            _ => None,
        };
        self.ended(writes, done);
        outcome
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let writes = std::slice::from_ref(write);
        self.admitted(writes).await;
        let outcome = self.store.update(write).await;
        let done = match &outcome {
            Ok(Updated::Done { units, .. }) => Some(*units),
            _ => None,
        };
        self.ended(writes, done);
        outcome
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.admitted(transaction.writes()).await;
        let outcome = self.store.transact(transaction).await;
        let done = match &outcome {
            Ok(TransactOutcome::Done { units }) => Some(units.iter().map(|(_, units)| units).sum()),
            _ => None,
        };
        self.ended(transaction.writes(), done);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use derive::write::Action;
    use futures::FutureExt as _;
    use keys::layout::Layout;
    use store::memory::MemoryStore;

    use super::*;

    fn put(layout: &Layout, name: &str) -> Write {
        let key = Key::new(name, "S");
        let table = if name == "noted" { Table::Ledger } else { Table::Main };
        Write { table, action: Action::Put(layout.key_item(&key)), key, guard: None }
    }

    #[test]
    fn a_write_after_the_last_one_is_never_answered_and_does_not_land() {
        let layout = Layout::of("PK", "SK");
        let killing = KillingStore::new(MemoryStore::new(layout.clone()), Some(1));
        for name in ["noted", "first"] {
            assert!(killing.write(&put(&layout, name)).now_or_never().unwrap().is_ok());
        }
        assert!(killing.is_used_up() && killing.killed().now_or_never().is_none(), "nobody wanted more");
        assert!(killing.write(&put(&layout, "noted")).now_or_never().is_none());
        assert!(killing.write(&put(&layout, "second")).now_or_never().is_none());
        assert!(killing.killed().now_or_never().is_some());
        let landed: Vec<String> = killing.landed().iter().map(|it| it.write.key.pk.clone()).collect();
        assert_eq!(landed, ["noted", "first"]);
        assert!(killing.store.get(Table::Main, &[Key::new("second", "S")]).now_or_never().unwrap().unwrap().is_empty());
    }

    #[test]
    fn without_a_limit_all_is_written() {
        let layout = Layout::of("PK", "SK");
        let killing = KillingStore::new(MemoryStore::new(layout.clone()), None);
        for name in ["first", "second"] {
            assert!(killing.write(&put(&layout, name)).now_or_never().unwrap().is_ok());
        }
        assert!(!killing.is_used_up());
        assert_eq!(killing.landed().len(), 2);
    }
}
