//! The stream, and how its records are delivered: in lanes, in batches of any size, some of them again and again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use derive::{catalogue::Catalogue, derivation::Family, schema::Schema};
use engine::{
    batch::{Engine, Handled},
    clock::Clock,
};
use keys::{
    item::{Item, text},
    key::Key,
};
use serde_json::{Value, json};

use super::{chance::Chance, faulty::Faulty, manual_clock::ManualClock};

/// A record as it stands in an event.
struct Record {
    key: Key,
    sequence_number: String,
    /// The entity that was inserted here, if the record is an insert.
    inserted: Option<String>,
    json: Value,
}

/// The stream of a table: its records, in their order.
#[derive(Default)]
pub(crate) struct Stream {
    records: Vec<Record>,
}

/// One function on the stream.
pub(crate) struct Function {
    engine: Engine<Faulty>,
    clock: Arc<ManualClock>,
    lanes: Vec<Lane>,
    n_seen: usize,
}

/// The records of some items, in their order, and how far they are done.
#[derive(Default)]
struct Lane {
    records: Vec<usize>,
    n_done: usize,
}

/// A batch, and how its invocation will go.
#[derive(Clone)]
pub(crate) struct Batch {
    lane: usize,
    /// Positions in the stream, and where each stands in its lane, if it is there by right.
    records: Vec<(usize, Option<usize>)>,
    /// Time that the invocation has.
    time_ms: u64,
    /// After so many steps it is killed.
    n_steps: usize,
}

/// How often each way of delivering occurred.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<BTreeMap<&'static str, usize>>);

impl Deliveries {
    /// Counts one of this name, if it occurred.
    pub(crate) fn count(&self, name: &'static str, occurred: bool) {
        *self.0.lock().unwrap().entry(name).or_default() += usize::from(occurred);
    }

    /// How often each occurred.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.0.lock().unwrap().clone()
    }
}

impl Stream {
    /// Takes up what was written since the last time.
    pub(crate) fn take(&mut self, store: &Faulty) {
        for (key, old, new) in store.memory().take_records() {
            // Numbers of the platform differ in length and have gaps.
            let sequence_number = (9_000 + 7 * self.records.len()).to_string();
            let json = record(self.records.len(), &key, old.as_ref(), new.as_ref(), &sequence_number);
            let inserted = new.filter(|_| old.is_none()).and_then(|new| text(&new, "EntityType").map(str::to_owned));
            self.records.push(Record { key, sequence_number, inserted, json });
        }
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Keys of the items of an entity, as often as they were inserted.
    pub(crate) fn inserts(&self, entity: &str) -> impl Iterator<Item = &Key> {
        let of = move |record: &&Record| record.inserted.as_deref() == Some(entity);
        self.records.iter().filter(of).map(|record| &record.key)
    }

    fn event(&self, batch: &Batch) -> String {
        let records: Vec<&Value> = batch.records.iter().map(|(at, _)| &self.records[*at].json).collect();
        json!({ "Records": records }).to_string()
    }
}

/// A record as Lambda delivers it.
pub(crate) fn record(number: usize, key: &Key, old: Option<&Item>, new: Option<&Item>, sequence_number: &str) -> Value {
    let name = match (old, new) {
        (None, _) => "INSERT",
        (Some(_), Some(_)) => "MODIFY",
        (Some(_), None) => "REMOVE",
    };
    let mut dynamodb = json!({
        "Keys": {"PK": {"S": key.pk}, "SK": {"S": key.sk}},
        "ApproximateCreationDateTime": 1_705_315_200,
        "SequenceNumber": sequence_number,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    });
    for (image, item) in [("OldImage", old), ("NewImage", new)] {
        if let Some(item) = item {
            dynamodb[image] = serde_json::to_value(item).unwrap();
        }
    }
    json!({"eventID": format!("event-{number}"), "eventName": name, "dynamodb": dynamodb})
}

impl Function {
    /// A function that runs these families, on so many lanes.
    pub(crate) fn new(
        (schema, catalogue): (&Arc<Schema>, &Arc<Catalogue>),
        families: Vec<Family>,
        store: &Faulty,
        n_lanes: usize,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(1_705_315_200_000));
        let shared: Arc<dyn Clock> = clock.clone();
        let engine = Engine::new(schema.clone(), catalogue.clone(), families, store.clone(), shared);
        Self { engine, clock, lanes: (0..n_lanes).map(|_| Lane::default()).collect(), n_seen: 0 }
    }

    /// Sorts new records into the lanes: those of one item into one.
    pub(crate) fn take(&mut self, stream: &Stream) {
        let n_lanes = self.lanes.len();
        for (at, record) in stream.records.iter().enumerate().skip(self.n_seen) {
            let hash =
                record.key.to_string().bytes().fold(7_usize, |hash, byte| hash * 31 % 65_521 + usize::from(byte));
            self.lanes[hash % n_lanes].records.push(at);
        }
        self.n_seen = stream.len();
    }

    /// Is everything done?
    pub(crate) fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| lane.n_done == lane.records.len())
    }

    /// Begins anew, at the first record.
    pub(crate) fn rewind(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.n_done = 0);
    }

    /// Chooses the next batch of a lane that has one.
    pub(crate) fn next_batch(&self, chance: &mut Chance, counts: &Deliveries) -> Option<Batch> {
        let waiting: Vec<usize> =
            (0..self.lanes.len()).filter(|at| self.lanes[*at].n_done < self.lanes[*at].records.len()).collect();
        let number = *chance.one_of(&waiting)?;
        let lane = &self.lanes[number];
        let n_again = if chance.percent(25) { chance.between(1, 12).min(lane.n_done) } else { 0 };
        let start = lane.n_done - n_again;
        let end = (lane.n_done + chance.between(1, 15)).min(lane.records.len());
        let mut records: Vec<(usize, Option<usize>)> = (start..end).map(|at| (lane.records[at], Some(at))).collect();
        counts.count("batches", true);
        counts.count("again", n_again > 0);
        let is_doubled = chance.percent(20);
        counts.count("doubled", is_doubled);
        if is_doubled {
            let at = chance.below(records.len());
            let doubled = (records[at].0, None);
            records.insert(chance.between(at + 1, records.len()), doubled);
        }
        let has_stray = lane.n_done > 0 && chance.percent(15);
        counts.count("strays", has_stray);
        if has_stray {
            let stray = lane.records[chance.below(lane.n_done)];
            records.insert(chance.between(0, records.len()), (stray, None));
        }
        let time_ms = if chance.percent(10) { 520 } else { 60_000 };
        let n_steps = if chance.percent(8) { chance.below(40) } else { usize::MAX };
        Some(Batch { lane: number, records, time_ms, n_steps })
    }

    /// Hands a batch to the engine; `None` when the invocation was killed.
    pub(crate) async fn invoke(&self, stream: &Stream, batch: &Batch) -> Option<Handled> {
        let event = stream.event(batch);
        let deadline_ms = self.clock.now_ms() + batch.time_ms;
        let handled = killed_after(batch.n_steps, self.engine.handle(&event, deadline_ms)).await?;
        Some(handled.unwrap())
    }

    /// Moves the lane's position to what the response says.
    pub(crate) fn commit(&mut self, stream: &Stream, batch: &Batch, handled: Option<&Handled>, counts: &Deliveries) {
        counts.count("killed", handled.is_none());
        let Some(handled) = handled else { return };
        let lane = &mut self.lanes[batch.lane];
        let undone = handled.failed_from.as_ref().map(|number| {
            let is_lowest = |(at, _): &(usize, Option<usize>)| stream.records[*at].sequence_number == *number;
            let lowest = batch.records.iter().position(is_lowest).unwrap_or(0);
            batch.records[lowest..].iter().filter_map(|(_, in_lane)| *in_lane).min()
        });
        counts.count("partial", undone.is_some());
        let end = batch.records.iter().filter_map(|(_, in_lane)| *in_lane).max().map_or(lane.n_done, |last| last + 1);
        lane.n_done = undone.flatten().unwrap_or(end);
    }
}

/// Polls a future so many times, and drops it when it is not ready then.
async fn killed_after<F: Future>(mut n_polls: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        if n_polls == 0 {
            return std::task::Poll::Ready(None);
        }
        n_polls -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
