//! A store that ends an invocation after a number of writes, as Lambda does at a time-out, at any point of the
//! invocation.
//!
//! A call counts if it writes into the application's table. Writes to the ledger alone, such as the note of a new
//! stream shard, do not count.
//!
//! *Keeps true*: a write is either sent and gets its response, or is not sent at all, so the listed writes are those
//! that happened. The first write beyond the limit never gets a response; the caller of the invocation then drops it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Units, Updated};
use tokio::sync::watch;

/// A store that limits the number of calls that write.
#[derive(Debug)]
pub struct KillingStore<S> {
    store: S,
    /// Limit on the calls that write; no limit if `None`.
    n_calls_max: Option<usize>,
    calls: watch::Sender<WriteCalls>,
    landed: Mutex<Vec<LandedWrite>>,
}

/// Number of calls that write.
#[derive(Clone, Copy, Debug, Default)]
struct WriteCalls {
    /// The counted ones.
    n_done: usize,
    n_counting: usize,
    /// All calls in flight.
    n_under_way: usize,
    /// True if another call tried to write.
    is_over: bool,
}

/// A write that was done.
#[derive(Clone, Debug)]
pub(crate) struct LandedWrite {
    pub(crate) write: Write,
    /// Its write units; those of a transaction are with its first write.
    pub(crate) units: Units,
}

impl<S: Store> KillingStore<S> {
    /// A store that answers no write after this number of calls that write.
    #[must_use]
    pub fn new(store: S, n_calls_max: Option<usize>) -> Self {
        Self { store, n_calls_max, calls: watch::Sender::default(), landed: Mutex::default() }
    }

    /// Waits until the limit is reached and another call tries to write.
    pub async fn killed(&self) {
        let ended = |calls: &WriteCalls| calls.is_over && calls.n_under_way == 0;
        // The sender lives as long as the store.
        drop(self.calls.subscribe().wait_for(ended).await);
    }

    /// True if the limit is reached.
    pub(crate) fn is_used_up(&self) -> bool {
        self.n_calls_max.is_some_and(|n_max| self.calls.borrow().n_done >= n_max)
    }

    /// The writes that were done.
    pub(crate) fn landed(&self) -> MutexGuard<'_, Vec<LandedWrite>> {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call write, or blocks it forever.
    async fn admitted(&self, writes: &[Write]) {
        let (mut changes, counts) = (self.calls.subscribe(), usize::from(counts(writes)));
        let n_max = self.n_calls_max.unwrap_or(usize::MAX);
        loop {
            let mut is_admitted = false;
            self.calls.send_if_modified(|calls| {
                is_admitted = calls.n_done + calls.n_counting < n_max;
                calls.n_counting += if is_admitted { counts } else { 0 };
                calls.n_under_way += usize::from(is_admitted);
                // A call in flight may turn out to write nothing, and leaves its place to this one.
                let is_over = !is_admitted && calls.n_done >= n_max;
                let is_new = is_admitted || is_over != calls.is_over;
                calls.is_over = is_over;
                is_new
            });
            if is_admitted {
                return;
            }
            drop(changes.changed().await);
        }
    }

    /// Notes how a call ended: whether it wrote, and its units.
    fn ended(&self, writes: &[Write], done: Option<Units>) {
        if let Some(units) = done {
            let units = std::iter::once(units).chain(std::iter::repeat(0.0));
            let landed = writes.iter().cloned().zip(units).map(|(write, units)| LandedWrite { write, units });
            self.landed().extend(landed);
        }
        let counts = usize::from(counts(writes));
        self.calls.send_modify(|calls| {
            calls.n_under_way -= 1;
            calls.n_counting -= counts;
            calls.n_done += if done.is_some() { counts } else { 0 };
        });
    }
}

/// True if a call with these writes writes into the application's table.
fn counts(writes: &[Write]) -> bool {
    writes.iter().any(|write| write.table == Table::Main)
}

impl<S: Store> Store for KillingStore<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.store.read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let writes = std::slice::from_ref(write);
        self.admitted(writes).await;
        let outcome = self.store.write(write).await;
        let done = match &outcome {
            Ok(Outcome::Done { units }) => Some(*units),
            _ => None,
        };
        self.ended(writes, done);
        outcome
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let writes = std::slice::from_ref(write);
        self.admitted(writes).await;
        let outcome = self.store.update(write).await;
        let done = match &outcome {
            Ok(Updated::Done { units, .. }) => Some(*units),
            _ => None,
        };
        self.ended(writes, done);
        outcome
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.admitted(transaction.writes()).await;
        let outcome = self.store.transact(transaction).await;
        let done = match &outcome {
            Ok(TransactOutcome::Done { units }) => Some(units.iter().map(|(_, units)| units).sum()),
            _ => None,
        };
        self.ended(transaction.writes(), done);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use derive::write::Action;
    use futures::FutureExt as _;
    use keys::layout::Layout;
    use store::memory::MemoryStore;

    use super::*;

    fn put(layout: &Layout, name: &str) -> Write {
        let key = Key::new(name, "S");
        let table = if name == "noted" { Table::Ledger } else { Table::Main };
        Write { table, action: Action::Put(layout.key_item(&key)), key, guard: None }
    }

    #[test]
    fn a_write_after_the_last_one_is_never_answered_and_does_not_land() {
        let layout = Layout::of("PK", "SK");
        let killing = KillingStore::new(MemoryStore::new(layout.clone()), Some(1));
        for name in ["noted", "first"] {
            assert!(killing.write(&put(&layout, name)).now_or_never().unwrap().is_ok());
        }
        assert!(killing.is_used_up() && killing.killed().now_or_never().is_none(), "nobody wanted more");
        assert!(killing.write(&put(&layout, "noted")).now_or_never().is_none());
        assert!(killing.write(&put(&layout, "second")).now_or_never().is_none());
        assert!(killing.killed().now_or_never().is_some());
        let landed: Vec<String> = killing.landed().iter().map(|it| it.write.key.pk.clone()).collect();
        assert_eq!(landed, ["noted", "first"]);
        assert!(killing.store.get(Table::Main, &[Key::new("second", "S")]).now_or_never().unwrap().unwrap().is_empty());
    }

    #[test]
    fn without_a_limit_all_is_written() {
        let layout = Layout::of("PK", "SK");
        let killing = KillingStore::new(MemoryStore::new(layout.clone()), None);
        for name in ["first", "second"] {
            assert!(killing.write(&put(&layout, name)).now_or_never().unwrap().is_ok());
        }
        assert!(!killing.is_used_up());
        assert_eq!(killing.landed().len(), 2);
    }
}
