//! How many due jobs one sweep lets begin, beside a million that wait.
//!
//! `cargo bench -p benches --bench sweep`. The table has 1,000,000 cascades that wait for another day, and 20,000 that are
//! due. Each call takes 5 ms. No item of the table is in memory: a page is made when it is asked for, so the memory of
//! the process is that of the sweep. The bar is 20,000 rings in 50 seconds and in 100 MB.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use catalogue::{catalogue, schema};
use derive::{
    family::Family,
    query::{Consistency, Query, SortKeys},
    schema::Schema,
    write::{Table, Transaction, Write},
};
use engine::{
    batch::Engine,
    bookkeeping::kept,
    clock::{Clock, SystemClock},
};
use keys::{item::Item, job::JobKey, key::Key};
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

/// Cascades that are due, and all that there are.
const N_DUE: usize = 20_000;
const N_JOBS: usize = 1_020_000;

/// How long a call takes.
const CALL: Duration = Duration::from_millis(5);

/// How long a sweep may take, in milliseconds.
const SWEEP_MS: u64 = 50_000;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(sweep());
}

async fn sweep() {
    let schema = Arc::new(schema());
    let table = Arc::new(Jobs::new(&schema, SystemClock.now_ms()));
    let catalogue = Arc::new(catalogue(&schema).expect("the shipped catalogue"));
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(schema, catalogue, families, Arc::clone(&table), Arc::new(SystemClock));
    let began = Instant::now();
    let swept = engine.sweep(|_| true, SystemClock.now_ms() + SWEEP_MS).await.expect("a sweep");
    let elapsed = began.elapsed();
    println!(
        "{} of {N_DUE} due jobs begun in {:.1} s, beside {} that wait; {} calls of {CALL:?}; at most {} MB",
        swept.n_begun,
        elapsed.as_secs_f64(),
        N_JOBS - N_DUE,
        table.n_calls.load(Ordering::Relaxed),
        most_memory_mb()
    );
    assert_eq!((swept.n_begun, swept.is_cut), (N_DUE, false));
}

/// Most memory of this process, in megabytes.
fn most_memory_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() / 1_024
}

/// The tables: job number `n` is due before all of greater numbers, and those behind [`N_DUE`] are due another day.
struct Jobs {
    schema: Arc<Schema>,
    now_ms: u64,
    /// A job of the service's own, and its owner.
    sample: Item,
    n_calls: AtomicUsize,
}

impl Jobs {
    fn new(schema: &Arc<Schema>, now_ms: u64) -> Self {
        let sample = kept(&schema.layout).into_iter().find(|kept| kept.name == "job").expect("a sample of a job");
        Self { schema: Arc::clone(schema), now_ms, sample: sample.attributes, n_calls: AtomicUsize::new(0) }
    }

    async fn called(&self) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(CALL).await;
    }

    fn due_at_ms(&self, number: usize) -> u64 {
        let number_ms = u64::try_from(number).expect("a number");
        if number < N_DUE { self.now_ms - DAY_MS + number_ms } else { self.now_ms + DAY_MS + number_ms }
    }

    fn job(number: usize) -> Key {
        JobKey { derivation: "post-cascade".to_owned(), id: format!("e{number:07}") }.key()
    }

    fn item(&self, key: &Key) -> Option<Item> {
        let number: usize = JobKey::parse(key)?.id.strip_prefix('e')?.parse().ok()?;
        let mut item = self.schema.layout.key_item(key);
        item.extend(self.sample.clone());
        let number_of = |ms: u64| AttributeValue::N(ms.to_string());
        item.insert("DueAt".to_owned(), number_of(self.due_at_ms(number)));
        item.insert("OwnerPK".to_owned(), AttributeValue::S(format!("USER#{number}")));
        Some(item)
    }
}

impl Store for Jobs {
    async fn read(&self, _table: Table, keys: &[Key], _how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.called().await;
        Ok(keys.iter().filter_map(|key| Some((key.clone(), self.item(key)?))).collect())
    }

    async fn query(&self, _table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.called().await;
        let Some(partition) = query.pk.strip_prefix("DUE#") else { return Ok(Page { items: Vec::new(), next: None }) };
        let SortKeys::Between(_, until) = &query.sk else { panic!("the queue is read up to now") };
        let after = after.and_then(|after| self.schema.layout.key(&after.0));
        let mut items = Vec::new();
        for number in 0..N_JOBS {
            let sk = format!("{:015}#", self.due_at_ms(number));
            if sk > *until {
                break;
            }
            let job = Self::job(number);
            let key = Key::new(&query.pk, format!("{sk}{}", job.sk));
            if !job.pk.ends_with(partition) || after.as_ref().is_some_and(|after| key.sk <= after.sk) {
                continue;
            }
            items.push(self.schema.layout.key_item(&key));
            if query.limit.is_some_and(|limit| items.len() >= usize::try_from(limit).expect("a limit")) {
                let next = items.last().cloned().map(Cursor);
                return Ok(Page { items, next });
            }
        }
        Ok(Page { items, next: None })
    }

    async fn scan(&self, _table: Table, _segment: Segment, _after: Option<Cursor>) -> Result<Page, StoreError> {
        panic!("a sweep of the jobs scans nothing")
    }

    async fn write(&self, _write: &Write) -> Result<Outcome, StoreError> {
        self.called().await;
        Ok(Outcome::Done { units: 1.0 })
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        panic!("a sweep of the jobs counts nothing, not even {write:?}")
    }

    async fn transact(&self, _transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        panic!("a sweep of the jobs has no transactions")
    }
}
