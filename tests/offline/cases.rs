//! Cases of people who keep derived data by a stream, taken from public reports: each folder of `tests/cases` has the
//! manifest that says what they want, what their application writes, and what is right at each check.
//!
//! [`RIGHT`] and [`RECORDS`] have every folder, so none is passed over. The operations run under both ledgers, once
//! with every record handed over by itself and once with all records since the last check at once, the tables in reverse
//! order. Every batch is delivered twice, and at each check everything once more, which must write nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::Arc,
};

use derive::{
    family::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use design::samples::Samples;
use engine::{
    batch::{Engine, Handled},
    inspect::to_recount,
    ledger::LedgerKind,
    park::parked,
    record::Event,
    redrive::{Redriven, discard::Discarded},
};
use expect_test::expect;
use keys::{
    counter::{COUNTER, CounterKey, VALUE},
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

/// The language can say these: what is derived is right at every check.
#[rustfmt::skip]
const RIGHT: [&str; 20] = [
    "02-review-average", "03-amplify-soft-delete", "05-join-rows", "06-owner-two-forms", "07-room-preview",
    "11-active-blockers", "12-attendees-of-a-slug", "13-vote-shards", "14-all-in-one-transaction",
    "15-distance-ranking", "16-three-levels", "21-emulator-images-and-bytes", "22-complaint-management",
    "24-recurring-payments", "25-electrodb-keys", "26-onetable-keys", "27-replies-at-every-level",
    "28-unread-in-a-chat", "29-offers-of-a-product", "30-trending-songs",
];

/// These have records and no operations, which a test below or the tests of the command line read.
const RECORDS: [&str; 3] = ["17-view-types", "18-creation-times", "19-other-envelopes"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// The text of a file of a case.
fn text(case: &str, file: &str) -> String {
    let path = folder().join(case).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the entries of a folder.
fn names(of: PathBuf) -> BTreeSet<String> {
    fs::read_dir(of).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_case_is_listed_and_has_the_files_that_it_needs() {
    let listed: BTreeSet<String> = RIGHT.iter().chain(&RECORDS).map(|case| (*case).to_owned()).collect();
    let mut found = names(folder());
    found.remove("README.md");
    assert_eq!(found, listed);
    for case in listed {
        let files = names(folder().join(&case));
        let has = |name: &str| files.contains(name);
        assert_eq!(has("ops.jsonl") && has("expected.json"), RIGHT.contains(&&*case), "{case}");
        assert!(has("ripple.toml") || case == "19-other-envelopes", "{case}");
    }
}

#[test]
fn what_the_language_can_say_is_right_at_every_check() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for case in RIGHT {
        for ledger in LEDGERS {
            for pace in [Pace::OneByOne, Pace::AtChecks] {
                let (operations, expected) = (text(case, "ops.jsonl"), text(case, "expected.json"));
                runtime.block_on(Bed::of(case, ledger, pace).run(&operations, &expected));
            }
        }
    }
}

// ---- The operations of a case on the model of its tables, and the engine on the records that they make ----

/// The time of the operations, in milliseconds since the epoch.
const NOW_MS: u64 = 1_800_000_000_000;

/// Time limit of a batch, in milliseconds: longer than its records are old, so that none counts as a second attempt.
const BATCH_MS_MAX: u64 = 900_000;

/// More batches than any case makes before it comes to rest.
const ROUNDS_MAX: usize = 100;

/// When records are handed over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// Each by itself, after its operation.
    OneByOne,
    /// All since the last check at once, the tables in reverse order.
    AtChecks,
}

/// The tables of a case, and the functions in one engine.
struct Bed {
    name: String,
    schema: Arc<Schema>,
    store: Arc<MemoryStore>,
    engine: Engine<Arc<MemoryStore>>,
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
    fn of(case: &str, ledger: LedgerKind, pace: Pace) -> Self {
        Self::at(case, ledger, pace, NOW_MS)
    }

    /// The empty tables of a case at this time, in milliseconds since the epoch.
    fn at(case: &str, ledger: LedgerKind, pace: Pace, now_ms: u64) -> Self {
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
    async fn run(mut self, operations: &str, expected: &str) {
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
    fn item(&self, address: &str) -> Option<Item> {
        let (pk, sk) = address.split_once(" / ").unwrap();
        self.store.view(Table::Main, |items| items.get(&Key::new(pk, sk)).cloned())
    }

    /// Puts an item, without a record of it.
    fn put(&self, item: &Value) {
        self.store.put_raw(Table::Main, serde_json::from_value(item.clone()).unwrap()).unwrap();
        drop(self.store.take_records());
    }

    /// Hands over the records of what was written since, until no more come.
    async fn follow(&mut self) {
        self.record(false);
        self.settle().await;
    }

    /// Carries out an operation of the application.
    async fn operate(&mut self, operation: &Value) {
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
        let stored = self.store.view(Table::Main, |items| items.get(&key).cloned());
        let mut item = match (stored, self.form(operation)) {
            (Some(stored), Some(form)) => form.outward(&stored).unwrap(),
            (Some(stored), None) => stored,
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
            let stored = match item.get(name) {
                None => "0",
                Some(AttributeValue::N(stored)) => stored,
                Some(stored) => panic!("{name} is {stored:?}, no number"),
            };
            let sum = sum(stored, value["N"].as_str().unwrap()).unwrap();
            item.insert(name.as_str(), AttributeValue::N(sum));
        }
        for (name, value) in member("delete") {
            let taken: Vec<String> = serde_json::from_value(value["SS"].clone()).unwrap();
            let Some(AttributeValue::Ss(stored)) = item.get_mut(name) else { panic!("{name} is no set") };
            stored.retain(|text| !taken.contains(text));
            if stored.is_empty() {
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
    fn events(&mut self) -> Vec<String> {
        let streams = std::mem::take(&mut self.streams).into_iter();
        streams.map(|(table, records)| event(&table, &records.join(","))).collect()
    }

    /// Hands over an event.
    async fn handle(&self, event: &str) -> Handled {
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
            let stored = item.get(name);
            let is_right = match (value, stored) {
                (Value::Null, stored) => stored.is_none(),
                (Value::Number(right), None) => right.as_f64() == Some(0.0),
                (Value::Number(right), Some(AttributeValue::N(stored))) => right.as_f64() == stored.parse().ok(),
                (Value::String(right), Some(AttributeValue::N(stored) | AttributeValue::S(stored))) => right == stored,
                (Value::Object(_), Some(stored)) => {
                    same(serde_json::from_value(value.clone()).ok().as_ref(), Some(stored))
                }
                _ => false,
            };
            assert!(is_right, "{at}: {name} is {stored:?}, not {value}");
        }
    }
}

/// An event of a tumbling window, which names its shard.
fn event(table: &str, records: &str) -> String {
    format!(
        r#"{{"Records":[{records}],"window":{{}},"state":{{}},"shardId":"shardId-00000001700000000000-{table}",
        "eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/2024-01-15T10:00:00.000"}}"#
    )
}

// ---- Cases that are records: how tools and other view types write them ----

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// The records of a file of a case.
fn records(case: &str, file: &str) -> Vec<String> {
    let text = text(case, file);
    Event::parse(&text).unwrap().records.iter().map(|record| record.get().to_owned()).collect()
}

/// The number that an item shows; 0 if it is not there.
fn number(bed: &Bed, address: &str, name: &str) -> String {
    match bed.item(address).as_ref().and_then(|item: &Item| item.get(name)) {
        Some(AttributeValue::N(number)) => number.clone(),
        Some(other) => panic!("{other:?} is no number"),
        None => "0".to_owned(),
    }
}

/// Ids and causes of what was parked, each once.
fn causes(handled: &Handled) -> BTreeMap<&str, &str> {
    handled.account.parked.iter().map(|parked| (parked.id.as_str(), parked.cause.as_str())).collect()
}

#[tokio::test]
async fn records_of_both_images_count_and_those_of_another_view_type_are_parked_with_its_name() {
    const CASE: &str = "17-view-types";
    for ledger in LEDGERS {
        let mut bed = Bed::at(CASE, ledger, Pace::OneByOne, 1_594_936_300_000);
        let mut counted = Vec::new();
        for record in records(CASE, "event-new-and-old.json") {
            let handled = bed.handle(&event("things", &record)).await;
            assert!(causes(&handled).is_empty(), "{ledger}: {handled:?}");
            bed.follow().await;
            let count = |data: &str| number(&bed, &format!("DATA#{data} / COUNT"), "things");
            counted.push([count("test"), count("hello")]);
        }
        assert_eq!(counted, [["1", "0"], ["0", "1"], ["0", "0"]], "{ledger}");
        for (file, view_type) in [
            ("event-keys-only.json", "KEYS_ONLY"),
            ("event-new-image.json", "NEW_IMAGE"),
            ("event-old-image.json", "OLD_IMAGE"),
        ] {
            let bed = Bed::at(CASE, ledger, Pace::OneByOne, 1_594_936_300_000);
            let records = records(CASE, file);
            let handled = bed.handle(&event("things", &records.join(","))).await;
            let why = format!(
                "the stream's view type is {view_type}; it must be NEW_AND_OLD_IMAGES, because a count needs both images"
            );
            assert_eq!(causes(&handled).into_values().collect::<Vec<_>>(), [why.as_str(); 3], "{ledger}");
            assert_eq!((handled.account.n_changes, handled.account.n_echoes, handled.failed_from), (0, 0, None));
            assert_eq!(bed.item("DATA#test / COUNT"), None, "{ledger} {file}");
        }
    }
}

#[tokio::test]
async fn an_empty_image_of_an_emulator_is_none_and_stops_no_other_record() {
    const CASE: &str = "21-emulator-images-and-bytes";
    for ledger in LEDGERS {
        let mut bed = Bed::at(CASE, ledger, Pace::AtChecks, 1_672_318_600_000);
        for resource in ["r1", "r4", "r5"] {
            bed.put(&json!({
                "pk": {"S": "foo"}, "sk": {"S": resource}, "type": {"S": "Resource"}, "color": {"S": "red"},
            }));
        }
        let records = records(CASE, "event.json").join(",");
        let handled = bed.handle(&event("things", &records)).await;
        assert_eq!(
            causes(&handled).into_iter().collect::<Vec<_>>(),
            [
                ("9f63baa0000000000000000000000005", "the record is a REMOVE without an old image"),
                (
                    "9f63baa0000000000000000000000006",
                    "the record does not decode: a value is missing or not of the form of a stream record, at column 409"
                ),
            ],
            "{ledger}"
        );
        bed.follow().await;
        assert_eq!(number(&bed, "COLOR#foo / red", "resources"), "3", "{ledger}: r1, r3 and r5");
        assert!(bed.item("BY-GROUP#foo / r5").is_some() && bed.item("BY-GROUP#foo / r2").is_none(), "{ledger}");
    }
}

#[tokio::test]
async fn a_time_in_another_unit_is_read_as_what_it_is_and_what_is_no_time_is_not_counted() {
    const CASE: &str = "18-creation-times";
    for ledger in LEDGERS {
        let bed = || {
            let bed = Bed::at(CASE, ledger, Pace::AtChecks, 1_800_000_000_000);
            bed.put(&json!({"pk": {"S": "CUST#1"}, "sk": {"S": "PROFILE"}, "type": {"S": "Customer"}}));
            bed
        };
        let mut of_years_ago = bed();
        let handled = of_years_ago.handle(&event("things", &records(CASE, "event.json").join(","))).await;
        let refused = handled.account.refused.iter().map(|refused| refused.id.as_str());
        let reasons: BTreeSet<&str> = causes(&handled).into_keys().chain(refused).collect();
        assert_eq!((reasons.len(), handled.failed_from), (8, None), "{ledger}: each has a reason");
        of_years_ago.follow().await;
        assert_eq!(number(&of_years_ago, "CUST#1 / PROFILE", "orderCount"), "0", "{ledger}");

        let mut of_today = bed();
        let template = text(CASE, "event.template.json").replace("@SECONDS@", "1799999990");
        let template = template.replace("@E9@", "1.79999999E9").replace("@ISO@", "2027-01-15T07:59:50.000Z");
        let template =
            Event::parse(&template).unwrap().records.iter().map(|it| it.get().to_owned()).collect::<Vec<_>>();
        for _ in 0..2 {
            of_today.handle(&event("things", &template.join(","))).await;
            of_today.follow().await;
            let shown = number(&of_today, "CUST#1 / PROFILE", "orderCount");
            assert_eq!(shown, "5", "{ledger}: all but those without a time, with a text, and without a number");
        }
        let same_id = records(CASE, "event-2.json").join(",").replace("1693997155.0", "1799999990.0");
        for _ in 0..2 {
            of_today.handle(&event("others", &same_id)).await;
            of_today.follow().await;
            let shown = number(&of_today, "CUST#1 / PROFILE", "orderCount");
            assert_eq!(shown, "6", "{ledger}: the same id is another change in another stream");
        }
    }
}

// ---- Lists whose members count: more of them than a transaction takes, and one whose counter refuses ----

const CASE: &str = "27-replies-at-every-level";

/// More members than a transaction takes.
const MANY: usize = 150;

/// The deadline of an operator's command, in milliseconds since the epoch.
const DEADLINE_MS: u64 = u64::MAX;

/// The event of a new comment below these.
async fn written(bed: &mut Bed, ancestors: &[String]) -> String {
    let ancestors: Vec<Value> = ancestors.iter().map(|id| json!({ "S": id })).collect();
    let item = json!({ "id": { "S": "c" }, "ancestorIds": { "L": ancestors } });
    bed.operate(&json!({ "op": "put", "table": "Comment", "item": item })).await;
    let [event] = &bed.events()[..] else { panic!("one table was written") };
    event.clone()
}

fn counter(id: &str) -> CounterKey {
    CounterKey::home(Key::new(format!("Comment#{id}"), "-"), "replies")
}

/// How many of the members have each count.
fn counts(bed: &Bed, members: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for id in members {
        let key = counter(id).key().unwrap();
        let item: Option<Item> = bed.store.view(Table::Main, |items| items.get(&key).cloned());
        let count = match item.as_ref().and_then(|item| item.get(VALUE)) {
            Some(AttributeValue::N(count)) => count.clone(),
            None => "0".to_owned(),
            Some(other) => format!("{other:?}"),
        };
        *counts.entry(count).or_default() += 1;
    }
    counts
}

fn all(count: &str, n: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(count.to_owned(), n)])
}

#[tokio::test]
async fn more_members_than_a_transaction_takes_count_under_watermarks_and_are_parked_whole_under_receipts() {
    let members: Vec<String> = (0..MANY).map(|n| format!("a{n}")).collect();
    let mut bed = Bed::of(CASE, LedgerKind::Watermarks, Pace::OneByOne);
    let event = written(&mut bed, &members).await;
    for _ in 0..2 {
        assert!(bed.handle(&event).await.account.parked.is_empty());
        assert_eq!(counts(&bed, &members), all("1", MANY));
    }

    let mut bed = Bed::of(CASE, LedgerKind::Receipts, Pace::OneByOne);
    let event = written(&mut bed, &members).await;
    let why = "the change adds to too many counters at once: a transaction of 151 actions; the limit is 100. Discard it \
               and run `ripple repair`";
    let handled = bed.handle(&event).await;
    assert_eq!(handled.failed_from, None);
    let causes: Vec<&str> = handled.account.parked.iter().map(|parked| parked.cause.as_str()).collect();
    assert_eq!(causes, [why]);
    let again = bed.handle(&event).await.account;
    assert_eq!((again.parked.len(), again.n_duplicates), (0, 1));
    let all_parked = parked(&bed.store).await.unwrap();
    let [change] = all_parked.as_slice() else { panic!("{all_parked:?}") };
    let redriven = bed.engine.redrive(change, DEADLINE_MS).await.unwrap();
    let Redriven::Still { cause } = redriven else { panic!("{redriven:?}") };
    assert_eq!(cause, why);
    assert_eq!(bed.engine.discard(change, DEADLINE_MS).await.unwrap(), Discarded::Done);
    assert_eq!((parked(&bed.store).await.unwrap().len(), to_recount(&bed.store).await.unwrap().len()), (0, MANY));
    assert_eq!(bed.handle(&event).await.account.n_duplicates, 1);
    assert_eq!(counts(&bed, &members), all("0", MANY));
}

#[tokio::test]
async fn a_member_whose_counter_refuses_is_parked_and_its_redrive_counts_it_once() {
    let members = ["a", "b", "c"].map(str::to_owned);
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let mut bed = Bed::of(CASE, ledger, Pace::OneByOne);
        let layout = &bed.schema.layout;
        let mut refusing = layout.key_item(&counter("b").key().unwrap());
        refusing.extend(layout.type_of(COUNTER));
        refusing.insert(VALUE.to_owned(), AttributeValue::S("many".to_owned()));
        bed.store.put_raw(Table::Main, refusing).unwrap();
        drop(bed.store.take_records());
        let event = written(&mut bed, &members).await;
        let handled = bed.handle(&event).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1), "{ledger}");
        let n_counted = if ledger == LedgerKind::Watermarks { 2 } else { 0 };
        let n_of = |counts: &BTreeMap<String, usize>| counts.get("1").copied().unwrap_or_default();
        assert_eq!(n_of(&counts(&bed, &members)), n_counted, "{ledger}");

        let key = counter("b").key().unwrap();
        let mut corrected = bed.store.view(Table::Main, |items| items[&key].clone());
        corrected.remove(VALUE);
        bed.store.put_raw(Table::Main, corrected).unwrap();
        let change = parked(&bed.store).await.unwrap().remove(0);
        for _ in 0..2 {
            let redriven = bed.engine.redrive(&change, DEADLINE_MS).await.unwrap();
            assert!(matches!(redriven, Redriven::Applied(_) | Redriven::Gone), "{ledger}: {redriven:?}");
            drop(bed.handle(&event).await);
            assert_eq!(counts(&bed, &members), all("1", 3), "{ledger}");
        }
    }
}

#[test]
fn the_sentence_of_the_count_and_a_sample_have_the_members() {
    let (schema, catalogue) = manifest::read(&folder().join(CASE).join("ripple.toml")).unwrap();
    let sentences = design::sentence::sentences(&schema, &catalogue);
    let (_, sentence) = sentences.iter().find(|(name, _)| name == "replies").unwrap();
    expect!["counts the Comment items once for each different member of ancestorIds and adds up `votes`"]
        .assert_eq(sentence.split(" where ").next().unwrap());
    let samples = Samples::made_up(&schema).as_read_by(&schema, &catalogue);
    let sample = samples.item("Comment").unwrap();
    let member = |name: &str| AttributeValue::L(vec![AttributeValue::S(format!("{{{name}}}"))]);
    for (name, value) in [
        ("ancestorIds", member("ancestorIds")),
        ("mentions", member("mentions")),
        ("votes", AttributeValue::N("1".to_owned())),
    ] {
        assert_eq!(sample.get(name), Some(&value));
    }
}
