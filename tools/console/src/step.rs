//! Step mode: the stream is held before the functions, and a person decides when each record is delivered.
//!
//! A mapping invokes a function as always; the invocation waits here. While the stream is held, each record is a batch
//! of its own: the function gets it alone, once or as often as the person likes, also after later ones, or twice at
//! once, and an invocation may be killed after a number of writes. The mapping gets its response when all records of
//! its batch were delivered, so no checkpoint passes an undelivered record.
//!
//! *Why no record is delivered before an earlier undelivered one*: Lambda does not do that within a shard, and the
//! watermarks ledger relies on it.

pub(crate) mod delivering;
pub mod killing;
pub(crate) mod page;
pub(crate) mod scene;
mod through;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use derive::family::Family;
use engine::{
    batch::{Engine, Handled},
    ledger::watermarks::Sequence,
};
use store::Store;
use tokio::sync::watch;

use self::{
    delivering::{DeliveredRecord, DeliveryReport},
    killing::KillingStore,
};
use crate::flow::entry::UnansweredInvocation;
use crate::step::delivering::{BatchEnvelope, HeldBatch};

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

/// State of the stream.
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
