//! A store that ends an invocation after so many writes, as Lambda does at a time-out: wherever the invocation is.
//!
//! A call counts if it writes into the application's table. What an invocation notes in the ledger alone, such as a stream
//! shard that it sees for the first time, does not.
//!
//! *Keeps true*: a write is either sent and answered, or not sent at all, so what is listed as written is what was
//! written. The write after the last one that may be sent is never answered; whoever runs the invocation drops it then.

use std::sync::{Mutex, MutexGuard, PoisonError};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Units, Updated};
use tokio::sync::watch;

/// A store that lets so many calls write.
#[derive(Debug)]
pub struct KillingStore<S> {
    store: S,
    /// How many calls may write; any number if `None`.
    n_calls_max: Option<usize>,
    calls: watch::Sender<WriteCalls>,
    landed: Mutex<Vec<LandedWrite>>,
}

/// How many calls write.
#[derive(Clone, Copy, Debug, Default)]
struct WriteCalls {
    /// Those that count.
    n_done: usize,
    n_counting: usize,
    /// All that are under way.
    n_under_way: usize,
    /// Did another call want to write?
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
    pub(crate) fn new(store: S, n_calls_max: Option<usize>) -> Self {
        Self { store, n_calls_max, calls: watch::Sender::default(), landed: Mutex::default() }
    }

    /// Waits until as many calls have written as may, and another one wants to.
    pub(crate) async fn killed(&self) {
        let ended = |calls: &WriteCalls| calls.is_over && calls.n_under_way == 0;
        // The sender lives as long as the store.
        drop(self.calls.subscribe().wait_for(ended).await);
    }

    /// Have as many calls written as may?
    pub(crate) fn is_used_up(&self) -> bool {
        self.n_calls_max.is_some_and(|n_max| self.calls.borrow().n_done >= n_max)
    }

    /// What was written.
    pub(crate) fn landed(&self) -> MutexGuard<'_, Vec<LandedWrite>> {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call write, or holds it for ever.
    async fn admitted(&self, writes: &[Write]) {
        let (mut changes, counts) = (self.calls.subscribe(), usize::from(counts(writes)));
        let n_max = self.n_calls_max.unwrap_or(usize::MAX);
        loop {
            let mut is_admitted = false;
            self.calls.send_if_modified(|calls| {
                is_admitted = calls.n_done + calls.n_counting < n_max;
                calls.n_counting += if is_admitted { counts } else { 0 };
                calls.n_under_way += usize::from(is_admitted);
                // A call under way may turn out to write nothing, and leaves its place to this one.
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

/// Does a call with these writes write into the application's table?
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
