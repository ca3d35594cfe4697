//! The table of an application without Ripple: a store that only reads, and only the application's items.
//!
//! *Keeps true*: no write and no read of the ledger reaches the database, so neither Ripple's tables nor the right to
//! write is needed. The ledger is empty: nothing is parked, and no job runs. A target has no counters.

use derive::{
    query::{Consistency, Query, SortKeys},
    write::{Table, Transaction, Write},
};
use keys::{counter::MARK, item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

/// Partition key of the position behind the last of several tables, where the table for Ripple's own items follows.
const OWN_TABLE: &str = "#";

/// The items of an application.
pub(super) struct ApplicationView<S> {
    pub(super) store: S,
    pub(super) layout: Layout,
}

/// A page without items.
fn nothing() -> Page {
    Page { items: Vec::new(), next: None }
}

fn refused(operation: &'static str, key: &Key) -> StoreError {
    StoreError::Reject { operation, item: key.to_string(), source: "an audit writes nothing".into() }
}

/// True for a query of a target's counters.
fn is_of_counters(query: &Query) -> bool {
    query.index.is_none() && matches!(&query.sk, SortKeys::Prefix(prefix) if prefix.contains(MARK))
}

impl<S: Store> Store for ApplicationView<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match table {
            Table::Main => self.store.read(table, keys, consistency).await,
            Table::Ledger => Ok(Vec::new()),
        }
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match table {
            Table::Main if !is_of_counters(query) => self.store.query(table, query, after).await,
            Table::Main | Table::Ledger => Ok(nothing()),
        }
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        let from = after.as_ref().and_then(|Cursor(key)| self.layout.key(key));
        let is_own = self.layout.forms.is_some() && from.is_some_and(|from| from.pk == OWN_TABLE);
        match table {
            Table::Main if !is_own => self.store.scan(table, segment, after).await,
            Table::Main | Table::Ledger => Ok(nothing()),
        }
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        Err(refused("a write", &write.key))
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        Err(refused("an update", &write.key))
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let key = transaction.writes().first().map(|write| write.key.clone());
        Err(refused("a transaction", &key.unwrap_or_else(|| Key::new("", ""))))
    }
}
