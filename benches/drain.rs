//! How fast one lane counts.
//!
//! `cargo bench -p benches --bench drain`. Each call of the database takes 5 ms; the database is the model in memory, and
//! the ledger is of watermarks. A record is an item that joins a group.
//!
//! Batches of 1,000 changes, spread over 1, 10, 100 or 1,000 groups, beside a bare loop that reads the same
//! events and sends one unconditional `ADD` for each group of a batch, as many at once. The loop counts twice after a retry.
//!
//! Ratios of one run compare; the times of two machines do not.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use benches::joins::{COUNTER_SK, event, join, member_count};
use derive::{
    catalogue::Catalogue,
    family::Family,
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
use keys::{item::Item, key::Key};
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, memory::MemoryStore};

/// How long a call takes.
const CALL: Duration = Duration::from_millis(5);

/// Batches of counts alone, and changes of each.
const N_BATCHES: usize = 20;
const N_CHANGES: usize = 1_000;

/// How long a batch may take, in milliseconds.
const INVOCATION_MS: u64 = 600_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    println!("counts alone, {N_BATCHES} batches of {N_CHANGES} changes; changes a second");
    for n_groups in [1, 10, 100, 1_000] {
        let (loops, ours) = runtime.block_on(async { (bare_loop(n_groups).await, counted(n_groups).await) });
        println!("{n_groups:>5} groups: {ours:>8.0}, bare loop {loops:>8.0}: {:.2} of it", ours / loops);
    }
}

/// The model, whose calls take time.
struct Distant(MemoryStore);

impl Distant {
    fn new() -> Arc<Self> {
        Arc::new(Self(MemoryStore::new(catalogue::schema().layout)))
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        tokio::time::sleep(CALL).await;
        call.await
    }
}

impl Store for Distant {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.call(self.0.read(table, keys, how)).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.call(self.0.query(table, query, after)).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.call(self.0.scan(table, segment, after)).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.call(self.0.write(write)).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.call(self.0.update(write)).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.call(self.0.transact(transaction)).await
    }
}

/// The shipped table with one derivation, the number of members of a group.
fn table() -> (Arc<Schema>, Arc<Catalogue>) {
    let schema = catalogue::schema();
    let catalogue = member_count(&schema);
    (Arc::new(schema), Arc::new(catalogue))
}

/// Hands these events to a function, each again until all of it is done.
async fn handled(function: &Engine<Arc<Distant>>, events: &[String]) -> Duration {
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
    let (store, (schema, catalogue)) = (Distant::new(), table());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let function = Engine::new(schema, catalogue, vec![Family::Additive], Arc::clone(&store), clock);
    let function = function.with_ledger(LedgerKind::Watermarks);
    let elapsed = handled(&function, &joins(N_BATCHES, N_CHANGES, n_groups)).await;
    let items = store.0.snapshot(Table::Main);
    let counted: i64 = sums(&table().0, items.values()).values().map(|tally| tally.count).sum();
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
    let store = Distant::new();
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
