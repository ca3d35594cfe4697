//! A store that records its requests, so that an access pattern can be compared with them, and its design displayed.

use std::sync::{Mutex, PoisonError};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key};

use crate::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

/// A store with a record of its requests.
#[derive(Debug)]
pub struct Recording<S> {
    store: S,
    requests: Mutex<Vec<Request>>,
}

/// A request as the store received it.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Items by key: `GetItem` for one key, else `BatchGetItem`.
    Read(Table, Vec<Key>, Consistency),
    /// A page of a query, from the start or from a cursor.
    Query(Table, Query, Option<Cursor>),
    /// A page of a whole table.
    Scan(Table),
    /// One write.
    Write(Write),
    /// A transaction.
    Transact(Transaction),
}

impl<S> Recording<S> {
    /// Records the requests to a store.
    pub fn new(store: S) -> Self {
        Self { store, requests: Mutex::default() }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// Takes the requests since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, request: Request) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
}

impl<S: Store> Store for Recording<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.note(Request::Read(table, keys.to_vec(), consistency));
        self.store.read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.note(Request::Query(table, query.clone(), after.clone()));
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.note(Request::Scan(table));
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.note(Request::Write(write.clone()));
        self.store.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.note(Request::Write(write.clone()));
        self.store.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.note(Request::Transact(transaction.clone()));
        self.store.transact(transaction).await
    }
}
