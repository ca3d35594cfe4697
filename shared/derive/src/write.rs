//! Writes as data: what the engine sends, before anything is sent.

use std::collections::BTreeSet;

use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::guard::Guard;

/// Most actions of one transaction. Source: DynamoDB service quotas.
pub const TRANSACT_ACTIONS_MAX: usize = 100;

/// Most attributes that one update changes. Source: DynamoDB takes update expressions of 4,096 bytes, and the longest
/// term that the store sends has 15, such as `#s100 = :s100, `.
pub const UPDATE_ATTRIBUTES_MAX: usize = 250;

/// Largest item, names included, in bytes. Source: DynamoDB service quotas.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// Which of the service's two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The application's table, which has the stream.
    Main,
    /// The ledger's table, which has none.
    Ledger,
}

/// One write on one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The table.
    pub table: Table,
    /// The item.
    pub key: Key,
    /// The action.
    pub action: Action,
    /// The condition; `None` if any order of writes ends correctly.
    pub guard: Option<Guard>,
}

/// What a write does to its item.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Puts the whole item. The attributes hold the key too.
    Put(Item),
    /// Changes some attributes; creates the item if it does not exist.
    Update(Update),
    /// Deletes the item.
    Delete,
    /// Leaves the item unchanged and only checks the guard: a transaction's condition on an item that it does not
    /// write.
    Check,
}

/// What an update changes; each attribute once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Sets these attributes.
    pub set: Item,
    /// Removes these attributes.
    pub remove: BTreeSet<String>,
    /// Adds to these attributes: a number to one of type N, where a missing one counts as 0; elements to a set.
    pub add: Item,
    /// Removes these elements from these sets.
    pub delete: Item,
    /// Adds 1 to these attributes; a missing one starts with this number.
    pub count_from: Item,
}

impl Update {
    /// An update that sets attributes.
    #[must_use]
    pub fn set(set: Item) -> Self {
        Self { set, ..Self::default() }
    }
}

impl Write {
    /// The item that it writes, as DynamoDB names it.
    #[must_use]
    pub fn target(&self) -> (Table, &Key) {
        (self.table, &self.key)
    }
}

/// Writes that happen together or not at all: between 1 and 100, each on a different item.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction(Vec<Write>);

impl Transaction {
    /// A transaction of these writes, in this order.
    ///
    /// # Errors
    ///
    /// [`TransactionError`] if DynamoDB would refuse it.
    pub fn new(writes: Vec<Write>) -> Result<Self, TransactionError> {
        if writes.is_empty() {
            return Err(TransactionError::Empty);
        }
        if writes.len() > TRANSACT_ACTIONS_MAX {
            return Err(TransactionError::TooMany { n_actions: writes.len() });
        }
        let mut targets = BTreeSet::new();
        if let Some(twice) = writes.iter().find(|write| !targets.insert(write.target())) {
            return Err(TransactionError::Twice { key: twice.key.clone() });
        }
        Ok(Self(writes))
    }

    /// The writes, in their order.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.0
    }
}

/// Why writes cannot form a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// There is no write.
    #[error("a transaction needs a write")]
    Empty,
    /// There are more than DynamoDB allows.
    #[error("a transaction of {n_actions} actions; the limit is {TRANSACT_ACTIONS_MAX}")]
    TooMany {
        /// How many.
        n_actions: usize,
    },
    /// Two writes are on one item.
    #[error("a transaction with two writes on the item {}", key.for_log())]
    Twice {
        /// The item.
        key: Key,
    },
}

/// An attribute with the value it should have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The attribute.
    pub name: String,
    /// Its value; `None` if the item should not have it.
    pub value: Option<AttributeValue>,
    /// True if a stored zero and a missing attribute are both correct when one of them is wanted.
    pub zero_is_absent: bool,
}
