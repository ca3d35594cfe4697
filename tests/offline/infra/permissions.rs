//! Each function has exactly the permissions that it uses.
//!
//! The functions' engines run on a store that records their calls, on samples of the whole table that are created,
//! changed and removed, under either ledger. The recorded calls are compared with the policies.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use derive::write::{Action, Table, Write};
use engine::{
    batch::Engine,
    clock::Clock,
    ledger::{LedgerKind, claim},
    limits::FanOutLimits,
    registry::{Hold, RegistryWatch},
    sweep::Bounds,
};
use expect_test::expect;
use functions::handler::Function;
use futures::future::BoxFuture;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{
    Store as _,
    memory::MemoryStore,
    recording::{Recording, Request},
};
use support::record::{Record, Window, event};

use crate::infra::{BOTH, READERS, at, both, read, shipped};

/// An action on a table, or on one of its indexes.
type Permission = (&'static str, String);

const MAIN: &str = "table";
const INDEXES: [&str; 2] = ["GSI1", "GSI2"];
const LEDGER: &str = "ledger";

/// Statements for what Lambda does with a function's role: it reads the stream, stores batches that it gives up, and
/// writes logs.
const OF_THE_PLATFORM: [&str; 4] = ["Stream", "Streams", "FailedBatches", "Logs"];

/// The calls of a function at its start, which do not use the store.
const AT_START: &str = "DescribeTable";

/// Rounds of records after which no new records come.
const ROUNDS_MAX: usize = 60;

/// A clock that moves by a second whenever it is read.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn until(&self, _at_ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn chance(&self, _below: u64) -> u64 {
        0
    }
}

fn named(action: &Action) -> &'static str {
    match action {
        Action::Put(_) => "PutItem",
        Action::Update(_) => "UpdateItem",
        Action::Delete => "DeleteItem",
        Action::Check => "ConditionCheckItem",
    }
}

fn place(table: Table) -> &'static str {
    match table {
        Table::Main => MAIN,
        Table::Ledger => LEDGER,
    }
}

fn needed(request: &Request) -> Vec<Permission> {
    let of = |table: Table, action: &str| (place(table), action.to_owned());
    match request {
        Request::Read(table, keys, _) if keys.len() == 1 => vec![of(*table, "GetItem")],
        Request::Read(table, ..) => vec![of(*table, "BatchGetItem")],
        Request::Query(_, query, _) if query.index.is_some() => {
            let index = INDEXES.into_iter().find(|index| query.index.as_deref() == Some(index));
            vec![(index.expect("an index of the table"), "Query".to_owned())]
        }
        Request::Query(table, ..) => vec![of(*table, "Query")],
        Request::Scan(table) => vec![of(*table, "Scan")],
        Request::Write(write) => vec![of(write.table, named(&write.action))],
        Request::Transact(all) => all.writes().iter().map(|it| of(it.table, named(&it.action))).collect(),
    }
}

/// The permissions of a function, in either template.
fn allowed(template: &Value, id: &str) -> BTreeSet<Permission> {
    let policies = at(template, &["Resources", &format!("{id}Role"), "Properties", "Policies"]).as_array().unwrap();
    policies.iter().flat_map(|policy| granted(&policy["PolicyDocument"])).collect()
}

/// The permissions of a policy for a person.
fn allowed_by(template: &Value, policy: &str) -> BTreeSet<Permission> {
    granted(at(template, &["Resources", policy, "Properties", "PolicyDocument"]))
}

fn granted(document: &Value) -> BTreeSet<Permission> {
    let mut allowed = BTreeSet::new();
    for statement in document["Statement"].as_array().unwrap() {
        let Some(sid) = statement["Sid"].as_str() else {
            assert_eq!(statement["Fn::If"][0], "CustomerKey", "{statement}");
            continue;
        };
        // Lambda does this for the function.
        if OF_THE_PLATFORM.contains(&sid) {
            continue;
        }
        let resource = statement["Resource"].to_string();
        let on: Vec<&str> = match &resource {
            it if it.contains("LedgerTable") => vec![LEDGER],
            it if it.contains("/index/*") => INDEXES.to_vec(),
            it if it.contains("/index/") => {
                INDEXES.into_iter().filter(|index| it.contains(&format!("/index/{index}"))).collect()
            }
            _ => vec![MAIN],
        };
        for action in statement["Action"].as_array().unwrap() {
            // The policies for a person also have what tests/python/runbooks.py compares.
            let Some(action) = action.as_str().unwrap().strip_prefix("dynamodb:") else { continue };
            assert!(!action.contains('*'), "{sid}: {action}");
            if action == AT_START {
                continue;
            }
            allowed.extend(on.iter().map(|on| (*on, action.to_owned())));
        }
    }
    allowed
}

struct World {
    store: Arc<Recording<MemoryStore>>,
    clock: Arc<Ticking>,
    ledger: LedgerKind,
    n_records: u64,
}

impl World {
    fn new(ledger: LedgerKind) -> Self {
        let store = Recording::new(MemoryStore::new(shipped().0.layout));
        let clock = Ticking(AtomicU64::new(1_700_000_000_000));
        Self { store: Arc::new(store), clock: Arc::new(clock), ledger, n_records: 0 }
    }

    fn engine(&self, function: Function) -> Engine<Arc<Recording<MemoryStore>>> {
        let (schema, catalogue) = shipped();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let engine =
            Engine::new(Arc::new(schema), Arc::new(catalogue), function.families(), Arc::clone(&self.store), clock);
        // Small limits, so that jobs are created.
        let limits = FanOutLimits { direct_max: 0, page_items: 1, index_lag_ms: 1, ..FanOutLimits::default() };
        let engine = engine.with_ledger(self.ledger).with_settling(0).with_fan_out(limits);
        engine.watching(RegistryWatch::publishing(0, Hold::default()))
    }

    /// The next event, with all records so far.
    fn event(&mut self) -> Option<String> {
        let layout = &shipped().0.layout;
        let records: Vec<String> = self
            .store
            .inner()
            .take_records()
            .into_iter()
            .map(|(key, old, new)| {
                self.n_records += 1;
                let number = format!("{:021}", self.n_records);
                let (id, keys, at_ms) = (format!("e{number}"), layout.key_item(&key), self.clock.now_ms());
                let (old, new) = (old.as_ref(), new.as_ref());
                Record { id: &id, sequence_number: &number, keys: &keys, old, new, at_ms, is_expiry: false }.json()
            })
            .collect();
        (!records.is_empty()).then(|| Window::of_shard("shardId-1").around(&event(&records)))
    }

    /// These functions handle all records until no more come; adds the calls of each.
    async fn settle(&mut self, asked: &mut [(Function, BTreeSet<Permission>)]) {
        // Each pulse makes a record, so one is enough.
        for (function, asked) in asked.iter_mut().filter(|(function, _)| *function == Function::Sweep) {
            self.engine(*function).sweep_by_pulse(u64::MAX).await.unwrap();
            asked.extend(self.store.take().iter().flat_map(needed));
        }
        for _ in 0..ROUNDS_MAX {
            let event = self.event();
            for (function, asked) in asked.iter_mut() {
                let engine = self.engine(*function);
                if *function == Function::Sweep {
                    let bounds = Bounds { n_items_max: 10_000, deadline_ms: u64::MAX };
                    engine.sweep(|_| true, u64::MAX).await.unwrap();
                    engine.search_again(u64::MAX).await.unwrap();
                    engine.sweep_slice(bounds, |_| true).await.unwrap();
                    engine.damage(u64::MAX).await.unwrap();
                } else if let Some(event) = &event {
                    engine.handle(event, u64::MAX).await.unwrap();
                }
                asked.extend(self.store.take().iter().flat_map(needed));
            }
            if event.is_none() {
                return;
            }
        }
    }

    fn put(&self, item: Item) {
        self.store.inner().put_raw(Table::Main, item).unwrap();
    }

    async fn delete(&self, key: &Key) {
        let write = Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard: None };
        self.store.inner().write(&write).await.unwrap();
    }
}

/// The item with one of the application's attributes changed, for each attribute.
fn changed(item: &Item, names: &[String]) -> Vec<Item> {
    let other = |value: &AttributeValue| match value {
        AttributeValue::S(text) => AttributeValue::S(format!("{text}x")),
        AttributeValue::N(_) => AttributeValue::N("4".to_owned()),
        AttributeValue::Bool(truth) => AttributeValue::Bool(!truth),
        other => other.clone(),
    };
    let mut variants = Vec::new();
    for name in names {
        if let Some(value) = item.get(name.as_str()) {
            let mut variant = item.clone();
            variant.insert(name.clone(), other(value));
            let mut unreadable = item.clone();
            unreadable.insert(name.clone(), AttributeValue::L(Vec::new()));
            variants.extend([variant, unreadable, item.clone()]);
        }
    }
    variants
}

/// The calls of each function during the life of all samples.
async fn asked(functions: &[Function], ledger: LedgerKind) -> Vec<(Function, BTreeSet<Permission>)> {
    let mut world = World::new(ledger);
    let mut asked: Vec<_> = functions.iter().map(|function| (*function, BTreeSet::new())).collect();
    let (schema, _) = shipped();
    for (function, asked) in &mut asked {
        if *function != Function::Sweep && *function != Function::Propagate {
            claim(&world.store, &schema.layout, ledger).await.unwrap();
            asked.extend(world.store.take().iter().flat_map(needed));
        }
    }
    let samples = table_design::samples().unwrap();
    for item in &samples {
        world.put(item.clone());
    }
    world.settle(&mut asked).await;
    for item in &samples {
        let key = schema.layout.key(item).unwrap();
        let Some(image) = schema.image(&key, item) else { continue };
        for variant in changed(item, &image.definition.attributes) {
            world.put(variant);
            world.settle(&mut asked).await;
        }
    }
    for item in &samples {
        world.delete(&schema.layout.key(item).unwrap()).await;
        world.settle(&mut asked).await;
    }
    let dynamodb = json!({"SequenceNumber": "9", "ApproximateCreationDateTime": world.clock.now_ms() / 1_000});
    let unreadable = json!({"eventID": "unreadable", "dynamodb": dynamodb}).to_string();
    let unreadable = Window::of_shard("shardId-1").around(&event(&[unreadable]));
    for (function, asked) in asked.iter_mut().filter(|(function, _)| *function != Function::Sweep) {
        // The second time the shard has exceptions.
        for _ in 0..2 {
            world.engine(*function).handle(&unreadable, u64::MAX).await.unwrap();
        }
        asked.extend(world.store.take().iter().flat_map(needed));
    }
    asked
}

#[tokio::test]
async fn functions_may_do_what_they_do() {
    let mut unused = String::new();
    let mut used: Vec<(Function, BTreeSet<Permission>)> = Vec::new();
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        used.extend(asked(&[Function::Aggregate, Function::Propagate, Function::Sweep], ledger).await);
        used.extend(asked(&[Function::Combined, Function::Sweep], ledger).await);
    }
    let ids = READERS.into_iter().chain([("Sweep", Function::Sweep)]);
    for (id, function) in ids {
        let ours: BTreeSet<Permission> =
            used.iter().filter(|(other, _)| *other == function).flat_map(|(_, asked)| asked.clone()).collect();
        for name in BOTH {
            let allowed = allowed(&read(name), id);
            let missing: Vec<_> = ours.difference(&allowed).collect();
            assert!(missing.is_empty(), "{name}: {id} may not {missing:?}");
            if name == "template.yaml" {
                let more = allowed.difference(&ours).map(|(place, action)| format!(" {place}:{action}"));
                unused.extend([format!("{function}:{}\n", more.collect::<String>())]);
            }
        }
    }
    // What only happens when something went wrong: several reasons for which the breaker stops a batch (`batch::brake`), or a
    // search that ended a sweep (`fan_out::again`). The simulation compares also these calls with the policies.
    expect![[r#"
        aggregate: ledger:BatchGetItem
        propagate: ledger:BatchGetItem
        combined: ledger:BatchGetItem
        sweep: ledger:UpdateItem table:PutItem
    "#]]
    .assert_eq(&unused);
}

#[test]
fn only_the_sweep_reads_whole_tables_and_what_counts_puts_and_deletes_nothing_of_the_applications() {
    for (_, template) in both() {
        let may =
            |id: &str, place: &'static str, action: &str| allowed(&template, id).contains(&(place, action.to_owned()));
        for (id, _) in READERS {
            assert!(!may(id, MAIN, "Scan") && !may(id, LEDGER, "Scan"), "{id}");
        }
        assert!(may("Sweep", MAIN, "Scan") && !may("Sweep", LEDGER, "Scan"));
        for action in ["PutItem", "DeleteItem"] {
            assert!(!may("Aggregate", MAIN, action), "{action}");
        }
    }
}

/// A grant that DynamoDB takes for itself, and no other.
#[test]
fn a_grant_of_the_customer_key_is_for_aws_alone() {
    fn statements<'a>(of: &'a Value, found: &mut Vec<&'a Value>) {
        match of {
            Value::Array(all) => all.iter().for_each(|it| statements(it, found)),
            Value::Object(all) => {
                found.extend(all.get("Action").filter(|it| it.to_string().contains("CreateGrant")).map(|_| of));
                all.values().for_each(|it| statements(it, found));
            }
            _ => {}
        }
    }
    for (name, template) in both() {
        let mut found = Vec::new();
        statements(&template["Resources"], &mut found);
        assert_eq!(found.len(), 6, "{name}: four roles and two policies");
        for statement in found {
            assert_eq!(statement["Action"], json!(["kms:CreateGrant"]), "{name}");
            assert_eq!(statement["Condition"]["Bool"]["kms:GrantIsForAWSResource"], json!(true), "{name}");
        }
    }
}

/// `redrive` and `replay` run what `combined` runs. The calls of all commands: `tests/end_to_end/permitted.rs`.
#[tokio::test]
async fn an_operator_may_do_what_a_redrive_does_and_a_reader_may_write_nothing() {
    let mut used = BTreeSet::new();
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        used.extend(asked(&[Function::Combined], ledger).await.into_iter().flat_map(|(_, asked)| asked));
    }
    for name in BOTH {
        let (operator, reader) = (allowed_by(&read(name), "OperatorPolicy"), allowed_by(&read(name), "ReadOnlyPolicy"));
        let missing: Vec<_> = used.difference(&operator).collect();
        assert!(missing.is_empty(), "{name}: an operator may not {missing:?}");
        let writes: Vec<_> = operator.difference(&reader).map(|(place, action)| format!("{place}:{action}")).collect();
        let all = ["PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"];
        let mut wanted: Vec<_> =
            [MAIN, LEDGER].iter().flat_map(|place| all.map(|action| format!("{place}:{action}"))).collect();
        wanted.sort();
        let mut writes = writes;
        writes.sort();
        assert_eq!(writes, wanted, "{name}: an operator may write, and a reader may not");
        assert!(reader.is_subset(&operator), "{name}");
    }
}
