//! The engine's interface to a database, and its implementations.
//!
//! - [`dynamo`] is DynamoDB, through the SDK.
//! - [`memory`] is the model: the same contract in a map, checked against DynamoDB by the contract suite.
//! - [`faulty`] is the model with faults, for the simulation.
//! - [`recording`] records the requests to a store.
//! - [`observing`] writes nothing, and reports what each write would have done.
//!
//! [`check`] refuses a call that DynamoDB would refuse, before it is sent.
//!
//! The trait returns outcomes: a failed guard and a cancelled transaction are results, not errors. There are two kinds
//! of [error](StoreError): one to retry, since its fate is unknown or the database was busy, and one that a person must
//! handle.

pub mod check;
pub mod dynamo;
mod expression;
pub mod faulty;
pub mod memory;
pub mod observing;
mod outward;
pub mod recording;

use std::{future::Future, sync::Arc};

use derive::{
    guard::Purpose,
    query::{Consistency, Query},
    write::{Action, ITEM_BYTES_MAX, TRANSACT_ACTIONS_MAX, Table, Transaction, Write},
};
use keys::{item::Item, key::Key};

/// Capacity units that a call consumed, as DynamoDB reports them; 0 if it reports none.
pub type Units = f64;

/// A table to read from and write to.
pub trait Store: Send + Sync {
    /// Reads any number of items by key; each key once. Missing items are not in the result.
    ///
    /// # Errors
    ///
    /// [`StoreError`], with nothing read.
    fn read(
        &self,
        table: Table,
        keys: &[Key],
        consistency: Consistency,
    ) -> impl Future<Output = Result<Vec<(Key, Item)>, StoreError>> + Send;

    /// Reads items by key, strongly consistent.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn get(&self, table: Table, keys: &[Key]) -> impl Future<Output = Result<Vec<(Key, Item)>, StoreError>> + Send {
        self.read(table, keys, Consistency::Strong)
    }

    /// Reads one page of a query, in its order. Only the main table has indexes.
    ///
    /// # Errors
    ///
    /// [`StoreError`], with nothing read.
    fn query(
        &self,
        table: Table,
        query: &Query,
        after: Option<Cursor>,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Reads one page of a segment of a table, consistently, in no order.
    ///
    /// # Errors
    ///
    /// [`StoreError`], with nothing read.
    fn scan(
        &self,
        table: Table,
        segment: Segment,
        after: Option<Cursor>,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Does one write.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; with [`StoreError::Retry`] it may have been done.
    fn write(&self, write: &Write) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Does one update, and returns the item.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; with [`StoreError::Retry`] it may have been done.
    fn update(&self, write: &Write) -> impl Future<Output = Result<Updated, StoreError>> + Send;

    /// Does all writes of a transaction, or none.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; with [`StoreError::Retry`] it may have been done.
    fn transact(&self, transaction: &Transaction) -> impl Future<Output = Result<TransactOutcome, StoreError>> + Send;
}

/// A part of a table that is scanned separately; all parts together are the whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of the part, from 0.
    pub number: u32,
    /// Number of parts, 1 to 1,000,000.
    pub of: u32,
}

impl Segment {
    /// The whole table.
    pub const WHOLE: Self = Self { number: 0, of: 1 };
}

/// Where the next page begins: the key attributes of the last item.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor(pub Item);

/// A page of items.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The items; those of an index query have the projected attributes.
    pub items: Vec<Item>,
    /// The next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was done.
    Done {
        /// Consumed units, including indexes.
        units: Units,
    },
    /// Its guard did not hold; nothing was done.
    GuardFailed,
}

/// Outcome of an update, with the item.
#[derive(Clone, Debug, PartialEq)]
pub enum Updated {
    /// It was done.
    Done {
        /// Consumed units, including indexes.
        units: Units,
        /// The item after the update of a watermark; empty after any other update.
        item: Item,
    },
    /// Its guard did not hold; nothing was done.
    GuardFailed {
        /// The current item; `None` if there is none.
        item: Option<Item>,
    },
}

/// True if a successful update returns the item: only that of a watermark is needed, and other items may be large.
fn returns_item(write: &Write) -> bool {
    write.guard.as_ref().is_some_and(|guard| guard.purpose == Purpose::Watermark)
}

/// Outcome of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactOutcome {
    /// All was done.
    Done {
        /// Consumed units of each table, including indexes.
        units: Vec<(Table, Units)>,
    },
    /// Nothing was done.
    Cancelled {
        /// A reason for each write, at its position.
        reasons: Vec<Reason>,
    },
}

/// Why a write's transaction was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Not because of this write.
    None,
    /// This write's guard did not hold.
    GuardFailed,
    /// The item could not be written at that moment: retry later.
    Busy(Busy),
    /// DynamoDB refuses this write, at any time.
    Rejected(String),
}

/// The writes of a cancelled transaction whose guards failed.
pub fn unheld<'a>(transaction: &'a Transaction, reasons: &'a [Reason]) -> impl Iterator<Item = &'a Write> {
    let with_reason = transaction.writes().iter().zip(reasons);
    with_reason.filter(|(_, reason)| **reason == Reason::GuardFailed).map(|(write, _)| write)
}

/// Why DynamoDB refuses a cancelled transaction at any time, if it does.
#[must_use]
pub fn rejected(reasons: &[Reason]) -> Option<String> {
    reasons.iter().find_map(|reason| match reason {
        Reason::Rejected(why) => Some(why.clone()),
        _ => None,
    })
}

/// Why an item could not be written at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Busy {
    /// Another write on the same item was in flight, and one of the two is a transaction.
    Conflict,
    /// Its partition, its table or the account is at its limit.
    Throttled,
}

/// A call without an outcome.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its fate is unknown, or the database was busy: retry the same call.
    #[error("{operation} on {item}: not answered, or not now; to be sent again")]
    Retry {
        /// The operation.
        operation: &'static str,
        /// The item as logs may name it, or the table.
        item: String,
        /// What was busy, if that is the cause.
        busy: Option<Busy>,
        /// True if it lasts until an operator changes the set-up. See [`is_standing`](Self::is_standing).
        is_standing: bool,
        /// True if nothing responded. See [`is_unreachable`](Self::is_unreachable).
        is_unreachable: bool,
        /// What happened.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// DynamoDB refuses it at any time: a person must handle it.
    #[error("{operation} on {item}: refused")]
    Reject {
        /// The operation.
        operation: &'static str,
        /// The item as logs may name it, or the table.
        item: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// True if the call can be retried.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Retry { .. })
    }

    /// The error of a call without a response before its deadline.
    #[must_use]
    pub fn late() -> Self {
        let source = "not answered before the deadline".into();
        let (operation, item) = ("a call", "the database".to_owned());
        Self::Retry { operation, item, busy: None, is_standing: false, is_unreachable: false, source }
    }

    /// True if it lasts until an operator changes the set-up, such as a missing permission, table or encryption key.
    /// Then waiting does not help, and the calls themselves have no fault.
    #[must_use]
    pub fn is_standing(&self) -> bool {
        matches!(self, Self::Retry { is_standing: true, .. })
    }

    /// True if there was no connection to a database, or no response from it.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Retry { is_unreachable: true, .. })
    }

    /// What was busy, if that is the cause.
    #[must_use]
    pub fn busy(&self) -> Option<Busy> {
        match self {
            Self::Retry { busy, .. } => *busy,
            Self::Reject { .. } => None,
        }
    }
}

/// DynamoDB's name of the operation for an action.
#[must_use]
pub fn operation(action: &Action) -> &'static str {
    match action {
        Action::Put(_) => "PutItem",
        Action::Update(_) => "UpdateItem",
        Action::Delete => "DeleteItem",
        Action::Check => "ConditionCheck",
    }
}

// ---- Sharing one store ----

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

// ---- Cost of writing an item by its size, and the size limit of a transaction ----

/// Bytes of one write unit. Source: DynamoDB, "Read and write operations".
pub const WRITE_UNIT_BYTES: usize = 1_024;

/// Most bytes of a transaction. Source: DynamoDB service quotas.
pub const TRANSACT_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Write units of an item of this size: one for every started KB, and at least one.
#[must_use]
pub fn write_units(bytes: usize) -> Units {
    let units = bytes.div_ceil(WRITE_UNIT_BYTES).clamp(1, UNITS_MAX);
    u32::try_from(units).map_or(Units::INFINITY, Units::from)
}

/// More than a transaction of the largest items: keeps the conversion to [`Units`] exact.
const UNITS_MAX: usize = ITEM_BYTES_MAX / WRITE_UNIT_BYTES * TRANSACT_ACTIONS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_kilobyte_is_a_unit() {
        for (bytes, units) in [(0, 1.0), (1, 1.0), (1_024, 1.0), (1_025, 2.0), (409_600, 400.0)] {
            assert!((write_units(bytes) - units).abs() < f64::EPSILON, "{bytes}");
        }
    }
}
