//! DynamoDB, by the SDK.
//!
//! What it keeps true: a call ends in an outcome, in an error to send again, or in one that a person must look at, and
//! never in silence. Names and values of a write stand behind placeholders, and a condition comes from
//! [`Guard::condition`](derive::guard::Guard::condition) alone.
//!
//! # Repeats
//!
//! The SDK sends a call again by itself when its answer is lost, as the client is configured.
//!
//! - A transaction carries a token that the SDK keeps over its repeats, so it is done once. The answer to a repeat has
//!   read units instead of write units; they are passed on as they are.
//! - A single write carries none. A put, a delete, and an update that sets and removes end the same when they are done
//!   twice. A guard may then fail because of the first time; whoever reads [`Outcome::GuardFailed`] must allow for it.
//!   An update that *adds* is not the same when done twice: a lost answer would count twice, and nothing would show it.
//!   So the engine sends an addition only with a proof that it is not done yet: in a transaction with the ledger's item,
//!   or on the condition that the counter's watermark is below it.

mod failure;
mod message;
mod read;
mod stored;
mod transact;
mod value;
mod write;

use aws_sdk_dynamodb::Client;
use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key, layout::Layout};

use crate::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

/// The names of the service's tables; one and the same where a deployment wants a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNames {
    /// The application's table; where it has tables of [other forms](keys::tables), the table of Ripple's own items.
    pub main: String,
    /// The ledger's table.
    pub ledger: String,
}

impl TableNames {
    /// The name of a table.
    #[must_use]
    pub fn of(&self, table: Table) -> &str {
        match table {
            Table::Main => &self.main,
            Table::Ledger => &self.ledger,
        }
    }
}

/// Two tables of DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoStore {
    client: Client,
    layout: Layout,
    names: TableNames,
}

impl DynamoStore {
    /// A store of these tables. The layout is the main one's; the ledger has the same key attributes.
    #[must_use]
    pub fn new(client: Client, layout: Layout, names: TableNames) -> Self {
        Self { client, layout, names }
    }
}

// A call waits for the network, so that the memory which each makes for its state costs nothing beside it, and keeps those
// who wait for several calls small.
impl Store for DynamoStore {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        Box::pin(read::get(self, table, keys, consistency)).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        Box::pin(read::query(self, table, query, after)).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        Box::pin(read::scan(self, table, segment, after)).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        Box::pin(write::write(self, write)).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        Box::pin(write::update(self, write)).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        Box::pin(transact::transact(self, transaction)).await
    }
}
