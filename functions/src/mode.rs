//! Whether a function writes: it does, or it only says what it would write.

use std::{fmt, str::FromStr};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, observing::Observing};

/// What becomes of a function's writes. The words are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `apply`: they are done.
    #[default]
    Apply,
    /// `observe`: they are counted and not sent, none of them, the ledger's own included.
    Observe,
}

/// A mode that there is not.
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

/// A store whose writes are done, or counted.
#[derive(Debug)]
pub enum Moded<S> {
    /// They are done.
    Applied(S),
    /// They are counted and not sent.
    Observed(Observing<S>),
}

impl<S: Store> Moded<S> {
    /// A store of this layout in a mode.
    pub fn new(mode: Mode, store: S, layout: &Layout) -> Self {
        match mode {
            Mode::Apply => Self::Applied(store),
            Mode::Observe => Self::Observed(Observing::new(store, layout.clone())),
        }
    }

    /// An invocation begins: it sees the tables as they are, and nothing of what one before would have written.
    pub fn begin(&self) {
        if let Self::Observed(observing) = self {
            observing.forget();
        }
    }
}

impl<S: Store> Store for Moded<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match self {
            Self::Applied(store) => store.read(table, keys, consistency).await,
            Self::Observed(store) => store.read(table, keys, consistency).await,
        }
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.query(table, query, after).await,
            Self::Observed(store) => store.query(table, query, after).await,
        }
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.scan(table, segment, after).await,
            Self::Observed(store) => store.scan(table, segment, after).await,
        }
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        match self {
            Self::Applied(store) => store.write(write).await,
            Self::Observed(store) => store.write(write).await,
        }
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        match self {
            Self::Applied(store) => store.transact(transaction).await,
            Self::Observed(store) => store.transact(transaction).await,
        }
    }
}
