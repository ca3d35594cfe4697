//! The tables that callers share, with the late calls.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use derive::{
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Write},
};
use futures::FutureExt as _;
use keys::{item::Item, key::Key, layout::Layout};

use crate::{
    Cursor, Page, Store, StoreError,
    faulty::{Call, turn},
    memory::{Judge, MemoryStore, RecordedChange},
};

/// The tables, without faults of their own.
#[derive(Debug)]
pub struct Database {
    memory: MemoryStore,
    late: Mutex<Vec<Late>>,
    pub(super) flights: Flights,
    /// Records of the main table for the indexes, not taken yet.
    records: Mutex<Vec<RecordedChange>>,
    lag: Option<(Lagging, Mutex<Lag>)>,
}

/// The reads that a lagging view of the main table serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lagging {
    /// Queries of an index, as on AWS.
    Indexes,
    /// Reads by key, as if they were eventually consistent.
    Reads,
}

/// A call whose caller is gone, or abandoned it.
#[derive(Debug)]
pub(super) enum Late {
    Write(Box<Write>),
    Transact(Transaction),
}

/// A call that landed late.
#[derive(Debug)]
pub struct Landed {
    /// The call, for a person.
    pub call: String,
    /// Its outcome, which no caller received.
    pub how: String,
}

impl Database {
    /// Two empty tables, whose pages end after this many bytes.
    #[must_use]
    pub fn new(layout: Layout, page_bytes: usize) -> Self {
        Self {
            memory: MemoryStore::with_page_bytes(layout, page_bytes),
            late: Mutex::default(),
            flights: Flights::default(),
            records: Mutex::default(),
            lag: None,
        }
    }

    /// Tables that answer some reads from the past.
    #[must_use]
    pub fn lagging(layout: Layout, page_bytes: usize, lagging: Lagging) -> Self {
        let lag = Lag::new(layout.clone(), page_bytes);
        Self { lag: Some((lagging, Mutex::new(lag))), ..Self::new(layout, page_bytes) }
    }

    /// Replaces the judge of guards.
    #[must_use]
    pub fn judged(self, judge: Judge) -> Self {
        Self { memory: self.memory.judged(judge), ..self }
    }

    /// The current tables.
    #[must_use]
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Takes the stream records of the main table since the last call: key, old item, new item.
    #[must_use]
    pub fn take_records(&self) -> Vec<(Key, Option<Item>, Option<Item>)> {
        self.note_records();
        std::mem::take(&mut locked(&self.records))
    }

    /// Number of calls that have not landed yet.
    #[must_use]
    pub fn n_late(&self) -> usize {
        locked(&self.late).len()
    }

    /// Lands one of the late calls, counted from the oldest; `None` if there is none at this position.
    pub fn land(&self, at: usize) -> Option<Landed> {
        let late = {
            let mut waiting = locked(&self.late);
            (at < waiting.len()).then(|| waiting.remove(at))?
        };
        let (call, how) = match &late {
            Late::Write(write) => {
                let outcome = self.memory.write(write).now_or_never();
                (Call::Write(write).to_string(), format!("{outcome:?}"))
            }
            Late::Transact(transaction) => {
                let outcome = self.memory.transact(transaction).now_or_never();
                (Call::Transact(transaction).to_string(), format!("{outcome:?}"))
            }
        };
        Some(Landed { call, how })
    }

    /// Number of items that the indexes have not caught up with.
    #[must_use]
    pub fn n_behind(&self) -> usize {
        self.note_records();
        self.lag.as_ref().map_or(0, |(_, lag)| locked(lag).len())
    }

    /// Applies the next change of one item to the indexes; counted in order of the items' keys.
    pub fn catch_up(&self, at: usize) {
        if let Some((_, lag)) = &self.lag {
            locked(lag).catch_up(at);
        }
    }

    pub(super) fn put_off(&self, late: Late) {
        locked(&self.late).push(late);
    }

    pub(super) async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self.view(Lagging::Indexes).filter(|_| query.index.is_some()) {
            Some(view) => view.query(table, query, after).await,
            None => self.memory.query(table, query, after).await,
        }
    }

    /// Reads some of the keys, yields, and reads the rest; also returns whether the table was written in between.
    pub(super) async fn read_in_halves(
        &self,
        table: Table,
        keys: &[Key],
        consistency: Consistency,
    ) -> Result<(Vec<(Key, Item)>, bool), StoreError> {
        let (some, rest) = keys.split_at(keys.len() / 2);
        let mut items = self.read(table, some, consistency).await?;
        let n_written = self.memory.n_written(table);
        if !some.is_empty() {
            turn().await;
        }
        let is_written = n_written != self.memory.n_written(table);
        items.extend(self.read(table, rest, consistency).await?);
        Ok((items, is_written))
    }

    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match self.view(Lagging::Reads).filter(|_| table == Table::Main) {
            Some(view) => view.read(table, keys, consistency).await,
            None => self.memory.read(table, keys, consistency).await,
        }
    }

    /// The lagging view, if it serves such reads.
    fn view(&self, reads: Lagging) -> Option<Arc<MemoryStore>> {
        let (_, lag) = self.lag.as_ref().filter(|(lagging, _)| *lagging == reads)?;
        self.note_records();
        Some(locked(lag).view())
    }

    fn note_records(&self) {
        let records = self.memory.take_records();
        if let Some((_, lag)) = &self.lag {
            let mut lag = locked(lag);
            for (key, _, new) in &records {
                lag.note(key, new.as_ref());
            }
        }
        locked(&self.records).extend(records);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic here leaves no half-changed state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- A view of the main table that lags behind it, item by item: the content of an index ----

/// The view, and the changes that it has not applied yet, in order for each item.
#[derive(Debug)]
pub(super) struct Lag {
    view: Arc<MemoryStore>,
    behind: BTreeMap<Key, VecDeque<Option<Item>>>,
}

impl Lag {
    pub(super) fn new(layout: Layout, page_bytes: usize) -> Self {
        Self { view: Arc::new(MemoryStore::with_page_bytes(layout, page_bytes)), behind: BTreeMap::new() }
    }

    pub(super) fn view(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.view)
    }

    /// Adds a change of an item, to apply it later.
    pub(super) fn note(&mut self, key: &Key, new: Option<&Item>) {
        self.behind.entry(key.clone()).or_default().push_back(new.cloned());
    }

    /// Number of items that are behind.
    pub(super) fn len(&self) -> usize {
        self.behind.len()
    }

    /// Applies the next change of the item at this position.
    pub(super) fn catch_up(&mut self, at: usize) {
        let Some(key) = self.behind.keys().nth(at).cloned() else { return };
        let changes = self.behind.get_mut(&key);
        let new = changes.and_then(VecDeque::pop_front).flatten();
        self.behind.retain(|_, changes| !changes.is_empty());
        let action = new.map_or(Action::Delete, Action::Put);
        let write = Write { table: Table::Main, key, action, guard: None };
        // The main table accepted the write, so the view does too; and the model is never busy.
        drop(self.view.write(&write).now_or_never());
        drop(self.view.take_records());
    }
}

// ---- Calls in flight: a transaction conflicts with another write of the same item while both are in flight ----

/// The writes and transactions that were sent and have no response yet.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    n_begun: u64,
    under_way: BTreeMap<u64, Flight>,
}

#[derive(Debug)]
struct Flight {
    is_transaction: bool,
    items: Vec<(Table, Key)>,
}

/// A call in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    flights: &'a Flights,
    id: u64,
}

impl Flights {
    /// The first position of this call whose item another call in flight writes, if one of the two is a transaction.
    pub(super) fn met_by(&self, call: &Call<'_>) -> Option<usize> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let flight = Flight::of(call);
        let is_held = |item: &(Table, Key)| {
            let mut others = inner.under_way.values();
            others.any(|other| (other.is_transaction || flight.is_transaction) && other.items.contains(item))
        };
        flight.items.iter().position(is_held)
    }

    /// A call begins.
    pub(super) fn begin(&self, call: &Call<'_>) -> UnderWay<'_> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.n_begun += 1;
        let id = inner.n_begun;
        inner.under_way.insert(id, Flight::of(call));
        UnderWay { flights: self, id }
    }
}

impl Flight {
    fn of(call: &Call<'_>) -> Self {
        let writes = match call {
            Call::Write(write) => std::slice::from_ref(*write),
            Call::Transact(transaction) => transaction.writes(),
            Call::Get(..) | Call::Query(..) | Call::Scan(_) => &[],
        };
        let items = writes.iter().map(|write| (write.table, write.key.clone())).collect();
        Self { is_transaction: matches!(call, Call::Transact(_)), items }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.flights.0.lock().unwrap_or_else(PoisonError::into_inner).under_way.remove(&self.id);
    }
}
