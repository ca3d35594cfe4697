//! The tables that callers share, with the calls whose callers are gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use futures::FutureExt as _;
use keys::{item::Item, key::Key, layout::Layout};

use super::{call::Call, lag::Lag, overlap::Flights};
use crate::faulty::turn;
use crate::{
    Cursor, Page, Store, StoreError,
    memory::{Judge, MemoryStore, RecordedChange},
};

/// The tables, without faults of their own.
#[derive(Debug)]
pub struct Database {
    memory: MemoryStore,
    late: Mutex<Vec<Late>>,
    pub(super) flights: Flights,
    /// Records of the main table that are for the indexes and that nobody has taken yet.
    records: Mutex<Vec<RecordedChange>>,
    lag: Option<(Lagging, Mutex<Lag>)>,
}

/// What is answered from a view that lags behind the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lagging {
    /// Queries of an index, as on AWS.
    Indexes,
    /// Reads by key: as if they were not asked to be consistent.
    Reads,
}

/// A call whose caller is gone, or gave it up.
#[derive(Debug)]
pub(super) enum Late {
    Write(Box<Write>),
    Transact(Transaction),
}

/// A call that landed late.
#[derive(Debug)]
pub struct Landed {
    /// What it was, for a person.
    pub call: String,
    /// How it ended, which nobody heard.
    pub how: String,
}

impl Database {
    /// Two empty tables, whose pages end after so many bytes.
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

    /// The same, where some reads lag.
    #[must_use]
    pub fn lagging(layout: Layout, page_bytes: usize, lagging: Lagging) -> Self {
        let lag = Lag::new(layout.clone(), page_bytes);
        Self { lag: Some((lagging, Mutex::new(lag))), ..Self::new(layout, page_bytes) }
    }

    /// The same with another judge of guards.
    #[must_use]
    pub fn judged(self, judge: Judge) -> Self {
        Self { memory: self.memory.judged(judge), ..self }
    }

    /// The tables as they are.
    #[must_use]
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Takes the stream records of the main table that were made since the last call: key, old item, new item.
    #[must_use]
    pub fn take_records(&self) -> Vec<(Key, Option<Item>, Option<Item>)> {
        self.note_records();
        std::mem::take(&mut locked(&self.records))
    }

    /// Calls that have not landed yet.
    #[must_use]
    pub fn n_late(&self) -> usize {
        locked(&self.late).len()
    }

    /// Lets one of the late calls land, counted from the one that has waited longest; `None` when there is none such.
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

    /// Items that the indexes have not followed to where they are.
    #[must_use]
    pub fn n_behind(&self) -> usize {
        self.note_records();
        self.lag.as_ref().map_or(0, |(_, lag)| locked(lag).len())
    }

    /// Lets the indexes follow one item by one change; counted in order of the items' keys.
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

    /// Reads some of the keys, lets others run, and reads the rest; and says whether the table was written between.
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

    /// The view, where it is what answers such reads.
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
    // Nothing here leaves what it holds half changed when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
