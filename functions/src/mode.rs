//! Whether a function writes, or only counts what it would write.

use std::{fmt, str::FromStr};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, observing::Observing};
use tokio::sync::{Mutex, MutexGuard};

/// What happens to a function's writes. The words are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `apply`: the function writes.
    #[default]
    Apply,
    /// `observe`: the writes are counted, but none is sent, not even those of the ledger.
    Observe,
}

/// An unknown mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mode is apply or observe")]
pub struct UnknownMode;

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "apply" => Ok(Self::Apply),
            "observe" => Ok(Self::Observe),
            _ => Err(UnknownMode),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apply => "apply",
            Self::Observe => "observe",
        })
    }
}

/// A store that writes or only counts the writes.
#[derive(Debug)]
pub enum Moded<S> {
    /// It writes.
    Applied(S),
    /// It counts the writes, of one invocation at a time.
    Observed(Box<Observing<S>>, Mutex<()>),
}

impl<S: Store> Moded<S> {
    /// A store in this mode.
    pub fn new(mode: Mode, store: S, layout: &Layout) -> Self {
        match mode {
            Mode::Apply => Self::Applied(store),
            Mode::Observe => Self::Observed(Box::new(Observing::new(store, layout.clone())), Mutex::default()),
        }
    }

    /// Starts an invocation, which sees the tables as they are, without what an earlier invocation would have written.
    /// While an observing invocation has the guard, others of the process wait, since each would see what the other would
    /// have written.
    pub async fn begin(&self) -> Option<MutexGuard<'_, ()>> {
        let Self::Observed(observing, turn) = self else { return None };
        let turn = turn.lock().await;
        observing.forget();
        Some(turn)
    }
}

impl<S: Store> Store for Moded<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match self {
            Self::Applied(store) => store.read(table, keys, consistency).await,
            Self::Observed(store, _) => store.read(table, keys, consistency).await,
        }
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.query(table, query, after).await,
            Self::Observed(store, _) => store.query(table, query, after).await,
        }
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.scan(table, segment, after).await,
            Self::Observed(store, _) => store.scan(table, segment, after).await,
        }
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        match self {
            Self::Applied(store) => store.write(write).await,
            Self::Observed(store, _) => store.write(write).await,
        }
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        match self {
            Self::Applied(store) => store.update(write).await,
            Self::Observed(store, _) => store.update(write).await,
        }
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        match self {
            Self::Applied(store) => store.transact(transaction).await,
            Self::Observed(store, _) => store.transact(transaction).await,
        }
    }
}
