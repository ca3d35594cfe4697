//! Delivers a record to a function, in the way that a person chose.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use derive::{
    catalogue::Catalogue,
    position::RecordAt,
    schema::Schema,
    write::{Action, Table},
};
use engine::{
    account::Commit,
    backoff::describe,
    batch::Handled,
    clock::{Clock as _, SystemClock},
};
use keys::counter::CounterKey;
use operate::words::written;
use serde_json::{Value, value::RawValue};
use store::Store;

use crate::{
    flow::entry::{FlowWrite, NoAnswer, UnansweredInvocation},
    step::{DELIVERED_MAX, HeldStream, KillingStore, LandedWrite, REPORTS_MAX, StepGate},
};

/// Time limit of an invocation, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// The record to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WhichRecord {
    /// The next one.
    Next,
    /// The delivered one with this sequence number, again.
    Again(String),
}

/// How the record is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryWay {
    /// To one instance.
    Once,
    /// To two instances at the same time.
    AtOnce,
    /// To one instance, which is killed after this many writes.
    Killed(usize),
}

/// A record that was delivered to a function.
#[derive(Clone, Debug)]
pub(crate) struct DeliveredRecord {
    pub(crate) function: usize,
    envelope: BatchEnvelope,
    pub(super) record: HeldRecord,
}

#[derive(Clone, Debug)]
pub(crate) struct DeliveryReport {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) function: usize,
    /// JSON of the record.
    pub(crate) record: String,
    pub(crate) is_again: bool,
    pub(crate) way: DeliveryWay,
    /// The end of each instance.
    pub(crate) ends: Vec<InvocationEnd>,
}

/// How an invocation with one record ended.
#[derive(Clone, Debug)]
pub(crate) struct InvocationEnd {
    pub(crate) how: EndedHow,
    pub(crate) writes: Vec<FlowWrite>,
    /// Changes that were counted already.
    pub(crate) n_duplicates: usize,
    /// Items that were already correct.
    pub(crate) n_in_step: usize,
    /// Items that cannot be read, and are listed.
    pub(crate) n_unreadable: usize,
}

/// How it ended, for Lambda.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndedHow {
    /// The record is done.
    Done,
    /// It is done, and was parked.
    Parked(String),
    /// The function reports that the record must be redelivered.
    Again(String),
    /// The invocation was killed.
    Killed,
}

impl<S: Store + 'static> StepGate<S> {
    /// Delivers a record to a function, and stores the result; `None` if there is no record.
    pub(crate) async fn deliver(
        &self,
        function: usize,
        which: &WhichRecord,
        way: DeliveryWay,
    ) -> Option<DeliveryReport> {
        let (delivered, report) = self.delivered(function, which, way).await?;
        Some(self.changed(|held| held.keep(delivered, report)))
    }

    /// Delivers a record to a function, and stores nothing.
    pub(super) async fn deliver_unseen(
        &self,
        function: usize,
        which: &WhichRecord,
        way: DeliveryWay,
    ) -> Option<DeliveryReport> {
        self.delivered(function, which, way).await.map(|(_, report)| report)
    }

    async fn delivered(
        &self,
        function: usize,
        which: &WhichRecord,
        way: DeliveryWay,
    ) -> Option<(DeliveredRecord, DeliveryReport)> {
        let _one_at_a_time = self.delivering.lock().await;
        let (number, envelope, record) = self.changed(|held| held.taken(function, which))?;
        let event = envelope.event(std::iter::once(record.json.as_str()));
        // An invocation's future is large, so it is boxed.
        let invoked = |n_writes_max| Box::pin(self.invoke(function, &event, n_writes_max));
        let (ends, state) = match way {
            DeliveryWay::AtOnce => {
                let (one, other) = tokio::join!(invoked(None), invoked(None));
                (vec![one.0, other.0], one.1.or(other.1))
            }
            DeliveryWay::Once => {
                let (end, state) = invoked(None).await;
                (vec![end], state)
            }
            DeliveryWay::Killed(n_writes) => {
                let (end, state) = invoked(Some(n_writes)).await;
                (vec![end], state)
            }
        };
        let report = DeliveryReport {
            number: 0,
            function,
            record: record.json.clone(),
            is_again: number.is_none() || record.n_failed > 0,
            way,
            ends,
        };
        self.changed(|held| held.settle(number, report.is_done(), state));
        Some((DeliveredRecord { function, envelope, record }, report))
    }

    /// One invocation: how it ended, and its returned state.
    async fn invoke(&self, at: usize, event: &str, n_writes_max: Option<usize>) -> (InvocationEnd, Option<String>) {
        let Some(function) = self.functions.get(at) else { return (failed("there is no such function"), None) };
        let store = Arc::new(KillingStore::new(Arc::clone(&self.store), n_writes_max));
        let instance = function.instance(Arc::clone(&store));
        let (began, deadline_ms) = (Instant::now(), SystemClock.now_ms().saturating_add(INVOCATION_MS));
        // Registering is not part of the record's writes, so another instance does it before.
        let unlimited = function.instance(Arc::new(KillingStore::new(Arc::clone(&self.store), None)));
        if let Err(error) = unlimited.publish(deadline_ms).await {
            return (failed(&describe(&error)), None);
        }
        let handled = tokio::select! {
            biased;
            () = store.killed() => None,
            handled = Box::pin(instance.handle(event, deadline_ms)) => Some(handled),
        };
        let (schema, catalogue) = (instance.schema(), instance.catalogue());
        match handled {
            Some(Ok(handled)) if !store.is_used_up() => {
                function.handled(&handled, began.elapsed());
                (ended(schema, catalogue, &handled), handled.state)
            }
            Some(Err(error)) => {
                let why = NoAnswer::Failed(error.to_string());
                let unanswered = UnansweredInvocation { event: event.to_owned(), commits: Vec::new(), why };
                function.unanswered(&unanswered, began.elapsed());
                (failed(&error.to_string()), None)
            }
            _ => {
                let commits: Vec<Commit> =
                    store.landed().iter().filter(|it| it.write.action != Action::Check).map(commit).collect();
                let writes = shown(schema, catalogue, &commits);
                let unanswered = UnansweredInvocation { event: event.to_owned(), commits, why: NoAnswer::Killed };
                function.unanswered(&unanswered, began.elapsed());
                let end =
                    InvocationEnd { how: EndedHow::Killed, writes, n_duplicates: 0, n_in_step: 0, n_unreadable: 0 };
                (end, None)
            }
        }
    }
}

impl HeldStream {
    /// The record to deliver: the number of its invocation if it is held, and its event.
    fn taken(&mut self, function: usize, which: &WhichRecord) -> Option<(Option<u64>, BatchEnvelope, HeldRecord)> {
        match which {
            WhichRecord::Next => {
                let next = self.next(function)?;
                self.busy = Some(next.number);
                Some((Some(next.number), next.envelope, next.record))
            }
            WhichRecord::Again(number) => {
                let is_it = |it: &&DeliveredRecord| it.function == function && it.record.sequence_number == *number;
                let found = self.delivered.iter().find(is_it)?;
                Some((None, found.envelope.clone(), found.record.clone()))
            }
        }
    }

    /// Ends the delivery of a held invocation's record.
    fn settle(&mut self, number: Option<u64>, is_done: bool, state: Option<String>) {
        self.busy = None;
        let Some((_, batch)) = number.and_then(|number| self.batches.get_mut(&number)) else { return };
        if is_done {
            batch.waiting.pop_front();
            batch.n_delivered += 1;
            batch.envelope.state = state.or(batch.envelope.state.take());
        } else if let Some(record) = batch.waiting.front_mut() {
            record.n_failed += 1;
        }
    }

    /// Stores a delivery for the page.
    fn keep(&mut self, delivered: DeliveredRecord, report: DeliveryReport) -> DeliveryReport {
        let is_it = |it: &DeliveredRecord| {
            it.function == delivered.function && it.record.sequence_number == delivered.record.sequence_number
        };
        if report.is_done() && !self.delivered.iter().any(is_it) {
            self.delivered.push_front(delivered);
            self.delivered.truncate(DELIVERED_MAX);
        }
        self.n_reports += 1;
        let report = DeliveryReport { number: self.n_reports, ..report };
        self.reports.push_front(report.clone());
        self.reports.truncate(REPORTS_MAX);
        report
    }
}

impl DeliveryReport {
    /// True if the record is done, according to one of the invocations.
    fn is_done(&self) -> bool {
        self.ends.iter().any(|end| !matches!(end.how, EndedHow::Again(_) | EndedHow::Killed))
    }
}

/// The end of an invocation that got a response from the function.
fn ended(schema: &Schema, catalogue: &Catalogue, handled: &Handled) -> InvocationEnd {
    let account = &handled.account;
    let again = || account.undone.values().next().cloned().unwrap_or_default();
    let how = match (&handled.failed_from, &account.standing, account.parked.first()) {
        (_, Some(why), _) => EndedHow::Again(why.clone()),
        (Some(_), None, _) => EndedHow::Again(again()),
        (None, None, Some(parked)) => EndedHow::Parked(parked.cause.clone()),
        (None, None, None) => EndedHow::Done,
    };
    InvocationEnd {
        how,
        writes: shown(schema, catalogue, &account.commits),
        n_duplicates: account.n_duplicates,
        n_in_step: account.n_in_step,
        n_unreadable: account.unreadable.len(),
    }
}

fn failed(why: &str) -> InvocationEnd {
    let how = EndedHow::Again(why.to_owned());
    InvocationEnd { how, writes: Vec::new(), n_duplicates: 0, n_in_step: 0, n_unreadable: 0 }
}

fn shown(schema: &Schema, catalogue: &Catalogue, commits: &[Commit]) -> Vec<FlowWrite> {
    let write = |commit: &Commit| FlowWrite::new(commit, written(schema, catalogue, commit), catalogue);
    commits.iter().map(write).collect()
}

/// A write of a killed invocation. Only a counter's key names its derivation.
fn commit(landed: &LandedWrite) -> Commit {
    let LandedWrite { write, units } = landed;
    let counter = CounterKey::parse(&write.key).filter(|_| write.table == Table::Main);
    Commit {
        key: write.key.clone(),
        table: write.table,
        action: Some(write.action.clone()),
        at_ms: SystemClock.now_ms(),
        units: *units,
        derivations: counter.map(|counter| counter.derivation).into_iter().collect(),
        causes: [RecordAt(0)].into(),
        is_correction: false,
    }
}

// ---- A held invocation, with its undelivered records ----

/// An invocation of a function, held before the function gets it.
#[derive(Debug)]
pub(super) struct HeldBatch {
    /// Everything in the event but its records and the state of its tumbling window.
    pub(super) envelope: BatchEnvelope,
    /// The undelivered records, in order.
    pub(super) waiting: VecDeque<HeldRecord>,
    /// Number of delivered records.
    pub(super) n_delivered: usize,
}

/// The fields of an event besides its records.
#[derive(Clone, Debug)]
pub(super) struct BatchEnvelope {
    /// Other fields, each with its JSON text.
    fields: BTreeMap<String, Box<RawValue>>,
    /// JSON of the state of the tumbling window; `None` without a window.
    pub(super) state: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct HeldRecord {
    /// Its JSON text, as the function gets it.
    pub(super) json: String,
    pub(super) sequence_number: String,
    /// How many invocations with it were killed or failed.
    pub(super) n_failed: usize,
}

impl HeldBatch {
    /// The parts of an event; `None` for an event without records, which need not be held.
    pub(super) fn of(event: &str) -> Option<Self> {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(event).ok()?;
        let records: Vec<Box<RawValue>> = serde_json::from_str(fields.remove("Records")?.get()).ok()?;
        let state = fields.remove("state").map(|state| state.get().to_owned());
        let record = |json: Box<RawValue>| HeldRecord {
            json: json.get().to_owned(),
            sequence_number: engine::record::head(json.get()).sequence_number.unwrap_or_default(),
            n_failed: 0,
        };
        let waiting: VecDeque<HeldRecord> = records.into_iter().map(record).collect();
        let envelope = BatchEnvelope { fields, state };
        (!waiting.is_empty()).then_some(Self { envelope, waiting, n_delivered: 0 })
    }

    /// The event with the remaining records.
    pub(super) fn rest(&self) -> String {
        self.envelope.event(self.waiting.iter().map(|record| record.json.as_str()))
    }
}

impl BatchEnvelope {
    /// An event with these records.
    pub(super) fn event<'a>(&self, records: impl Iterator<Item = &'a str>) -> String {
        let records = records.collect::<Vec<_>>().join(",");
        let state = self.state.iter().map(|state| format!(r#","state":{state}"#));
        let fields = self.fields.iter().map(|(name, value)| format!(",{}:{}", Value::from(name.as_str()), value.get()));
        let more: String = state.chain(fields).collect();
        format!(r#"{{"Records":[{records}]{more}}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_cut_and_put_together_as_it_was() {
        let first =
            r#"{"eventID":"a","dynamodb":{"SequenceNumber":"1","NewImage":{"N":{"N":"12345678901234567890.50"}}}}"#;
        let second = r#"{"eventID":"b","dynamodb":{"SequenceNumber":"2"}}"#;
        let state = r#"{"n":12345678901234567890.50}"#;
        let event =
            format!(r#"{{"Records":[{first},{second}],"state":{state},"shardId":"s","window":{{"start":"t"}}}}"#);
        let mut batch = HeldBatch::of(&event).unwrap();
        assert_eq!(batch.rest(), event);
        let numbers: Vec<&str> = batch.waiting.iter().map(|record| record.sequence_number.as_str()).collect();
        assert_eq!(numbers, ["1", "2"]);
        let delivered = batch.waiting.pop_front().unwrap();
        batch.envelope.state = Some("{}".to_owned());
        let tail = r#","state":{},"shardId":"s","window":{"start":"t"}}"#;
        assert_eq!(batch.rest(), format!(r#"{{"Records":[{second}]{tail}"#));
        assert_eq!(
            batch.envelope.event([delivered.json.as_str()].into_iter()),
            format!(r#"{{"Records":[{first}]{tail}"#)
        );
        assert!(HeldBatch::of(r#"{"Records":[],"state":{}}"#).is_none() && HeldBatch::of("no event").is_none());
        assert_eq!(
            HeldBatch::of(&format!(r#"{{"Records":[{first}]}}"#)).unwrap().rest(),
            format!(r#"{{"Records":[{first}]}}"#)
        );
    }
}
