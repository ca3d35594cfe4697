//! The operations of a case on the model of its tables, and the engine on the records that they make.

use std::{collections::BTreeMap, sync::Arc};

use derive::{
    family::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use engine::{
    batch::{Engine, Handled},
    ledger::LedgerKind,
};
use keys::{
    item::Item,
    key::Key,
    number::sum,
    tables::{Place, TableForm},
    value::same,
};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{Store as _, memory::MemoryStore};
use support::{clock::ManualClock, record::Record};

use super::folder;

/// The time of the operations, in milliseconds since the epoch.
const NOW_MS: u64 = 1_800_000_000_000;

/// Time limit of a batch, in milliseconds: longer than its records are old, so that none counts as a second attempt.
const BATCH_MS_MAX: u64 = 900_000;

/// More batches than any case makes before it comes to rest.
const ROUNDS_MAX: usize = 100;

/// When records are handed over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// Each by itself, after its operation.
    OneByOne,
    /// All since the last check at once, the tables in reverse order.
    AtChecks,
}

/// The tables of a case, and the functions in one engine.
pub(super) struct Bed {
    name: String,
    pub(super) schema: Arc<Schema>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) engine: Engine<Arc<MemoryStore>>,
    clock: ManualClock,
    pace: Pace,
    /// Records that are not handed over yet, by table.
    streams: BTreeMap<String, Vec<String>>,
    /// Events since the last check.
    delivered: Vec<String>,
    n_records: u64,
}

impl Bed {
    /// The empty tables of a case at [`NOW_MS`].
    pub(super) fn of(case: &str, ledger: LedgerKind, pace: Pace) -> Self {
        Self::at(case, ledger, pace, NOW_MS)
    }

    /// The empty tables of a case at this time, in milliseconds since the epoch.
    pub(super) fn at(case: &str, ledger: LedgerKind, pace: Pace, now_ms: u64) -> Self {
        let (schema, catalogue) = manifest::read(&folder().join(case).join("ripple.toml")).unwrap();
        let (store, schema) = (Arc::new(MemoryStore::new(schema.layout.clone())), Arc::new(schema));
        let families = vec![Family::Additive, Family::LevelTriggered];
        let clock = ManualClock::at(now_ms);
        let (catalogue, its_clock) = (Arc::new(catalogue), Arc::new(clock.clone()));
        let engine = Engine::new(Arc::clone(&schema), catalogue, families, Arc::clone(&store), its_clock);
        let (engine, name) = (engine.with_ledger(ledger), format!("{case} under {ledger}, {pace:?}"));
        let (streams, delivered) = (BTreeMap::new(), Vec::new());
        Self { name, schema, store, engine, clock, pace, streams, delivered, n_records: 0 }
    }

    /// Runs operations, and compares at each check.
    pub(super) async fn run(mut self, operations: &str, expected: &str) {
        let mut expected: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(expected).unwrap();
        for line in operations.lines() {
            let operation: Value = serde_json::from_str(line).unwrap();
            if operation["op"] == "check" {
                self.settle().await;
                self.deliver_again().await;
                let label = operation["label"].as_str().unwrap();
                for (item, values) in expected.remove(label).unwrap() {
                    self.compare(label, &item, &values);
                }
                continue;
            }
            if operation["op"] == "wait" {
                self.wait(operation["hours"].as_u64().unwrap()).await;
                continue;
            }
            self.operate(&operation).await;
            if self.pace == Pace::OneByOne {
                self.settle().await;
            }
        }
        assert!(expected.is_empty(), "{}: there is no check {:?}", self.name, expected.keys());
    }

    /// Hours pass, and the sweep runs after each.
    async fn wait(&mut self, hours: u64) {
        for _ in 0..hours {
            self.clock.advance(3_600 * 1_000);
            self.engine.search_again(self.engine.clock().now_ms() + BATCH_MS_MAX).await.unwrap();
            self.record(false);
            self.settle().await;
        }
        self.delivered.clear();
    }

    /// What an item holds; `None` if there is none.
    pub(super) fn item(&self, address: &str) -> Option<Item> {
        let (pk, sk) = address.split_once(" / ").unwrap();
        self.store.view(Table::Main, |items| items.get(&Key::new(pk, sk)).cloned())
    }

    /// Puts an item, without a record of it.
    pub(super) fn put(&self, item: &Value) {
        self.store.put_raw(Table::Main, serde_json::from_value(item.clone()).unwrap()).unwrap();
        drop(self.store.take_records());
    }

    /// Hands over the records of what was written since, until no more come.
    pub(super) async fn follow(&mut self) {
        self.record(false);
        self.settle().await;
    }

    /// Carries out an operation of the application.
    pub(super) async fn operate(&mut self, operation: &Value) {
        let is_expiry = match operation["op"].as_str().unwrap() {
            "transact" => {
                for operation in operation["ops"].as_array().unwrap() {
                    Box::pin(self.operate(operation)).await;
                }
                return;
            }
            "put" => {
                self.store.put_raw(Table::Main, self.inward(operation, &operation["item"])).unwrap();
                false
            }
            "update" => {
                self.update(operation);
                false
            }
            kind @ ("delete" | "expire") => {
                let key = self.key(operation);
                let write = Write { table: Table::Main, key, action: Action::Delete, guard: None };
                self.store.write(&write).await.unwrap();
                kind == "expire"
            }
            other => panic!("there is no operation {other}"),
        };
        self.record(is_expiry);
    }

    /// Sets, removes, adds to a number, and takes from a set.
    fn update(&self, operation: &Value) {
        let key = self.key(operation);
        let held = self.store.view(Table::Main, |items| items.get(&key).cloned());
        let mut item = match (held, self.form(operation)) {
            (Some(held), Some(form)) => form.outward(&held).unwrap(),
            (Some(held), None) => held,
            (None, _) => serde_json::from_value(operation["key"].clone()).unwrap(),
        };
        let member = |name: &str| operation[name].as_object().into_iter().flatten();
        for (name, value) in member("set") {
            item.insert(name.as_str(), serde_json::from_value(value.clone()).unwrap());
        }
        for name in operation["remove"].as_array().into_iter().flatten() {
            item.remove(name.as_str().unwrap());
        }
        for (name, value) in member("add") {
            let held = match item.get(name) {
                None => "0",
                Some(AttributeValue::N(held)) => held,
                Some(held) => panic!("{name} is {held:?}, no number"),
            };
            let sum = sum(held, value["N"].as_str().unwrap()).unwrap();
            item.insert(name.as_str(), AttributeValue::N(sum));
        }
        for (name, value) in member("delete") {
            let taken: Vec<String> = serde_json::from_value(value["SS"].clone()).unwrap();
            let Some(AttributeValue::Ss(held)) = item.get_mut(name) else { panic!("{name} is no set") };
            held.retain(|text| !taken.contains(text));
            if held.is_empty() {
                item.remove(name);
            }
        }
        self.store.put_raw(Table::Main, self.inward(operation, &json!(item))).unwrap();
    }

    /// The table of an operation, where there are several.
    fn form(&self, operation: &Value) -> Option<&TableForm> {
        self.schema.layout.forms.as_ref()?.named(operation["table"].as_str()?)
    }

    fn inward(&self, operation: &Value, item: &Value) -> Item {
        let item: Item = serde_json::from_value(item.clone()).unwrap();
        self.form(operation).map_or(item.clone(), |form| form.inward(item).unwrap())
    }

    fn key(&self, operation: &Value) -> Key {
        let key: Item = serde_json::from_value(operation["key"].clone()).unwrap();
        self.form(operation).map_or_else(|| self.schema.layout.key(&key), |form| form.key(&key)).unwrap()
    }

    /// Takes the records that were made.
    fn record(&mut self, is_expiry: bool) {
        for (key, old, new) in self.store.take_records() {
            self.n_records += 1;
            let layout = &self.schema.layout;
            let form = match layout.forms.as_ref().map(|forms| forms.place(&key)) {
                Some(Place::Table(form)) => Some(form),
                Some(Place::Own) | None => None,
            };
            let outward = |item: Item| form.map_or(item.clone(), |form| form.outward(&item).unwrap());
            let keys = form.map_or_else(|| layout.key_item(&key), |form| form.key_item(&key).unwrap());
            let (id, sequence_number) = (format!("{:032x}", self.n_records), format!("{:021}", self.n_records));
            let (old, new) = (old.map(outward), new.map(outward));
            let (old, new) = (old.as_ref(), new.as_ref());
            let (id, sequence_number) = (id.as_str(), sequence_number.as_str());
            let record =
                Record { id, sequence_number, keys: &keys, old, new, at_ms: self.engine.clock().now_ms(), is_expiry };
            let table = form.map_or("Main", |form| form.called.as_str());
            let record = record.json().replace("table/Main/", &format!("table/{table}/"));
            self.streams.entry(table.to_owned()).or_default().push(record);
        }
    }

    /// Hands over records until no more come.
    async fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let streams = std::mem::take(&mut self.streams);
            if streams.is_empty() {
                return;
            }
            let mut streams: Vec<(String, Vec<String>)> = streams.into_iter().collect();
            if self.pace == Pace::AtChecks {
                streams.reverse();
            }
            for (table, records) in streams {
                self.deliver(&table, &records).await;
            }
        }
        panic!("{}: it does not come to rest", self.name);
    }

    /// Hands over a batch twice.
    async fn deliver(&mut self, table: &str, records: &[String]) {
        let event = event(table, &records.join(","));
        for _ in 0..2 {
            self.apply(&event).await;
        }
        self.delivered.push(event);
    }

    /// Hands over everything since the last check once more, which must change nothing.
    async fn deliver_again(&mut self) {
        for event in std::mem::take(&mut self.delivered) {
            self.apply(&event).await;
        }
        assert!(self.streams.is_empty(), "{}: a later delivery writes {:?}", self.name, self.streams);
    }

    async fn apply(&mut self, event: &str) {
        let handled = self.handle(event).await;
        assert!(handled.account.parked.is_empty(), "{}: {:?}", self.name, handled.account.parked);
        assert_eq!(handled.failed_from, None, "{}", self.name);
        self.record(false);
    }

    /// The events of the records that were not handed over yet, by table.
    pub(super) fn events(&mut self) -> Vec<String> {
        let streams = std::mem::take(&mut self.streams).into_iter();
        streams.map(|(table, records)| event(&table, &records.join(","))).collect()
    }

    /// Hands over an event.
    pub(super) async fn handle(&self, event: &str) -> Handled {
        let deadline_ms = self.engine.clock().now_ms() + BATCH_MS_MAX;
        self.engine.handle(event, deadline_ms).await.unwrap()
    }

    /// Compares an item with what is right of it: `null` is absent, 0 may be absent too, and a number in quotes is there.
    fn compare(&self, label: &str, address: &str, values: &Value) {
        let item = self.item(address);
        let at = format!("{} at {label}: {address}", self.name);
        if values.is_null() {
            assert_eq!(item, None, "{at}");
            return;
        }
        let item = item.unwrap_or_else(|| panic!("{at} is not there"));
        for (name, value) in values.as_object().unwrap() {
            let held = item.get(name);
            let is_right = match (value, held) {
                (Value::Null, held) => held.is_none(),
                (Value::Number(right), None) => right.as_f64() == Some(0.0),
                (Value::Number(right), Some(AttributeValue::N(held))) => right.as_f64() == held.parse().ok(),
                (Value::String(right), Some(AttributeValue::N(held) | AttributeValue::S(held))) => right == held,
                (Value::Object(_), Some(held)) => same(serde_json::from_value(value.clone()).ok().as_ref(), Some(held)),
                _ => false,
            };
            assert!(is_right, "{at}: {name} is {held:?}, not {value}");
        }
    }
}

/// An event of a tumbling window, which names its shard.
pub(super) fn event(table: &str, records: &str) -> String {
    format!(
        r#"{{"Records":[{records}],"window":{{}},"state":{{}},"shardId":"shardId-00000001700000000000-{table}",
        "eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/2024-01-15T10:00:00.000"}}"#
    )
}
