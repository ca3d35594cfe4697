//! The model with faults: what may happen to a call, before it is done and after.
//!
//! A [`Database`] has the tables. Each caller, such as an invocation of a function, has its own handle, a [`Faulty`],
//! which asks the caller's [`Decider`] at every call which fault to inject. This module only injects; the simulation
//! decides, from its seed.
//!
//! | fault | before the call | after the call |
//! |---|---|---|
//! | [unanswered](Fault::Unanswered) | not done; to be retried | done, the response is lost; to be retried |
//! | [conflict](Fault::Conflict) | cancelled at a position (a single write: to be retried) | done, and the SDK's own resend met another writer; to be retried |
//! | [throttle](Fault::Throttle) | like a conflict, at one position or several | done, and the SDK's own resend was throttled; to be retried |
//! | [killed](Fault::Killed) | not done; the caller is gone | done; the caller is gone before it sees the response |
//! | [late](Fault::Late) | the caller is gone; the call lands at [`Database::land`] | the caller abandoned it and continues; the call lands at [`Database::land`] |
//! | [hung](Fault::Hung) | not done; never ready, and the caller abandons it | done; never ready, and the caller abandons it |
//! | [denied](Fault::Denied) | not done; it lasts until an operator changes the set-up | as before the call |
//! | [refused](Fault::Refused) | not done; it is refused at any time | as before the call |
//!
//! If a caller is gone, its call is never ready: the decider, which chose that fault, drops the caller's future. A read
//! is never late and meets no writer: both become a lost response.
//!
//! Every call yields to others before it is done and after it; a read of several keys also between its halves, as on
//! AWS.
//!
//! A transaction and another write of an item conflict while both are in flight, if the decider says so: the later one
//! is cancelled, as by the fault. A call is in flight until it has a response, or its caller is gone.
//!
//! An index may lag: with [`Database::lagging`], queries use a view of the main table that follows it item by item, one
//! change at each [`Database::catch_up`].
//!
//! Sources (no emulator shows conflicts, throttling or a lagging index):
//!
//! - Conflicts: "a `TransactionConflict` … when a `PutItem`, `UpdateItem` or `DeleteItem` request conflicts with an
//!   in-flight transaction on the same item", and two transactions on one item, of which one is cancelled with a reason
//!   by position; `GetItem` never conflicts. DynamoDB developer guide, "Transactions: how it works".
//! - Throttling: the reasons `ThrottlingError` and `ProvisionedThroughputExceeded` of `TransactionCanceledException`,
//!   by position; the exceptions of the same names on single calls. DynamoDB API reference, `TransactWriteItems`.
//! - Lost responses and resends: the SDKs resend after a time-out or a reset connection, a transaction under the token
//!   of its first attempt, a single write without one; so the write may have been done whatever the last response was.
//!   AWS SDKs reference guide, "Retry behavior"; API reference, `ClientRequestToken`.
//! - Killed: an invocation ends at its time-out, or with its environment, wherever it is. Lambda developer guide,
//!   "Understanding the Lambda execution environment lifecycle".
//! - Late: a sent call is not withdrawn when its sender dies, and nothing bounds when it is done.
//! - Lag: "global secondary indexes … are updated asynchronously, using an eventually consistent model". DynamoDB
//!   developer guide, "Using global secondary indexes".

mod call;
mod database;
mod ends;
mod fault;
mod lag;
mod overlap;
mod page_ends;

use std::{
    future::{pending, poll_fn},
    sync::{Arc, Mutex, PoisonError},
    task::Poll::{Pending, Ready},
};

use derive::{
    guard::{Guard, Purpose},
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Write},
};
use keys::{item::Item, key::Key};

use crate::{
    Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome, Units, Updated,
    faulty::{database::Late, ends::brief, page_ends::PageEnds},
};

// ---- Yielding to other callers ----

/// Is ready at the second poll, and requests that one at once.
async fn turn() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Ready(());
        }
        context.waker().wake_by_ref();
        Pending
    })
    .await;
}

#[cfg(test)]
mod tests;

pub use self::{
    call::Call,
    database::{Database, Lagging, Landed},
    fault::Fault,
};

/// Whether a fault happens before or after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before it is done.
    Before,
    /// After it was done.
    After,
}

/// Outcome of a read that is not of one moment: the table was written between the halves of its keys, or between this
/// page and the previous one.
pub const TORN: &str = "read, torn";

/// Decides the faults of one caller's calls.
pub trait Decider: Send + Sync {
    /// The fault of this call, and its side.
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)>;

    /// True if a call conflicts that meets another caller's call on an item, when one of the two is a transaction.
    fn conflicts(&self, _call: &Call<'_>) -> bool {
        false
    }

    /// A call ended with this outcome. A call whose caller is gone is not reported.
    fn ended(&self, call: &Call<'_>, how: &str);

    /// True if this guard is sent. A write without its guard is done whatever the item contains.
    fn sends(&self, guard: &Guard) -> bool;
}

/// One caller's handle of a database.
#[derive(Debug)]
pub struct Faulty<D> {
    database: Arc<Database>,
    decider: D,
    answered: Mutex<Units>,
    page_ends: PageEnds,
}

impl<D: Decider> Faulty<D> {
    /// A handle for the caller of this decider.
    pub fn new(database: &Arc<Database>, decider: D) -> Self {
        Self { database: Arc::clone(database), decider, answered: Mutex::default(), page_ends: PageEnds::default() }
    }

    /// The write units in the responses to this caller.
    pub fn answered(&self) -> Units {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn charge(&self, units: Units) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) += units;
    }

    /// A read, which reports whether it is torn, with its fault.
    async fn read<T>(
        &self,
        call: Call<'_>,
        read: impl Future<Output = Result<(T, bool), StoreError>>,
    ) -> Result<T, StoreError> {
        turn().await;
        let fault = self.decider.fault(&call);
        match &fault {
            Some((Side::Before, Fault::Killed | Fault::Hung)) => pending().await,
            Some((_, Fault::Denied)) => return self.denied(&call),
            Some((_, Fault::Refused)) => return self.refused(&call),
            Some((Side::Before, _)) => return self.retry(&call, "not read"),
            _ => {}
        }
        let answer = read.await;
        turn().await;
        match fault {
            Some((_, Fault::Killed | Fault::Hung)) => pending().await,
            Some(_) => self.retry(&call, "read, answer lost"),
            None => {
                self.decider.ended(
                    &call,
                    match answer {
                        Ok((_, false)) => "read",
                        Ok((_, true)) => TORN,
                        Err(_) => "refused",
                    },
                );
                answer.map(|(answer, _)| answer)
            }
        }
    }

    /// A write or a transaction, with its fault.
    async fn change<T>(
        &self,
        call: Call<'_>,
        late: impl FnOnce() -> Late,
        cancelled: impl FnOnce(&Fault) -> Option<T>,
        done: impl Future<Output = Result<T, StoreError>>,
        described: impl FnOnce(&T) -> (String, Units),
    ) -> Result<T, StoreError> {
        if let Some(at) = self.database.flights.met_by(&call).filter(|_| self.decider.conflicts(&call)) {
            turn().await;
            return self.conflicting(&call, &Fault::Conflict(at), cancelled, described);
        }
        let _under_way = self.database.flights.begin(&call);
        turn().await;
        let fault = self.decider.fault(&call);
        match &fault {
            Some((Side::Before, Fault::Killed | Fault::Hung)) => pending().await,
            Some((_, Fault::Denied)) => return self.denied(&call),
            Some((_, Fault::Refused)) => return self.refused(&call),
            Some((side, Fault::Late)) => {
                self.database.put_off(late());
                if *side == Side::Before {
                    pending::<()>().await;
                }
                turn().await;
                return self.retry(&call, "given up, will land later");
            }
            Some((Side::Before, Fault::Unanswered)) => {
                turn().await;
                return self.retry(&call, "not done, no answer");
            }
            Some((Side::Before, fault @ (Fault::Conflict(_) | Fault::Throttle(_)))) => {
                turn().await;
                return self.conflicting(&call, fault, cancelled, described);
            }
            _ => {}
        }
        let answer = done.await;
        turn().await;
        match fault {
            Some((_, Fault::Killed | Fault::Hung)) => pending().await,
            Some((_, fault @ (Fault::Conflict(_) | Fault::Throttle(_)))) => {
                self.retry_of(&call, Some(&fault), "done if it could be, its resend met other writers or was throttled")
            }
            Some(_) => self.retry(&call, "done if it could be, answer lost"),
            None => {
                let (how, units) = match &answer {
                    Ok(outcome) => described(outcome),
                    Err(error) => (error.to_string(), 0.0),
                };
                self.decider.ended(&call, &how);
                self.charge(units);
                answer
            }
        }
    }

    /// The write without its guard, if the guard is not sent.
    fn sent(&self, write: &Write) -> Write {
        // A check needs a condition; an empty guard always holds.
        let nothing =
            matches!(write.action, Action::Check).then(|| Guard { purpose: Purpose::Application, asks: Vec::new() });
        let guard = write.guard.clone().filter(|guard| self.decider.sends(guard)).or(nothing);
        Write { guard, ..write.clone() }
    }

    fn sends_all(&self, writes: &[Write]) -> bool {
        writes.iter().filter_map(|write| write.guard.as_ref()).all(|guard| self.decider.sends(guard))
    }
}

impl<D: Decider> Store for Faulty<D> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.read(Call::Get(table, keys), self.database.read_in_halves(table, keys, consistency)).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let page = async {
            let page = self.database.query(table, query, after.clone()).await?;
            let is_torn = self.page_ends.is_torn(after.as_ref(), &page, self.database.memory().n_written(table));
            Ok((page, is_torn))
        };
        self.read(Call::Query(table, query), page).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        let page = async {
            let page = self.database.memory().scan(table, segment, after.clone()).await?;
            let is_torn = self.page_ends.is_torn(after.as_ref(), &page, self.database.memory().n_written(table));
            Ok((page, is_torn))
        };
        self.read(Call::Scan(table), page).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let write = &self.sent(write);
        let described = |outcome: &Outcome| match outcome {
            Outcome::Done { units } => ("done".to_owned(), *units),
            Outcome::GuardFailed => ("guard failed".to_owned(), 0.0),
        };
        let late = || Late::Write(Box::new(write.clone()));
        self.change(Call::Write(write), late, |_| None, self.database.memory().write(write), described).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let write = &self.sent(write);
        let described = |outcome: &Updated| match outcome {
            Updated::Done { units, .. } => ("done".to_owned(), *units),
            Updated::GuardFailed { .. } => ("guard failed".to_owned(), 0.0),
        };
        let late = || Late::Write(Box::new(write.clone()));
        self.change(Call::Write(write), late, |_| None, self.database.memory().update(write), described).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let stripped = if self.sends_all(transaction.writes()) {
            None
        } else {
            Transaction::new(transaction.writes().iter().map(|write| self.sent(write)).collect()).ok()
        };
        let transaction = stripped.as_ref().unwrap_or(transaction);
        let n_writes = transaction.writes().len();
        let cancelled = |fault: &Fault| {
            let (positions, busy) = (fault.positions(), fault.busy());
            let reason = |at| busy.filter(|_| positions.contains(&at)).map_or(Reason::None, Reason::Busy);
            Some(TransactOutcome::Cancelled { reasons: (0..n_writes).map(reason).collect() })
        };
        let described = |outcome: &TransactOutcome| match outcome {
            TransactOutcome::Done { units } => ("done".to_owned(), units.iter().map(|(_, units)| units).sum()),
            TransactOutcome::Cancelled { reasons } => (format!("cancelled {}", brief(reasons)), 0.0),
        };
        let late = || Late::Transact(transaction.clone());
        let done = self.database.memory().transact(transaction);
        self.change(Call::Transact(transaction), late, cancelled, done, described).await
    }
}
