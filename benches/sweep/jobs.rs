//! A store with waiting cascades. Some of them are due. The store computes each page on request and keeps no items.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use derive::{
    query::{Consistency, Query, SortKeys},
    schema::Schema,
    write::{Table, Transaction, Write},
};
use engine::bookkeeping::kept;
use keys::{item::Item, job::JobKey, key::Key};
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The tables. Job number `n` is due before all of greater numbers; those that are not due are due another day.
pub(crate) struct Jobs {
    schema: Arc<Schema>,
    now_ms: u64,
    /// A job of the service's own, and its owner.
    sample: Item,
    n_due: usize,
    n_in_all: usize,
    call: Duration,
    pub(crate) n_calls: AtomicUsize,
    /// The partitions of the queue that were asked for, each time.
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Jobs {
    /// Makes a store with `n_in_all` jobs. `n_due` of them are due at `now_ms`, in milliseconds since the epoch. Each call
    /// takes the time `call`.
    pub(crate) fn new(schema: &Arc<Schema>, now_ms: u64, (n_due, n_in_all): (usize, usize), call: Duration) -> Self {
        let sample = kept(&schema.layout).into_iter().find(|kept| kept.name == "job").expect("a sample of a job");
        Self {
            schema: Arc::clone(schema),
            now_ms,
            sample: sample.attributes,
            n_due,
            n_in_all,
            call,
            n_calls: AtomicUsize::new(0),
            asked: Mutex::default(),
        }
    }

    async fn called(&self) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.call).await;
    }

    fn due_at_ms(&self, number: usize) -> u64 {
        let number_ms = u64::try_from(number).expect("a number");
        if number < self.n_due { self.now_ms - DAY_MS + number_ms } else { self.now_ms + DAY_MS + number_ms }
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
        self.asked.lock().expect("no panic").push(query.pk.clone());
        assert!(query.limit.is_some_and(|limit| limit <= 100), "the queue is read page by page");
        let SortKeys::Between(_, until) = &query.sk else { panic!("the queue is read up to now") };
        let after = after.and_then(|after| self.schema.layout.key(&after.0));
        let mut items = Vec::new();
        for number in 0..self.n_in_all {
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
