//! What `ripple cost` estimates, against the units that the embedded DynamoDB reports for items written by hand.

use std::{
    future::{pending, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue as SdkValue, ReturnConsumedCapacity},
};
use catalogue::{catalogue, schema};
use derive::{
    family::Family,
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use design::{
    Design,
    cost::{
        FanOutRate, Load, LoadError, Paid, Prices,
        bed::read_units,
        estimate::{MONTH_SECONDS, estimate, receipt_bytes},
        usage::{LoadUsage, usage},
    },
};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use futures::{FutureExt as _, future::BoxFuture};
use keys::{item::Item, key::Key, size::item_bytes};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_dynamo::AttributeValue;
use store::{
    Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated,
    dynamo::{DynamoStore, TableNames},
    memory::MemoryStore,
};
use support::{
    database::{client, create_table, embedded_endpoint, unique_names},
    record::{Window, event, numbered},
};
use tokio::runtime::Builder;

use crate::cost::paced::{PacedRun, Step, paced};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// The most by which an estimate may differ.
const DIFFERENCE_MAX: f64 = 0.10;

/// Shards of the stream.
pub(super) const N_SHARDS: u32 = 4;

/// The embedded DynamoDB, which answers, and the model beside it, which has the records.
struct Beside {
    memory: MemoryStore,
    dynamo: DynamoStore,
    client: Client,
    names: TableNames,
    read_units: Mutex<f64>,
}

impl Beside {
    async fn new() -> Self {
        let (schema, names) = (schema(), unique_names());
        let client = client(&embedded_endpoint().await);
        create_table(&client, &names.main, &schema.layout).await;
        create_table(&client, &names.ledger, &schema.layout).await;
        let dynamo = DynamoStore::new(client.clone(), schema.layout.clone(), names.clone());
        Self { memory: MemoryStore::new(schema.layout), dynamo, client, names, read_units: Mutex::default() }
    }

    fn note(&self, units: f64) {
        *self.read_units.lock().unwrap() += units;
    }
}

impl Store for Beside {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        let name = if table == Table::Main { &self.names.main } else { &self.names.ledger };
        for Key { pk, sk } in keys {
            let call = self.client.get_item().table_name(name).consistent_read(consistency == Consistency::Strong);
            let call = call.key("PK", SdkValue::S(pk.clone())).key("SK", SdkValue::S(sk.clone()));
            let answer = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
            self.note(answer.consumed_capacity.and_then(|it| it.capacity_units).unwrap());
        }
        self.dynamo.read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let page = self.dynamo.query(table, query, after).await?;
        let consistency = if query.index.is_some() { Consistency::Eventual } else { query.consistency };
        self.note(read_units(page.items.iter().map(item_bytes).sum(), consistency));
        Ok(page)
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.dynamo.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.memory.write(write).await?;
        self.dynamo.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.memory.update(write).await?;
        self.dynamo.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.memory.transact(transaction).await?;
        self.dynamo.transact(transaction).await
    }
}

/// The time of a step.
struct StepClock(Arc<AtomicU64>);

impl Clock for StepClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }

    fn until(&self, _at_ms: u64) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    fn chance(&self, _below: u64) -> u64 {
        0
    }
}

fn write_of(item: &Item) -> Write {
    let action = derive::write::Action::Put(item.clone());
    Write { table: Table::Main, key: schema().layout.key(item).unwrap(), action, guard: None }
}

/// The functions on the embedded DynamoDB.
struct Measured {
    now_ms: Arc<AtomicU64>,
    store: Arc<Beside>,
    functions: [Engine<Arc<Beside>>; 2],
    ledger: LedgerKind,
    n_records: usize,
    n_batches: u32,
    write_units: f64,
}

impl Measured {
    async fn new(ledger: LedgerKind) -> Self {
        let store = Arc::new(Beside::new().await);
        let schema = Arc::new(schema());
        let derivations = Arc::new(catalogue(&schema).unwrap());
        let now_ms = Arc::new(AtomicU64::new(SystemClock.now_ms()));
        let function = |family| {
            let clock: Arc<dyn Clock> = Arc::new(StepClock(Arc::clone(&now_ms)));
            let schema = Arc::clone(&schema);
            let engine = Engine::new(schema, Arc::clone(&derivations), vec![family], Arc::clone(&store), clock);
            engine.with_ledger(ledger)
        };
        let functions = [Family::Additive, Family::LevelTriggered].map(function);
        Self { now_ms, store, functions, ledger, n_records: 0, n_batches: 0, write_units: 0.0 }
    }

    /// Writes items as an application, and handles all that follows.
    async fn put(&mut self, items: &[Item]) {
        for item in items {
            self.store.write(&write_of(item)).await.unwrap();
        }
        while self.deliver().await {}
    }

    /// Does again what a run did. Returns the write and read units of its counted time.
    async fn repeat(&mut self, run: &PacedRun) -> (f64, f64) {
        for (at_ms, step) in &run.steps {
            if !run.counted.contains(at_ms) {
                self.take();
            }
            self.now_ms.store(*at_ms, Ordering::Relaxed);
            match step {
                Step::Put(item) => drop(self.store.write(&write_of(item)).await.unwrap()),
                Step::Handled(family, event) => {
                    let function = usize::from(*family == Family::LevelTriggered);
                    self.handle(function, event).await;
                }
            }
        }
        self.take()
    }

    async fn handle(&mut self, function: usize, event: &str) {
        let deadline_ms = self.now_ms.load(Ordering::Relaxed) + 60_000;
        let handled = self.functions[function].handle(event, deadline_ms).await.unwrap();
        assert!(handled.failed_from.is_none() && handled.account.parked.is_empty());
        let commits = handled.account.commits.iter().filter(|commit| !commit.key.pk.starts_with("SHARD#"));
        self.write_units += commits.map(|commit| commit.units).sum::<f64>();
    }

    async fn deliver(&mut self) -> bool {
        let (changes, layout) = (self.store.memory.take_records(), schema().layout);
        let mut records = Vec::new();
        for (key, old, new) in &changes {
            self.n_records += 1;
            let (keys, at_ms) = (layout.key_item(key), self.now_ms.load(Ordering::Relaxed));
            records.push(numbered(self.n_records, &keys, [old.as_ref(), new.as_ref()], at_ms));
        }
        if records.is_empty() {
            return false;
        }
        self.n_batches += 1;
        let mut event = event(&records);
        if self.ledger == LedgerKind::Watermarks {
            event = Window::of_shard(&format!("shardId-{:020}-a1b2c3d4", self.n_batches % N_SHARDS)).around(&event);
        }
        for function in 0..self.functions.len() {
            self.handle(function, &event).await;
        }
        true
    }

    /// The write and read units since the last call.
    fn take(&mut self) -> (f64, f64) {
        (std::mem::take(&mut self.write_units), std::mem::take(&mut *self.store.read_units.lock().unwrap()))
    }
}

fn item(pk: &str, sk: &str, entity: &str, attributes: &[(&str, &str)]) -> Item {
    let pairs = [("PK", pk), ("SK", sk), ("EntityType", entity)].into_iter().chain(attributes.iter().copied());
    pairs.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).collect()
}

const POSTS: usize = 20;

/// The users and posts, which are put first; and the items that name them: 10 of 15 are likes, 3 are comments, 2 are follows.
pub(super) fn written(n_items: usize) -> (Vec<Item>, Vec<Item>) {
    let user = |name: &str| item(&format!("USER#{name}"), "PROFILE", "User", &[("Name", name), ("Avatar", "a.png")]);
    let post = |n: usize| {
        let attributes = [("Status", "published"), ("Title", "Hello")];
        item("USER#author", &format!("POST#2024-01-15T10:30:00.000Z#p{n}"), "Post", &attributes)
    };
    let mut before: Vec<Item> = (0..POSTS).map(post).collect();
    before.push(user("author"));
    let (mut random, mut items) = (StdRng::seed_from_u64(1), Vec::new());
    for n in 0..n_items {
        let (who, other, of) = (format!("who{n}"), format!("other{n}"), format!("p{}", random.random_range(0..POSTS)));
        before.push(user(&who));
        items.push(match n % 15 {
            0..=9 => item(&format!("USER#{who}"), &format!("LIKE#POST#{of}"), "Like", &[]),
            10..=12 => {
                let sk = format!("COMMENT#2024-01-15T10:30:00.000Z#c{n}");
                item(&format!("POST#{of}"), &sk, "Comment", &[("UserId", &who), ("Text", "Yes")])
            }
            _ => {
                before.push(user(&other));
                item(&format!("USER#{who}"), &format!("FOLLOWS#{other}"), "Follow", &[])
            }
        });
    }
    (before, items)
}

pub(super) fn load(ledger: LedgerKind, rate: f64) -> Load {
    let rates = [("Like", 10.0), ("Comment", 3.0), ("Follow", 2.0)];
    let targets = ["like-count", "comment-count"].map(|name| (name.to_owned(), u32::try_from(POSTS).unwrap()));
    Load {
        rates: rates.map(|(name, share)| (name.to_owned(), rate * share / 15.0)).into(),
        targets: targets.into(),
        fan_outs: [].into(),
        reads: [].into(),
        ledger,
        n_shards: N_SHARDS,
        window_seconds: 5.0,
        n_batch_max: 500,
        n_lanes: 2,
        memory_mb: 512,
        call_ms: 5.0,
    }
}

/// The design of the embedded manifest, as `ripple cost` uses it.
pub(super) fn declared() -> Design {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    Design::declared(schema, catalogue)
}

#[track_caller]
pub(super) fn close(what: &str, estimated: f64, measured: f64) {
    println!("{what}: {estimated:.3} estimated, {measured:.3} measured");
    assert!((estimated / measured - 1.0).abs() <= DIFFERENCE_MAX, "{what}: {estimated} estimated, {measured} measured");
}

fn write_units(used: &LoadUsage) -> f64 {
    used.write_units.values().sum()
}

#[tokio::test]
async fn an_estimate_is_close_to_what_the_embedded_database_reports_under_either_ledger() {
    let design = declared();
    for ledger in LEDGERS {
        // In batches of 20, and nearly alone.
        for (rate, minutes) in [(15.2, 2), (0.05, 40)] {
            // In simulated time, which nothing that waits for a database can have.
            let run = std::thread::spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
                runtime.block_on(paced(ledger, rate, Duration::from_mins(minutes)))
            });
            let run = run.join().unwrap();
            let (writes, reads) = Measured::new(ledger).await.repeat(&run).await;
            let used = usage(&design, &load(ledger, rate), &|_, _, _, _| 0).await.unwrap();
            let n = run.n_items();
            close(&format!("{ledger}, {rate} a second, write units"), write_units(&used) / rate, writes / n);
            close(&format!("{ledger}, {rate} a second, read units"), used.read_units / rate, reads / n);
        }
    }
}

#[tokio::test]
async fn a_fan_out_is_close_to_what_the_embedded_database_reports() {
    const N_COMMENTS: u32 = 60;
    let design = declared();
    let comment = |n: u32| {
        let (pk, sk) = (format!("POST#p{n}"), format!("COMMENT#2024-01-15T10:30:00.000Z#c{n}"));
        let index = [("GSI1PK", "USER#ann"), ("GSI1SK", &*sk)];
        item(&pk, &sk, "Comment", &[&[("UserId", "ann"), ("Text", "Yes")], &index[..]].concat())
    };
    let user = |name: &str| item("USER#ann", "PROFILE", "User", &[("Name", name), ("Avatar", "a.png")]);
    let mut measured = Measured::new(LedgerKind::Watermarks).await;
    let before: Vec<Item> = [user("Ann")].into_iter().chain((0..N_COMMENTS).map(comment)).collect();
    measured.put(&before).await;
    measured.take();
    measured.put(&[user("Anna")]).await;
    let (writes, _) = measured.take();
    let fan_outs = [("comment-author".to_owned(), FanOutRate { rate: 1.0, n_items: N_COMMENTS })];
    let load = Load { rates: [].into(), fan_outs: fan_outs.into(), ..load(LedgerKind::Watermarks, 1.0) };
    let estimated = estimate(&design, &load, &Prices::default(), &|_, _, _, _| 0).await.unwrap();
    close("fan-out, write units", estimated.amount("write units") / MONTH_SECONDS, writes);
}

#[tokio::test]
async fn a_bill_has_the_receipts_with_their_overhead_and_its_sum_is_that_of_its_lines() {
    let design = declared();
    assert_eq!(receipt_bytes(&design), 65, "docs/costs.md");
    let load = load(LedgerKind::Receipts, 15.0);
    let bill = estimate(&design, &load, &Prices::default(), &|_, _, _, _| 1_000).await.unwrap();
    let stored = bill.lines.iter().find(|line| line.what == "receipts" && line.unit == "GB").unwrap();
    // 15 changes a second for 15 days, each with a receipt.
    close("receipts, GB", stored.amount, 15.0 * 86_400.0 * 15.0 * 165.0 / 1_073_741_824.0);
    let (_, dollars) = Prices::default().of(Paid::Storage, stored.amount);
    assert!((stored.dollars - dollars).abs() < f64::EPSILON);
    let sum: f64 = bill.lines.iter().map(|line| line.dollars).sum();
    assert!((bill.dollars() - sum).abs() < f64::EPSILON && sum > 0.0);
    assert!(bill.log_bytes() > 0.0);
    let watermarks = Load { ledger: LedgerKind::Watermarks, ..load };
    let bill = estimate(&design, &watermarks, &Prices::default(), &|_, _, _, _| 1_000).await.unwrap();
    assert!(bill.lines.iter().all(|line| line.what != "receipts"));
}

#[tokio::test]
async fn a_load_that_names_what_the_table_does_not_have_is_refused() {
    let design = declared();
    let base = load(LedgerKind::Watermarks, 1.0);
    let refused = |load: Load| load.check(&design).unwrap_err();
    let rates = |name: &str| Load { rates: [(name.to_owned(), 1.0)].into(), ..base.clone() };
    assert!(matches!(refused(rates("Lik")), LoadError::Entity { .. }));
    assert!(matches!(refused(rates("Follower")), LoadError::Entity { .. }), "a mirror is not the application's");
    let targets = Load { targets: [("follower-mirror".to_owned(), 3)].into(), ..base.clone() };
    assert!(matches!(refused(targets), LoadError::Derivation { what: "targets", .. }));
    let fan_outs = [("like-count".to_owned(), FanOutRate { rate: 1.0, n_items: 1 })];
    let fan_outs = Load { fan_outs: fan_outs.into(), ..base.clone() };
    assert!(matches!(refused(fan_outs), LoadError::Derivation { what: "a fan-out", .. }));
    assert!(matches!(refused(Load { rates: [].into(), ..base }), LoadError::Empty(_)));
}

#[tokio::test]
async fn each_entity_of_the_shipped_table_can_be_estimated() {
    let design = declared();
    let base = load(LedgerKind::Watermarks, 1.0);
    for entity in design.schema.entities().filter(|entity| !entity.derived) {
        let load = Load { rates: [(entity.name.clone(), 0.01)].into(), targets: [].into(), ..base.clone() };
        let used = usage(&design, &load, &|_, _, _, _| 0).await.unwrap();
        println!("{}: {:?} {}", entity.name, used.write_units, used.read_units);
        let followed = design::price::followed(&design, entity).map(|it| it.price.table + it.price.indexes);
        // Others may write into the ledger alone.
        assert!(write_units(&used) > 0.0 || followed.is_none(), "{}: {followed:?}", entity.name);
        let is_tree = ["Folder", "Employee"].contains(&entity.name.as_str());
        let has_path = used.write_units.keys().any(|part| part.ends_with("-path"));
        assert!(has_path || !is_tree, "{}: the item's own path is written", entity.name);
    }
}
