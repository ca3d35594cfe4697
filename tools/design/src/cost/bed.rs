//! The functions on the store's model, and the resources that they use for new items.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{
    family::Family,
    query::{Consistency, Query},
    schema::Schema,
    write::Table,
};
use engine::{
    batch::{Engine, Handled},
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
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
    usage::{LoadUsage, LogBytes, OTHER, RECEIPTS, SampleEngine},
};
use infra::filters::entities;

use crate::Design;

/// Bytes of a read unit. Source: DynamoDB, "Read and write operations".
const READ_UNIT_BYTES: usize = 4_096;

/// Time limit of an invocation of the run, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// The functions on the model.
pub(super) struct SampleBed<'a> {
    design: &'a Design,
    load: &'a Load,
    log: LogBytes<'a>,
    pub(super) store: Arc<MemoryStore>,
    requests: Arc<Recording<Arc<MemoryStore>>>,
    functions: Vec<(SampleEngine, [Family; 1], BTreeSet<String>)>,
    n_records: u64,
    n_batches: u64,
    /// Keys that were read.
    pub(super) read: BTreeSet<Key>,
}

impl<'a> SampleBed<'a> {
    pub(super) fn new(design: &'a Design, load: &'a Load, log: LogBytes<'a>) -> Self {
        let (schema, catalogue) = (Arc::new(design.schema.clone()), Arc::new(design.catalogue.clone()));
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let requests = Arc::new(Recording::new(Arc::clone(&store)));
        let function = |family| {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let (schema, catalogue) = (Arc::clone(&schema), Arc::clone(&catalogue));
            let needed = entities(&design.catalogue, &[family]).into_iter().map(str::to_owned).collect();
            let engine = Engine::new(schema, catalogue, vec![family], Arc::clone(&requests), clock);
            (engine.with_ledger(load.ledger), [family], needed)
        };
        let functions = [Family::Additive, Family::LevelTriggered].map(function).into();
        Self { design, load, log, store, requests, functions, n_records: 0, n_batches: 0, read: BTreeSet::new() }
    }

    /// True if the item exists.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.store.view(Table::Main, |items| items.contains_key(key))
    }

    /// Puts items in batches, and delivers records until none are left. Records of Ripple's own writes arrive with the
    /// next batch, or alone if the batch size is 1.
    pub(super) async fn put(&mut self, items: &[Item], batch: usize) -> LoadUsage {
        let mut used = LoadUsage::default();
        for items in items.chunks(batch.max(1)) {
            for item in items {
                // The model accepts every item that has a key.
                let _is_put = self.store.put_raw(Table::Main, item.clone());
            }
            while self.deliver(&mut used).await && batch == 1 {}
        }
        while self.deliver(&mut used).await {}
        used
    }

    /// Delivers the available records to both functions, in one batch for each table; `false` if there are none.
    async fn deliver(&mut self, used: &mut LoadUsage) -> bool {
        let mut by_table: BTreeMap<String, Vec<(Option<String>, Value)>> = BTreeMap::new();
        for (key, old, new) in self.store.take_records() {
            self.n_records += 1;
            let entity = new.as_ref().or(old.as_ref()).and_then(|item| self.entity(&key, item));
            let keys = self.design.schema.layout.key_item(&key);
            let text = record(&keys, old.as_ref(), new.as_ref(), self.n_records);
            by_table.entry(table_of(&self.design.schema, &key)).or_default().push((entity, text));
        }
        let has_any = !by_table.is_empty();
        for texts in by_table.into_values() {
            self.n_batches += 1;
            self.invoke(&texts, used).await;
        }
        has_any
    }

    /// Passes a batch of records, each with its entity, to both functions.
    async fn invoke(&mut self, texts: &[(Option<String>, Value)], used: &mut LoadUsage) {
        for at in 0..self.functions.len() {
            let Some((engine, families, needed)) = self.functions.get(at) else { continue };
            let passes = |entity: &Option<String>| entity.as_ref().is_some_and(|name| needed.contains(name));
            let ours: Vec<&Value> = texts.iter().filter(|(entity, _)| passes(entity)).map(|(_, text)| text).collect();
            if ours.is_empty() {
                continue;
            }
            let shard = self.n_batches % u64::from(self.load.n_shards);
            let event = event(&ours, shard, self.load.ledger);
            let Ok(handled) = engine.handle(&event, SystemClock.now_ms().saturating_add(INVOCATION_MS)).await else {
                continue;
            };
            let requests = self.requests.take();
            let n_calls = f64::from(u32::try_from(requests.len()).unwrap_or(u32::MAX));
            used.invocations += 1.0;
            used.duration_ms += self.load.call_ms * (CALLS_IN_TURN + n_calls / CALLS_AT_ONCE);
            used.log_bytes += f64::from(u32::try_from((self.log)(engine, families, &handled)).unwrap_or(u32::MAX));
            count_writes(&handled, used);
            self.count_reads(requests, used).await;
        }
    }

    async fn count_reads(&mut self, requests: Vec<Request>, used: &mut LoadUsage) {
        for request in requests {
            used.read_units += match request {
                Request::Read(table, keys, consistency) => {
                    let bytes = |key| self.store.view(table, |items| items.get(key).map_or(0, item_bytes));
                    let units = keys.iter().map(|key| read_units(bytes(key), consistency)).sum::<f64>();
                    self.read.extend(keys.into_iter().filter(|_| table == Table::Main));
                    units
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

/// Name of an item's table. Empty if there is a single table, or for the table of Ripple's own items.
pub(super) fn table_of(schema: &Schema, key: &Key) -> String {
    match schema.layout.forms.as_ref().map(|forms| forms.place(key)) {
        Some(Place::Table(form)) => form.name.clone(),
        Some(Place::Own) | None => String::new(),
    }
}

/// Sequential calls of an invocation: a read, a write, and a third one that stands for the start and end of the
/// invocation. Not measured on AWS.
const CALLS_IN_TURN: f64 = 3.0;

/// Concurrent calls of an invocation.
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

/// A record in the form that a function receives.
fn record(keys: &Item, old: Option<&Item>, new: Option<&Item>, number: u64) -> Value {
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
        ("ApproximateCreationDateTime", json!(SystemClock.now_ms() / 1_000)),
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
            ("isFinalInvokeForWindow", json!(false)),
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
