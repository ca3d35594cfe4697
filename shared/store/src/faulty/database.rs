//! The tables that callers share, with the late calls.

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
