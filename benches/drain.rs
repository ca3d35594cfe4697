//! How fast one lane counts, and what a count that is shown costs.
//!
//! `cargo bench -p benches --bench drain`. Each call of the database takes 5 ms; the database is the model in memory, and
//! the ledger is of watermarks. A record is an item that joins a group.
//!
//! *Counts alone*: batches of 1,000 changes, spread over 1, 10, 100 or 1,000 groups, beside a bare loop that reads the same
//! events and sends one unconditional `ADD` for each group of a batch, as many at once. The loop counts twice after a retry.
//!
//! *Counts that are shown*: 4,000 changes of 4,000 groups that exist, in batches of 500; then the records that these writes
//! made, in batches of 500. `aggregate` counts, `propagate` looks; `combined` does both, one after the other. Beside them a
//! hand-written transaction: a marker for each change and an `ADD` on its group, 50 of each, one transaction after another.
//!
//! Ratios of one run compare; the times of two machines do not.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use benches::joins::{COUNTER_SK, event, join, member_count, read_halves};
use derive::{
    catalogue::Catalogue,
    family::Family,
    guard::{Guard, Purpose},
    query::{Consistency, Query},
    schema::Schema,
    sources::sums,
    write::{Action, Table, Transaction, Update, Write},
};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    count::UPDATES_AT_ONCE,
    ledger::LedgerKind,
};
use futures::{StreamExt, stream};
use keys::{item::Item, key::Key, size::item_bytes};
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, memory::MemoryStore};

/// How long a call takes.
const CALL: Duration = Duration::from_millis(5);

/// Batches of counts alone, and changes of each.
const N_BATCHES: usize = 20;
const N_CHANGES: usize = 1_000;

/// Changes that are shown, and those of a batch.
const N_SHOWN: usize = 4_000;
const BATCH: usize = 500;

/// Changes of a hand-written transaction: each has two of its 100 actions.
const TRANSACTION: usize = 50;

/// How long a batch may take, in milliseconds.
const INVOCATION_MS: u64 = 600_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    println!("counts alone, {N_BATCHES} batches of {N_CHANGES} changes; changes a second");
    for n_groups in [1, 10, 100, 1_000] {
        let (loops, ours) = runtime.block_on(async { (bare_loop(n_groups).await, counted(n_groups).await) });
        println!("{n_groups:>5} groups: {ours:>8.0}, bare loop {loops:>8.0}: {:.2} of it", ours / loops);
    }
    println!("counts that are shown, {N_SHOWN} changes of as many groups");
    runtime.block_on(shown());
}

/// The model, whose calls take time and are metered.
struct Metered {
    memory: MemoryStore,
    n_calls: AtomicU64,
    /// In halves.
    read_units: AtomicU64,
    /// In whole ones.
    write_units: AtomicU64,
}

impl Metered {
    fn new(schema: &Schema) -> Arc<Self> {
        let memory = MemoryStore::new(schema.layout.clone());
        let zero = || AtomicU64::new(0);
        Arc::new(Self { memory, n_calls: zero(), read_units: zero(), write_units: zero() })
    }

    async fn call(&self) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(CALL).await;
    }

    fn read_of(&self, bytes: usize, consistency: Consistency) {
        self.read_units.fetch_add(read_halves(bytes, consistency == Consistency::Strong), Ordering::Relaxed);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "write units are small whole numbers")]
    fn wrote(&self, units: f64) {
        self.write_units.fetch_add(units.round() as u64, Ordering::Relaxed);
    }
}

impl Store for Metered {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.call().await;
        let items = self.memory.read(table, keys, how).await?;
        // What is not there costs as much as what is small.
        let absent = std::iter::repeat_n(0, keys.len().saturating_sub(items.len()));
        for bytes in items.iter().map(|(_, item)| item_bytes(item)).chain(absent) {
            self.read_of(bytes, how);
        }
        Ok(items)
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.call().await;
        let page = self.memory.query(table, query, after).await?;
        self.read_of(page.items.iter().map(item_bytes).sum(), query.consistency);
        Ok(page)
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.call().await;
        self.memory.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.call().await;
        let outcome = self.memory.write(write).await?;
        if let Outcome::Done { units } = outcome {
            self.wrote(units);
        }
        Ok(outcome)
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.call().await;
        let updated = self.memory.update(write).await?;
        if let Updated::Done { units, .. } = &updated {
            self.wrote(*units);
        }
        Ok(updated)
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.call().await;
        let outcome = self.memory.transact(transaction).await?;
        if let TransactOutcome::Done { units } = &outcome {
            for (_, units) in units {
                self.wrote(*units);
            }
        }
        Ok(outcome)
    }
}

/// The shipped table with one derivation, the number of members of a group, and its display if `is_shown`.
fn table(is_shown: bool) -> (Arc<Schema>, Arc<Catalogue>) {
    let schema = catalogue::schema();
    let catalogue = member_count(&schema, is_shown);
    (Arc::new(schema), Arc::new(catalogue))
}

type Function = Engine<Arc<Metered>>;

fn function(families: &[Family], is_shown: bool, store: &Arc<Metered>) -> Function {
    let (schema, catalogue) = table(is_shown);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Engine::new(schema, catalogue, families.to_vec(), Arc::clone(store), clock).with_ledger(LedgerKind::Watermarks)
}

/// Hands these events to a function, each again until all of it is done.
async fn handled(function: &Function, events: &[String]) -> Duration {
    let began = Instant::now();
    for event in events {
        while function
            .handle(event, SystemClock.now_ms() + INVOCATION_MS)
            .await
            .expect("an event")
            .failed_from
            .is_some()
        {}
    }
    began.elapsed()
}

/// Changes that are counted in a second.
async fn counted(n_groups: usize) -> f64 {
    let store = Metered::new(&table(false).0);
    let function = function(&[Family::Additive], false, &store);
    let elapsed = handled(&function, &joins(N_BATCHES, N_CHANGES, n_groups)).await;
    let items = store.memory.snapshot(Table::Main);
    let counted: i64 = sums(&table(false).0, items.values()).values().map(|tally| tally.count).sum();
    assert_eq!(usize::try_from(counted), Ok(N_BATCHES * N_CHANGES), "each change counts once");
    a_second(N_BATCHES * N_CHANGES, elapsed)
}

#[derive(Deserialize)]
struct PlainEvent {
    #[serde(rename = "Records")]
    records: Vec<Value>,
}

/// The same by a loop over the groups of each event.
async fn bare_loop(n_groups: usize) -> f64 {
    let store = Metered::new(&table(false).0);
    let began = Instant::now();
    for event in joins(N_BATCHES, N_CHANGES, n_groups) {
        let event: PlainEvent = serde_json::from_str(&event).expect("an event");
        let mut groups: BTreeMap<String, u64> = BTreeMap::new();
        for record in event.records {
            let group = record["dynamodb"]["NewImage"]["SK"]["S"].as_str().expect("a key").to_owned();
            *groups.entry(group).or_default() += 1;
        }
        let updates = groups.into_iter().map(|(group, number)| {
            let add = Item::from([("Value".to_owned(), AttributeValue::N(number.to_string()))]);
            let action = Action::Update(Update { add, ..Update::default() });
            let key = Key::new(group, COUNTER_SK);
            let (store, write) = (&store, Write { table: Table::Main, key, action, guard: None });
            async move { store.write(&write).await.expect("a write") }
        });
        stream::iter(updates).buffer_unordered(UPDATES_AT_ONCE).for_each(async |_| {}).await;
    }
    a_second(N_BATCHES * N_CHANGES, began.elapsed())
}

/// What a function, or a way of writing, has cost.
struct Cost {
    elapsed: Duration,
    cpu_s: f64,
    n_calls: u64,
    read_halves: u64,
    write_units: u64,
}

impl Cost {
    /// The cost of this.
    async fn of(store: &Metered, work: impl Future<Output = Duration>) -> Self {
        let (calls, reads, writes) = (&store.n_calls, &store.read_units, &store.write_units);
        let now = || [calls, reads, writes].map(|number| number.load(Ordering::Relaxed));
        let (before, cpu_s) = (now(), cpu_s());
        let elapsed = work.await;
        let [n_calls, read_halves, write_units] = now();
        Self {
            elapsed,
            cpu_s: self::cpu_s() - cpu_s,
            n_calls: n_calls - before[0],
            read_halves: read_halves - before[1],
            write_units: write_units - before[2],
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            elapsed: self.elapsed + other.elapsed,
            cpu_s: self.cpu_s + other.cpu_s,
            n_calls: self.n_calls + other.n_calls,
            read_halves: self.read_halves + other.read_halves,
            write_units: self.write_units + other.write_units,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
    fn print(&self, what: &str) {
        let each = |number: u64| number as f64 / N_SHOWN as f64;
        println!(
            "{what:<28} a change: {:.3} write units, {:.3} read units, {:.3} calls; {:.3} CPU seconds a 1,000; {:>6.0} a second",
            each(self.write_units),
            each(self.read_halves) / 2.0,
            each(self.n_calls),
            self.cpu_s * 1_000.0 / N_SHOWN as f64,
            a_second(N_SHOWN, self.elapsed),
        );
    }
}

async fn shown() {
    let events = joins(N_SHOWN / BATCH, BATCH, N_SHOWN);
    let store = groups();
    let (counts, looks) = ([Family::Additive], [Family::LevelTriggered]);
    let aggregate = Cost::of(&store, handled(&function(&counts, true, &store), &events)).await;
    let echoes = made(&store);
    let propagate = Cost::of(&store, handled(&function(&looks, true, &store), &echoes)).await;
    assert_shown(&store);
    aggregate.print("aggregate");
    propagate.print("propagate");
    aggregate.and(&propagate).print("both, one after the other");
    let store = groups();
    let both = [Family::Additive, Family::LevelTriggered];
    let combined = function(&both, true, &store);
    let cost = Cost::of(&store, handled(&combined, &events)).await;
    let echoes = made(&store);
    let cost = cost.and(&Cost::of(&store, handled(&combined, &echoes)).await);
    assert_shown(&store);
    cost.print("combined");
    let store = groups();
    let by_hand = Cost::of(&store, by_hand(&store, &events)).await;
    assert_shown(&store);
    by_hand.print("hand-written transactions");
}

/// All groups, and no records of them.
fn groups() -> Arc<Metered> {
    let store = Metered::new(&table(true).0);
    for group in 0..N_SHOWN {
        let key = Key::new(format!("GROUP#g{group}"), "METADATA");
        let mut item = table(true).0.layout.key_item(&key);
        item.insert("EntityType".to_owned(), AttributeValue::S("Group".to_owned()));
        item.insert("Name".to_owned(), AttributeValue::S("Engines and what they are good for".to_owned()));
        store.memory.put_raw(Table::Main, item).expect("an item");
    }
    drop(store.memory.take_records());
    store
}

fn assert_shown(store: &Metered) {
    let items = store.memory.snapshot(Table::Main);
    let one = AttributeValue::N("1".to_owned());
    let n_shown = items.values().filter(|item| item.get("MemberCount") == Some(&one)).count();
    assert_eq!(n_shown, N_SHOWN, "each group shows its member");
}

/// A marker for each change and an addition to its group, in transactions.
async fn by_hand(store: &Arc<Metered>, events: &[String]) -> Duration {
    let began = Instant::now();
    for event in events {
        let event: PlainEvent = serde_json::from_str(event).expect("an event");
        for records in event.records.chunks(TRANSACTION) {
            let writes = records.iter().flat_map(|record| {
                let marker = Key::new(format!("MARKER#{}", record["eventID"].as_str().expect("an id")), "MARKER");
                let item = table_layout().key_item(&marker);
                let guard = Some(Guard::absent(Purpose::Application));
                let marker = Write { table: Table::Ledger, key: marker, action: Action::Put(item), guard };
                let group = record["dynamodb"]["NewImage"]["SK"]["S"].as_str().expect("a key");
                let add = Item::from([("MemberCount".to_owned(), AttributeValue::N("1".to_owned()))]);
                let action = Action::Update(Update { add, ..Update::default() });
                [marker, Write { table: Table::Main, key: Key::new(group, "METADATA"), action, guard: None }]
            });
            let transaction = Transaction::new(writes.collect()).expect("a transaction");
            store.transact(&transaction).await.expect("a call");
        }
    }
    began.elapsed()
}

fn table_layout() -> keys::layout::Layout {
    catalogue::schema().layout
}

/// The records that the writes so far made, as events.
fn made(store: &Metered) -> Vec<String> {
    let records = store.memory.take_records();
    let records: Vec<Value> = records
        .iter()
        .enumerate()
        .map(|(at, (key, old, new))| {
            let images = [("OldImage", old), ("NewImage", new)];
            let images: Vec<(&str, Value)> =
                images.into_iter().filter_map(|(name, item)| Some((name, json!(item.as_ref()?)))).collect();
            let mut change = json!({
                "ApproximateCreationDateTime": SystemClock.now_ms() / 1_000,
                "Keys": table_layout().key_item(key),
                "SequenceNumber": format!("{}", 9_000_000 + at),
            });
            for (name, image) in images {
                change[name] = image;
            }
            let name = if old.is_some() { "MODIFY" } else { "INSERT" };
            json!({"eventID": format!("made-{at}"), "eventName": name, "dynamodb": change})
        })
        .collect();
    records.chunks(BATCH).map(event).collect()
}

/// Events of joins: each by somebody else, of one group after another.
fn joins(n_batches: usize, n_changes: usize, n_groups: usize) -> Vec<String> {
    let join = |number: usize| join(number, number % n_groups, SystemClock.now_ms());
    let batch = |batch: usize| event(&(batch * n_changes..(batch + 1) * n_changes).map(join).collect::<Vec<_>>());
    (0..n_batches).map(batch).collect()
}

#[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
fn a_second(number: usize, elapsed: Duration) -> f64 {
    number as f64 / elapsed.as_secs_f64()
}

/// Seconds of a processor that this process has used: its user and system time, in hundredths of a second.
/// Source: proc(5), `/proc/pid/stat`.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("the process's own figures");
    let fields = stat.rsplit_once(')').expect("a name in brackets").1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}
