//! One store in many hands.

use std::sync::Arc;

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key};

use crate::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

impl<S: Store> Store for Arc<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        (**self).read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        (**self).query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        (**self).scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        (**self).write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        (**self).update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        (**self).transact(transaction).await
    }
}
