//! The functions on the store's model, and the resources that they use for new items.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    load::Load,
    pace::{ShardPace, hash},
    usage::{HEARTBEATS, InvocationUsage, LoadUsage, LogBytes, OTHER, RECEIPTS, SampleEngine},
    world::scattered,
};
use infra::filters::{Needed, StreamTable, entities, needed};

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
