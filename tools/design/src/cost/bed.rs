//! The functions on the store's model, the resources that they use for new items, and when a function is invoked with
//! which records: Lambda's event source mapping in simulated time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::{pending, ready},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use derive::{
    family::Family,
    guard::Ask,
    query::{Consistency, Query},
    schema::Schema,
    write::{Table, Write},
};
use engine::{
    batch::{Engine, Handled},
    clock::Clock,
    ledger::LedgerKind,
};
use futures::{FutureExt as _, future::BoxFuture};
use infra::mapping::{Needed, StreamTable, entities, needed};
use keys::{
    counter::{COUNTER, CounterKey},
    item::{Item, text},
    key::Key,
    size::item_bytes,
    tables::Place,
};
use serde_json::{Map, Value, json};
use store::{
    Store as _,
    memory::MemoryStore,
    recording::{Recording, Request},
};

use super::{
    Load,
    usage::{HEARTBEATS, InvocationUsage, LoadUsage, LogBytes, OTHER, RECEIPTS, SampleEngine},
    world::scattered,
};
use crate::Design;

/// Bytes of a read unit. Source: DynamoDB, "Read and write operations".
const READ_UNIT_BYTES: usize = 4_096;

/// Time limit of an invocation of the run, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// The time at the start of a run, in milliseconds since the epoch.
const START_MS: u64 = 1_700_000_000_000;

/// The simulated time of a run, so that neither the machine nor the day of it changes what is counted.
#[derive(Debug, Default)]
struct RunClock {
    /// Milliseconds since the start.
    now_ms: AtomicU64,
    n_chances: AtomicU64,
}

impl Clock for RunClock {
    fn now_ms(&self) -> u64 {
        START_MS.saturating_add(self.now_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }

    fn until(&self, _at_ms: u64) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    fn chance(&self, below: u64) -> u64 {
        scattered(self.n_chances.fetch_add(1, Ordering::Relaxed)).checked_rem(below).unwrap_or_default()
    }
}

/// The functions over the model.
pub(super) struct SampleBed<'a> {
    design: &'a Design,
    load: &'a Load,
    log: LogBytes<'a>,
    pub(super) store: Arc<MemoryStore>,
    requests: Arc<Recording<Arc<MemoryStore>>>,
    functions: [SampleFunction; 2],
    clock: Arc<RunClock>,
    n_records: u64,
    n_batches: u64,
    /// Keys that were read.
    pub(super) read: BTreeSet<Key>,
}

/// A function, with the records that it gets.
struct SampleFunction {
    engine: SampleEngine,
    family: Family,
    /// The entities whose records pass its filters.
    entities: BTreeSet<String>,
    /// The tables of which it gets all records, because no filter can separate them.
    unfiltered: BTreeSet<String>,
}

/// A record of the stream: its table, the key of its item, its entity, and its text.
struct StreamRecord {
    table: String,
    key: Key,
    entity: Option<String>,
    text: Value,
}

impl SampleFunction {
    fn needs(&self, record: &StreamRecord) -> bool {
        let is_needed = record.entity.as_ref().is_some_and(|name| self.entities.contains(name));
        is_needed || self.unfiltered.contains(&record.table)
    }
}

/// Items that an application puts one after the other.
pub(super) struct Arriving<'a> {
    /// Each with its time, in milliseconds.
    pub(super) items: &'a [(u64, Item)],
    /// Shards of each table's stream.
    pub(super) n_shards: u64,
    /// The time that is counted, in milliseconds.
    pub(super) counted: Range<u64>,
}

impl<'a> SampleBed<'a> {
    pub(super) fn new(design: &'a Design, load: &'a Load, log: LogBytes<'a>) -> Self {
        let (schema, catalogue) = (Arc::new(design.schema.clone()), Arc::new(design.catalogue.clone()));
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let requests = Arc::new(Recording::new(Arc::clone(&store)));
        let run_clock = Arc::new(RunClock::default());
        let function = |family| {
            let clock = Arc::clone(&run_clock) as Arc<dyn Clock>;
            let (schema, catalogue) = (Arc::clone(&schema), Arc::clone(&catalogue));
            let is_unfiltered =
                |table: &StreamTable<'_>| needed(*table, &design.catalogue, &[family]) == Needed::Everything;
            let unfiltered = StreamTable::all(&design.schema).filter(is_unfiltered);
            let unfiltered = unfiltered.map(|table| table.form().map_or_else(String::new, |form| form.name.clone()));
            let engine = Engine::new(schema, catalogue, vec![family], Arc::clone(&requests), clock);
            SampleFunction {
                engine: engine.with_ledger(load.ledger),
                family,
                entities: entities(&design.catalogue, &[family]).into_iter().map(str::to_owned).collect(),
                unfiltered: unfiltered.collect(),
            }
        };
        let functions = [Family::Additive, Family::LevelTriggered].map(function);
        Self {
            design,
            load,
            log,
            store,
            requests,
            functions,
            clock: run_clock,
            n_records: 0,
            n_batches: 0,
            read: BTreeSet::new(),
        }
    }

    /// True if the item exists.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.store.view(Table::Main, |items| items.contains_key(key))
    }

    /// Puts items at once, and delivers records until no more come. Nothing is counted.
    pub(super) async fn put(&mut self, items: &[Item]) {
        for item in items {
            // The model takes every item that has a key.
            let _is_put = self.store.put_raw(Table::Main, item.clone());
        }
        loop {
            let records = self.records();
            if records.is_empty() {
                return;
            }
            for at in 0..self.functions.len() {
                let needed = self.functions.get(at).map(|function| records.iter().filter(|it| function.needs(it)));
                let texts: Vec<&Value> = needed.into_iter().flatten().map(|record| &record.text).collect();
                if !texts.is_empty() {
                    self.invoke(at, 0, &texts, None).await;
                }
            }
        }
    }

    /// Puts items at their times, and invokes the functions as Lambda does until no more records come.
    pub(super) async fn run(&mut self, arriving: &Arriving<'_>) -> LoadUsage {
        let mut used = LoadUsage::default();
        let mut paces: BTreeMap<(String, usize, u64), ShardPace<Value>> = BTreeMap::new();
        let mut items = arriving.items.iter().peekable();
        loop {
            let next = paces.iter().filter_map(|(at, pace)| pace.next().map(|(now_ms, lane)| (now_ms, lane, at)));
            let next = next.min().map(|(now_ms, lane, at)| (now_ms, lane, at.clone()));
            let is_put = |(at_ms, _): &&(u64, Item)| next.as_ref().is_none_or(|(now_ms, ..)| at_ms <= now_ms);
            if let Some((now_ms, item)) = items.next_if(is_put) {
                let _is_put = self.store.put_raw(Table::Main, item.clone());
                used.items += if arriving.counted.contains(now_ms) { 1.0 } else { 0.0 };
                self.publish(&mut paces, *now_ms, arriving.n_shards);
                continue;
            }
            let Some((now_ms, lane, at)) = next else { return used };
            let Some(pace) = paces.get_mut(&at) else { return used };
            let batch = pace.take(lane, now_ms);
            let mut in_batch = LoadUsage::default();
            self.clock.now_ms.store(now_ms, Ordering::Relaxed);
            self.invoke(at.1, at.2, &batch.iter().collect::<Vec<_>>(), Some(&mut in_batch)).await;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a short positive time")]
            let end_ms = now_ms + in_batch.all_invocations().duration_ms.round() as u64;
            if let Some(pace) = paces.get_mut(&at) {
                pace.occupy(lane, end_ms);
            }
            self.publish(&mut paces, end_ms, arriving.n_shards);
            if arriving.counted.contains(&now_ms) {
                used.add(in_batch, 1.0);
            }
        }
    }

    /// Gives the new records to the mappings of both functions.
    fn publish(&mut self, paces: &mut BTreeMap<(String, usize, u64), ShardPace<Value>>, at_ms: u64, n_shards: u64) {
        self.clock.now_ms.store(at_ms, Ordering::Relaxed);
        for record in self.records() {
            let shard = hash(record.key.pk.as_bytes()) % n_shards;
            let lane = hash(format!("{} / {}", record.key.pk, record.key.sk).as_bytes());
            for (at, function) in self.functions.iter().enumerate().filter(|(_, function)| function.needs(&record)) {
                let gathering = self.load.gathering(function.family);
                let pace = paces.entry((record.table.clone(), at, shard));
                pace.or_insert_with(|| ShardPace::new(gathering)).push(at_ms, lane, record.text.clone());
            }
        }
    }

    /// The records since the last call.
    fn records(&mut self) -> Vec<StreamRecord> {
        let taken = self.store.take_records().into_iter();
        let taken = taken.map(|(key, old, new)| {
            self.n_records += 1;
            let entity = new.as_ref().or(old.as_ref()).and_then(|item| self.entity(&key, item));
            let keys = self.design.schema.layout.key_item(&key);
            let text = record(&keys, old.as_ref(), new.as_ref(), self.n_records, self.clock.now_ms());
            StreamRecord { table: table_of(&self.design.schema, &key), key, entity, text }
        });
        taken.collect()
    }

    /// Invokes a function with these records of a shard, and counts what it uses.
    async fn invoke(&mut self, at: usize, shard: u64, texts: &[&Value], used: Option<&mut LoadUsage>) {
        let Some(function) = self.functions.get(at) else { return };
        // The run has few shards, but a counter has a watermark for each shard of the stream.
        self.n_batches += 1;
        let shard = (shard + self.n_batches) % u64::from(self.load.n_shards);
        let event = event(texts, shard, self.load.ledger);
        let deadline_ms = self.clock.now_ms().saturating_add(INVOCATION_MS);
        let Ok(handled) = function.engine.handle(&event, deadline_ms).await else { return };
        let requests = self.requests.take();
        let (log, family) = (self.log, function.family);
        let bytes = |has_zeros| count(log(&function.engine, &[family], &handled, has_zeros));
        let calls =
            if requests.is_empty() { CALLS_NONE } else { CALLS_IN_TURN + count(requests.len()) / CALLS_AT_ONCE };
        let usage = InvocationUsage {
            n: 1.0,
            n_records: count(texts.len()),
            duration_ms: self.load.call_ms * calls,
            log_bytes: bytes(false),
            zeros_bytes: bytes(true) - bytes(false),
        };
        let Some(used) = used else {
            self.note_read(&requests);
            return;
        };
        used.invocations.entry(family).or_default().add(usage, 1.0);
        count_writes(&handled, used);
        self.count_reads(requests, used).await;
    }

    /// Notes which items were read, or must exist for a write.
    fn note_read(&mut self, requests: &[Request]) {
        let must_exist = |write: &Write| write.guard.iter().any(|guard| guard.asks.contains(&Ask::Present));
        for request in requests {
            match request {
                Request::Read(Table::Main, keys, _) => self.read.extend(keys.iter().cloned()),
                Request::Write(write) if must_exist(write) => drop(self.read.insert(write.key.clone())),
                _ => {}
            }
        }
    }

    /// Writes a heartbeat as the sweep does, and delivers its record. It is alone, because it comes every 15 minutes.
    pub(super) async fn heartbeat(&mut self) -> LoadUsage {
        let mut used = LoadUsage::default();
        let level = self.functions.iter().position(|function| function.family == Family::LevelTriggered);
        let Some((at, function)) = level.and_then(|at| Some((at, self.functions.get(at)?))) else { return used };
        let deadline_ms = self.clock.now_ms().saturating_add(INVOCATION_MS);
        // What the sweep finds beside is nothing: there are no jobs.
        let _swept = function.engine.sweep_by_pulse(deadline_ms).await;
        let _of_the_sweep = self.requests.take();
        for record in self.records() {
            // The write of the heartbeat itself.
            used.write_units.insert(HEARTBEATS.to_owned(), 1.0);
            self.invoke(at, 0, &[&record.text], Some(&mut used)).await;
        }
        used
    }

    /// The invocation at the end of a tumbling window.
    pub(super) async fn window_end(&mut self) -> InvocationUsage {
        let mut used = LoadUsage::default();
        self.invoke(0, 0, &[], Some(&mut used)).await;
        used.all_invocations()
    }

    async fn count_reads(&mut self, requests: Vec<Request>, used: &mut LoadUsage) {
        self.note_read(&requests);
        for request in requests {
            used.read_units += match request {
                Request::Read(table, keys, consistency) => {
                    let bytes = |key| self.store.view(table, |items| items.get(key).map_or(0, item_bytes));
                    keys.iter().map(|key| read_units(bytes(key), consistency)).sum::<f64>()
                }
                Request::Query(table, query, after) => {
                    let page = self.store.query(table, &query, after).await.map(|page| page.items).unwrap_or_default();
                    read_units(page.iter().map(item_bytes).sum(), consistency(&query))
                }
                Request::Scan(_) | Request::Write(_) | Request::Transact(_) => 0.0,
            };
        }
    }

    /// The entity of an item, as the event filters know it.
    fn entity(&self, key: &Key, item: &Item) -> Option<String> {
        if CounterKey::parse(key).is_some() {
            return Some(COUNTER.to_owned());
        }
        let schema = &self.design.schema;
        match &schema.layout.entity_type {
            Some(attribute) => text(item, attribute).map(str::to_owned),
            None => schema.image(key, item).map(|image| image.definition.name.clone()),
        }
    }
}

/// A number as a factor.
fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// The table of an item, where there are several.
pub(super) fn table_of(schema: &Schema, key: &Key) -> String {
    match schema.layout.forms.as_ref().map(|forms| forms.place(key)) {
        Some(Place::Table(form)) => form.name.clone(),
        Some(Place::Own) | None => String::new(),
    }
}

/// Sequential calls of an invocation: a read, a write, and a third one that stands for the start and end of the
/// invocation. Not measured on AWS.
const CALLS_IN_TURN: f64 = 3.0;

/// The start and end of an invocation that makes no call.
const CALLS_NONE: f64 = 1.0;

/// Calls that are under way at a time.
const CALLS_AT_ONCE: f64 = 16.0;

/// Queries of an index are eventually consistent.
fn consistency(query: &Query) -> Consistency {
    if query.index.is_some() { Consistency::Eventual } else { query.consistency }
}

/// Read units for this many bytes. Reading nothing costs as much as reading one byte.
#[must_use]
pub fn read_units(bytes: usize, consistency: Consistency) -> f64 {
    let units = f64::from(u32::try_from(bytes.div_ceil(READ_UNIT_BYTES).max(1)).unwrap_or(u32::MAX));
    if consistency == Consistency::Strong { units } else { units / 2.0 }
}

/// Stream of the run's records.
const STREAM_ARN: &str = "arn:aws:dynamodb:us-east-1:123456789012:table/sample/stream/2024-01-15T10:00:00.000";

/// A record as a function gets it.
fn record(keys: &Item, old: Option<&Item>, new: Option<&Item>, number: u64, at_ms: u64) -> Value {
    let name = match (old, new) {
        (None, _) => "INSERT",
        (Some(_), Some(_)) => "MODIFY",
        (Some(_), None) => "REMOVE",
    };
    let images = [("OldImage", old), ("NewImage", new)].into_iter();
    let images = images.filter_map(|(name, item)| Some((name.to_owned(), json!(item?))));
    let mut change: Map<String, Value> = images.collect();
    for (name, value) in [
        ("Keys", json!(keys)),
        ("ApproximateCreationDateTime", json!(at_ms / 1_000)),
        ("SequenceNumber", json!(format!("{number:021}"))),
        ("SizeBytes", json!(1)),
        ("StreamViewType", json!("NEW_AND_OLD_IMAGES")),
    ] {
        change.insert(name.to_owned(), value);
    }
    json!({
        "eventID": format!("{number:032x}"),
        "eventName": name,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": change,
        "eventSourceARN": STREAM_ARN,
    })
}

/// An event with these records of a shard. Under watermarks it has a window, which names the shard.
fn event(records: &[&Value], shard: u64, ledger: LedgerKind) -> String {
    let mut event = json!({ "Records": records });
    if let Some(fields) = event.as_object_mut().filter(|_| ledger == LedgerKind::Watermarks) {
        for (name, value) in [
            ("window", json!({ "start": "2024-01-15T10:40:00Z", "end": "2024-01-15T10:41:00Z" })),
            ("state", json!({})),
            ("shardId", json!(format!("shardId-{shard:020}-a1b2c3d4"))),
            ("eventSourceARN", json!(STREAM_ARN)),
            ("isFinalInvokeForWindow", json!(records.is_empty())),
            ("isWindowTerminatedEarly", json!(false)),
        ] {
            fields.insert(name.to_owned(), value);
        }
    }
    event.to_string()
}

fn count_writes(handled: &Handled, used: &mut LoadUsage) {
    for commit in &handled.account.commits {
        // The item of a stream shard is not counted: it is written only once, when the shard is first seen.
        let part = match commit.table {
            Table::Ledger if commit.key.pk.starts_with("SHARD#") => continue,
            Table::Ledger if commit.key.pk.starts_with("RECEIPT#") => {
                used.receipts += 1.0;
                RECEIPTS.to_owned()
            }
            Table::Ledger => OTHER.to_owned(),
            Table::Main => commit.derivations.join(" + "),
        };
        *used.write_units.entry(part).or_default() += commit.units;
    }
}

// ---- when a function is invoked with which records ----
//
// *As Lambda does it* (tools/stream/README.md has the sources): a shard is read four times a second. An item's records
// take one lane, which is one concurrent batch of the shard. A batch starts when its first record has waited for the
// batching window, when it is full, or when the record behind it belongs to another tumbling window. While all lanes work,
// the shard is not read.
//
// *Example*: with a batching window of 5 seconds, a record every second makes a batch of six: the first one opens the
// window, and five join it. Two lanes make two batches of it.

/// Time between two reads of a shard, in milliseconds.
const POLL_MS: u64 = 250;

/// How a mapping gathers records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// The batching window, in milliseconds.
    pub(super) window_ms: u64,
    /// Most records of a batch.
    pub(super) n_batch_max: usize,
    /// Concurrent batches of a shard.
    pub(super) n_lanes: usize,
    /// Length of the tumbling windows in milliseconds, if there are any.
    pub(super) tumbling_ms: Option<u64>,
}

/// A shard, as one mapping reads it.
#[derive(Debug)]
struct ShardPace<R> {
    gathering: Gathering,
    lanes: Vec<LanePace<R>>,
}

#[derive(Debug)]
struct LanePace<R> {
    /// The records that wait, in their order.
    waiting: VecDeque<Waiting<R>>,
    /// When the invocation in progress ends.
    free_ms: u64,
}

#[derive(Debug)]
struct Waiting<R> {
    read_ms: u64,
    /// The number of its tumbling window.
    window: u64,
    record: R,
}

impl<R> ShardPace<R> {
    fn new(gathering: Gathering) -> Self {
        let lane = || LanePace { waiting: VecDeque::new(), free_ms: 0 };
        Self { gathering, lanes: (0..gathering.n_lanes.max(1)).map(|_| lane()).collect() }
    }

    /// Adds a record that the stream has from this time on; the hash of its item's key decides about the lane.
    fn push(&mut self, at_ms: u64, hash: u64, record: R) {
        let free_ms = self.lanes.iter().map(|lane| lane.free_ms).min().unwrap_or_default();
        let read_ms = at_ms.next_multiple_of(POLL_MS).max(free_ms);
        let window = self.gathering.tumbling_ms.map_or(0, |length_ms| at_ms / length_ms.max(1));
        let n_lanes = u64::try_from(self.lanes.len()).unwrap_or(1);
        let lane = usize::try_from(hash % n_lanes).unwrap_or_default();
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.waiting.push_back(Waiting { read_ms, window, record });
        }
    }

    /// When the next batch starts, and its lane.
    fn next(&self) -> Option<(u64, usize)> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter_map(|(at, lane)| Some((self.due_ms(lane)?, at))).min()
    }

    fn due_ms(&self, lane: &LanePace<R>) -> Option<u64> {
        let first = lane.waiting.front()?;
        let full_ms = lane.waiting.get(self.gathering.n_batch_max.saturating_sub(1)).map(|last| last.read_ms);
        let cut_ms = lane.waiting.iter().find(|waiting| waiting.window != first.window).map(|next| next.read_ms);
        let due_ms = first.read_ms.saturating_add(self.gathering.window_ms);
        [full_ms, cut_ms].into_iter().flatten().fold(due_ms, u64::min).max(lane.free_ms).into()
    }

    /// Takes the batch of a lane that starts at this time.
    fn take(&mut self, lane: usize, now_ms: u64) -> Vec<R> {
        let Some(lane) = self.lanes.get_mut(lane) else { return Vec::new() };
        let window = lane.waiting.front().map(|first| first.window);
        let mut batch = Vec::new();
        while batch.len() < self.gathering.n_batch_max.max(1)
            && let Some(next) = lane.waiting.pop_front_if(|next| next.read_ms <= now_ms && Some(next.window) == window)
        {
            batch.push(next.record);
        }
        batch
    }

    /// Keeps a lane busy until the invocation with its batch ends.
    fn occupy(&mut self, lane: usize, until_ms: u64) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.free_ms = until_ms;
        }
    }
}

/// A number that seems random, and is the same for the same bytes. FNV-1a alone gives keys that differ by a digit
/// neighbouring numbers, so they would take turns at the shards.
fn hash(bytes: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    scattered(bytes.iter().fold(0xCBF2_9CE4_8422_2325, fnv))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATHERING: Gathering = Gathering { window_ms: 5_000, n_batch_max: 500, n_lanes: 1, tumbling_ms: None };

    /// Records at these times, each invocation taking 100 ms: when each batch starts, and its records.
    fn batches(gathering: Gathering, at_ms: impl IntoIterator<Item = u64>) -> Vec<(u64, usize)> {
        let mut shard = ShardPace::new(gathering);
        let mut found = Vec::new();
        let mut until = |shard: &mut ShardPace<u64>, end_ms: u64| {
            while let Some((now_ms, lane)) = shard.next().filter(|(now_ms, _)| *now_ms <= end_ms) {
                found.push((now_ms, shard.take(lane, now_ms).len()));
                shard.occupy(lane, now_ms + 100);
            }
        };
        for (n, at_ms) in at_ms.into_iter().enumerate() {
            until(&mut shard, at_ms);
            shard.push(at_ms, u64::try_from(n).unwrap(), at_ms);
        }
        until(&mut shard, u64::MAX);
        found
    }

    #[test]
    fn the_first_record_opens_the_window_and_those_of_the_next_seconds_join_it() {
        assert_eq!(batches(GATHERING, [100]), [(5_250, 1)]);
        let each_second = |n: u64| (0..n).map(|n| n * 1_000 + 100);
        assert_eq!(batches(GATHERING, each_second(12)), [(5_250, 6), (11_250, 6)]);
        let lanes = Gathering { n_lanes: 2, ..GATHERING };
        assert_eq!(batches(lanes, each_second(12)), [(5_250, 3), (6_250, 3), (11_250, 3), (12_250, 3)]);
    }

    #[test]
    fn a_full_batch_starts_at_once_and_the_next_one_waits_for_it() {
        let full = Gathering { n_batch_max: 2, ..GATHERING };
        assert_eq!(batches(full, [100, 200, 300, 400, 500]), [(250, 2), (500, 2), (5_600, 1)]);
        assert_eq!(batches(Gathering { window_ms: 0, ..GATHERING }, [100, 200, 260, 340]), [(250, 2), (500, 2)]);
    }

    #[test]
    fn a_record_of_the_next_tumbling_window_starts_the_batch_before_it() {
        let tumbling = Gathering { tumbling_ms: Some(60_000), ..GATHERING };
        assert_eq!(batches(tumbling, [58_000, 59_000, 60_500]), [(60_500, 2), (65_500, 1)]);
        assert_eq!(batches(GATHERING, [58_000, 59_000, 60_500]), [(63_000, 3)]);
    }
}
