//! How often the writers of one counter meet, by the number of shards that it is spread over.
//!
//! `cargo bench -p benches --bench conflicts`. Eight lanes like one post, each with an engine of its own and batches of
//! 100, under receipts; the post's counter has 1, 4 and 16 shards. No emulator has conflicts, so the table is the
//! model in memory, and what is said of the real one is put before it: a transaction takes 5 ms, holds its items for as
//! long, and one that comes while another holds an item of its own is cancelled, with the reason at that item's position.
//! Source: DynamoDB developer guide, "Transactions: how it works".
//!
//! Each lane does the same number of likes, and the counter is held to their sum at the end, so nothing is lost by what
//! is cancelled. The shard is calculated from the lane's name, so some of eight lanes may share one of 16. The figures of
//! one run compare; those of two machines do not.
//!
//! A lane that met another waits, longer each time. So what conflicts cost shows in the likes a second, more than in how
//! many conflicts there are.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
    family::Family,
    query::{Consistency, Query},
    schema::Schema,
    sources::sums,
    write::{Table, Transaction, Write},
};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use keys::{item::Item, key::Key};
use serde_json::json;
use store::{
    Busy, Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome, Updated, memory::MemoryStore,
};

/// Lanes that like the post, each a writer.
const N_LANES: usize = 8;

/// Batches of a lane.
const N_BATCHES: usize = 200;

/// Likes of a batch: Lambda's default.
const N_LIKES: usize = 100;

/// How long a transaction takes, and holds its items: of the order of what is measured in one region.
const TRANSACTION: Duration = Duration::from_millis(5);

/// How long a batch may take, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!(
        "{N_LANES} lanes, {N_BATCHES} batches of {N_LIKES} likes on one post each; a transaction takes {TRANSACTION:?}"
    );
    for n_shards in [1, 4, 16] {
        let run = runtime.block_on(Run::of(n_shards));
        println!("{run}");
    }
}

/// The model, in which transactions take time and meet.
struct Meeting {
    memory: MemoryStore,
    /// The items of the transactions under way.
    held: Mutex<BTreeSet<Key>>,
    n_done: AtomicU64,
    n_conflicts: AtomicU64,
}

impl Meeting {
    /// Takes the items of a transaction, or says which of them others hold.
    fn take(&self, keys: &[&Key]) -> Result<(), Vec<Reason>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = |key: &&Key| if held.contains(*key) { Reason::Busy(Busy::Conflict) } else { Reason::None };
        let reasons: Vec<Reason> = keys.iter().map(reason).collect();
        if reasons.iter().any(|reason| *reason != Reason::None) {
            return Err(reasons);
        }
        held.extend(keys.iter().map(|key| (*key).clone()));
        Ok(())
    }

    fn release(&self, keys: &[&Key]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|key| !keys.contains(&key));
    }
}

impl Store for Meeting {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.memory.read(table, keys, how).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.memory.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.memory.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.memory.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.memory.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let keys: Vec<&Key> = transaction.writes().iter().map(|write| &write.key).collect();
        let taken = self.take(&keys);
        tokio::time::sleep(TRANSACTION).await;
        if let Err(reasons) = taken {
            self.n_conflicts.fetch_add(1, Ordering::Relaxed);
            return Ok(TransactOutcome::Cancelled { reasons });
        }
        let outcome = self.memory.transact(transaction).await;
        self.release(&keys);
        self.n_done.fetch_add(1, Ordering::Relaxed);
        outcome
    }
}

/// What a run came to.
struct Run {
    n_shards: u32,
    elapsed: Duration,
    n_done: u64,
    n_conflicts: u64,
    n_likes: u64,
}

impl Run {
    /// A run in which the post's counter has so many shards.
    async fn of(n_shards: u32) -> Self {
        let (schema, catalogue) = table(n_shards);
        let memory = MemoryStore::new(schema.layout.clone());
        let (n_done, n_conflicts) = (AtomicU64::new(0), AtomicU64::new(0));
        let store = Arc::new(Meeting { memory, held: Mutex::default(), n_done, n_conflicts });
        // Made before, so that the lanes wait for transactions, not for a processor.
        let events = (0..N_LANES).map(|lane| (0..N_BATCHES).map(|batch| event(lane, batch)).collect::<Vec<_>>());
        let events: Vec<_> = events.collect();
        let began = Instant::now();
        let lanes = events.into_iter().map(|events| {
            let (schema, catalogue, store) = (Arc::clone(&schema), Arc::clone(&catalogue), Arc::clone(&store));
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let engine = Engine::new(schema, catalogue, vec![Family::Additive], store, clock);
            tokio::spawn(like(engine.with_ledger(LedgerKind::Receipts), events))
        });
        for lane in lanes.collect::<Vec<_>>() {
            lane.await.expect("a lane");
        }
        let elapsed = began.elapsed();
        let items = store.memory.snapshot(Table::Main);
        let counted: i64 = sums(&schema, items.values()).values().map(|tally| tally.count).sum();
        let n_likes = (N_LANES * N_BATCHES * N_LIKES) as u64;
        assert_eq!(u64::try_from(counted), Ok(n_likes), "each like counts once");
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Self { n_shards, elapsed, n_done: count(&store.n_done), n_conflicts: count(&store.n_conflicts), n_likes }
    }
}

impl std::fmt::Display for Run {
    #[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let met = 100.0 * self.n_conflicts as f64 / (self.n_conflicts + self.n_done) as f64;
        let a_second = |number: u64| number as f64 / self.elapsed.as_secs_f64();
        write!(
            f,
            "{:>2} shards: {:>6.1} conflicts, {:>6.1} transactions, {:>8.0} likes a second; {met:.1} % met another",
            self.n_shards,
            a_second(self.n_conflicts),
            a_second(self.n_done),
            a_second(self.n_likes)
        )
    }
}

/// The shipped table, with likes counted in so many shards and nothing else.
fn table(n_shards: u32) -> (Arc<Schema>, Arc<Catalogue>) {
    let schema = catalogue::schema();
    let likes = Count {
        source: "Like".to_owned(),
        condition: Condition::Always,
        target: "PostDetail".to_owned(),
        link: Link::of(&[("PostId", "PostId")]),
        sum: None,
        n_shards,
        history: false,
    };
    let catalogue = Catalogue::new(&schema, vec![Derivation::new("D-07", "like-count", likes)]).expect("a catalogue");
    (Arc::new(schema), Arc::new(catalogue))
}

/// Hands a lane its batches, each again until all of it is in.
async fn like<S: Store>(engine: Engine<S>, events: Vec<String>) {
    for event in events {
        loop {
            let handled = engine.handle(&event, SystemClock.now_ms() + INVOCATION_MS).await.expect("an event");
            if handled.failed_from.is_none() {
                break;
            }
        }
    }
}

/// A batch of a lane: likes of one post, each by somebody else.
fn event(lane: usize, batch: usize) -> String {
    let like = |at: usize| {
        let number = batch * N_LIKES + at;
        let keys = json!({"PK": {"S": format!("USER#u{lane}-{number}")}, "SK": {"S": "LIKE#POST#p-1842"}});
        let mut image = keys.clone();
        image["EntityType"] = json!({"S": "Like"});
        json!({
            "eventID": format!("{lane}-{number}"),
            "eventName": "INSERT",
            "dynamodb": {
                "ApproximateCreationDateTime": SystemClock.now_ms() / 1_000,
                "Keys": keys,
                "NewImage": image,
                "SequenceNumber": format!("{}", 1_000_000 + number),
            },
        })
    };
    json!({
        "Records": (0..N_LIKES).map(like).collect::<Vec<_>>(),
        "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"},
        "state": {},
        "shardId": format!("shardId-0000000157368984718{lane}-864758bb"),
    })
    .to_string()
}
