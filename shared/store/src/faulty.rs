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

mod database;

use std::{
    collections::BTreeSet,
    fmt,
    future::{pending, poll_fn},
    sync::{Arc, Mutex, PoisonError},
    task::Poll::{Pending, Ready},
};

use derive::{
    guard::{Ask, Guard, Purpose},
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    Busy, Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome, Units, Updated,
    faulty::database::Late,
};

pub use self::database::{Database, Lagging, Landed};

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

// ---- Outcomes of calls with a fault ----

impl<D: Decider> Faulty<D> {
    pub(super) fn retry<T>(&self, call: &Call<'_>, how: &'static str) -> Result<T, StoreError> {
        self.retry_of(call, None, how)
    }

    fn retry_of<T>(&self, call: &Call<'_>, fault: Option<&Fault>, how: &'static str) -> Result<T, StoreError> {
        self.decider.ended(call, how);
        let (operation, busy) = (call.operation(), fault.and_then(Fault::busy));
        let (item, source) = (call.item(), how.into());
        Err(StoreError::Retry { operation, item, busy, is_standing: false, is_unreachable: false, source })
    }

    fn denied<T>(&self, call: &Call<'_>) -> Result<T, StoreError> {
        self.decider.ended(call, "denied");
        let (operation, item, source) = (call.operation(), call.item(), "AccessDeniedException".into());
        Err(StoreError::Retry { operation, item, busy: None, is_standing: true, is_unreachable: false, source })
    }

    pub(super) fn refused<T>(&self, call: &Call<'_>) -> Result<T, StoreError> {
        self.decider.ended(call, "refused");
        let (operation, item, source) = (call.operation(), call.item(), "ValidationException".into());
        Err(StoreError::Reject { operation, item, source })
    }

    /// The outcome of a call that met other writers, or was throttled, before it was done.
    fn conflicting<T>(
        &self,
        call: &Call<'_>,
        fault: &Fault,
        cancelled: impl FnOnce(&Fault) -> Option<T>,
        described: impl FnOnce(&T) -> (String, Units),
    ) -> Result<T, StoreError> {
        match cancelled(fault) {
            None => self.retry_of(call, Some(fault), "not done, other writers or throttled"),
            Some(cancelled) => {
                self.decider.ended(call, &described(&cancelled).0);
                Ok(cancelled)
            }
        }
    }
}

/// The reasons other than `None`, each with its position.
fn brief(reasons: &[Reason]) -> String {
    let some = reasons.iter().enumerate().filter(|(_, reason)| **reason != Reason::None);
    some.map(|(at, reason)| format!("{at}: {reason:?}")).collect::<Vec<_>>().join(", ")
}

// ---- A call, as a decider and a trace see it ----

/// A call of a store.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Items by key.
    Get(Table, &'a [Key]),
    /// A page of a query.
    Query(Table, &'a Query),
    /// A page of a table.
    Scan(Table),
    /// One write.
    Write(&'a Write),
    /// A transaction.
    Transact(&'a Transaction),
}

impl Call<'_> {
    /// The operation, as DynamoDB names it.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Get(..) => "BatchGetItem",
            Self::Query(..) => "Query",
            Self::Scan(_) => "Scan",
            Self::Write(write) => crate::operation(&write.action),
            Self::Transact(_) => "TransactWriteItems",
        }
    }

    /// True if it only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Get(..) | Self::Query(..) | Self::Scan(_))
    }

    /// Number of writes of the call; 0 if it only reads.
    #[must_use]
    pub fn n_writes(&self) -> usize {
        match self {
            Self::Write(_) => 1,
            Self::Transact(transaction) => transaction.writes().len(),
            Self::Get(..) | Self::Query(..) | Self::Scan(_) => 0,
        }
    }

    /// The item, for a message.
    pub(super) fn item(&self) -> String {
        match self {
            Self::Get(_, keys) => keys.first().map(ToString::to_string).unwrap_or_default(),
            Self::Query(_, query) => query.pk.clone(),
            Self::Scan(table) => format!("{table:?}"),
            Self::Write(write) => write.key.to_string(),
            Self::Transact(transaction) => {
                transaction.writes().first().map(|write| write.key.to_string()).unwrap_or_default()
            }
        }
    }
}

impl fmt::Display for Call<'_> {
    /// For a reader of a trace: every item, and what is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(table, keys) => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                write!(f, "gets {table:?} [{}]", keys.join(", "))
            }
            Self::Query(table, query) => {
                let index = query.index.as_deref().unwrap_or_default();
                write!(f, "queries {table:?} {index} for {} / {}…", query.pk, query.sk.first())
            }
            Self::Scan(table) => write!(f, "scans {table:?}"),
            Self::Write(one) => write!(f, "writes [{}]", described(one)),
            Self::Transact(transaction) => {
                let writes: Vec<String> = transaction.writes().iter().map(described).collect();
                write!(f, "transacts [{}]", writes.join(", "))
            }
        }
    }
}

/// A short description of a write.
fn described(write: &Write) -> String {
    let (key, mut parts) = (&write.key, Vec::new());
    match &write.action {
        Action::Put(_) if write.table == Table::Ledger => parts.push(format!("put {key}")),
        Action::Put(item) => {
            let mut rest = item.clone();
            rest.retain(|_, value| !matches!(value, AttributeValue::S(text) if *text == key.pk || *text == key.sk));
            parts.extend([format!("put {key}"), attributes(&rest)]);
        }
        Action::Delete => parts.push(format!("delete {key}")),
        Action::Check => parts.push(format!("check {key}")),
        Action::Update(Update { set, remove, add, delete, count_from }) => {
            parts.extend([format!("update {key}"), attributes(set)]);
            parts.extend(add.iter().map(|(name, amount)| format!("{name}+{}", shown(amount))));
            parts.extend(count_from.iter().map(|(name, from)| format!("{name}++ from {}", shown(from))));
            parts.extend(delete.iter().map(|(name, elements)| format!("{name}-{}", shown(elements))));
            parts.extend(remove.iter().map(|name| format!("-{name}")));
        }
    }
    parts.extend(write.guard.iter().flat_map(|guard| &guard.asks).map(|ask| match &ask {
        Ask::Absent => "if absent".to_owned(),
        Ask::Present => "if present".to_owned(),
        Ask::Lacks(attribute) => format!("if without {attribute}"),
        Ask::Equal(attribute, value) => format!("if {attribute}={}", shown(value)),
        Ask::Differs(attribute, value) => format!("if {attribute}<>{}", shown(value)),
        Ask::AtLeast(attribute, value) => format!("if {attribute}>={}", shown(value)),
        Ask::LacksOrEqual(attribute, value) => format!("if without {attribute} or {attribute}={}", shown(value)),
        Ask::BelowOrLacksBoth(attribute, value, other) => {
            format!("if without {attribute} and {other} or {attribute}<{}", shown(value))
        }
        Ask::LacksOrBelow(attribute, value) => format!("if without {attribute} or {attribute}<{}", shown(value)),
    }));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn attributes(item: &Item) -> String {
    item.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(" ")
}

/// A value, formatted the same in every run: the attributes of a map in order of their names.
fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("{text:?}"),
        AttributeValue::N(text) => text.clone(),
        AttributeValue::L(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
        AttributeValue::M(map) => {
            let map: Item = map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            format!("{{{}}}", attributes(&map))
        }
        other => format!("{other:?}"),
    }
}

// ---- Faults of calls ----

/// A fault of a call. The table of [`faulty`](super) describes each on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It gets no response.
    Unanswered,
    /// Another writer's call is in flight on the item at this position of the transaction.
    Conflict(usize),
    /// The partitions of the items at these positions of the transaction are throttled.
    Throttle(BTreeSet<usize>),
    /// The caller dies.
    Killed,
    /// The call lands much later.
    Late,
    /// It never gets a response, and the caller lives.
    Hung,
    /// The caller lacks a permission.
    Denied,
    /// DynamoDB refuses the call, at any time.
    Refused,
}

impl Fault {
    pub(super) fn positions(&self) -> BTreeSet<usize> {
        match self {
            Self::Conflict(position) => BTreeSet::from([*position]),
            Self::Throttle(positions) => positions.clone(),
            Self::Unanswered | Self::Killed | Self::Late | Self::Hung | Self::Denied | Self::Refused => BTreeSet::new(),
        }
    }

    pub(super) fn busy(&self) -> Option<Busy> {
        match self {
            Self::Conflict(_) => Some(Busy::Conflict),
            Self::Throttle(_) => Some(Busy::Throttled),
            Self::Unanswered | Self::Killed | Self::Late | Self::Hung | Self::Denied | Self::Refused => None,
        }
    }
}

// ---- Pages are not of one moment: other callers write between them ----

/// Ends of pages that were not continued yet, with the number of writes until then.
#[derive(Debug, Default)]
pub(super) struct PageEnds(Mutex<Vec<(Cursor, u64)>>);

impl PageEnds {
    /// True if the table was written since the previous page; `n_written` is the number of writes when this page was
    /// read.
    fn is_torn(&self, after: Option<&Cursor>, page: &Page, n_written: u64) -> bool {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = after.and_then(|after| ends.iter().position(|(cursor, _)| cursor == after));
        let is_torn = before.is_some_and(|at| ends.swap_remove(at).1 != n_written);
        ends.extend(page.next.clone().map(|next| (next, n_written)));
        is_torn
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, executor::block_on, poll};
    use keys::layout::{Index, Layout};

    use super::*;

    /// Decides the same for every call.
    struct Says(Option<(Side, Fault)>);

    impl Decider for Says {
        fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
            self.0.clone()
        }

        fn ended(&self, _call: &Call<'_>, _how: &str) {}

        fn sends(&self, _guard: &Guard) -> bool {
            true
        }
    }

    fn layout() -> Layout {
        let index = Index { name: "I".into(), pk: "IPK".into(), sk: "ISK".into(), projection: Some(vec![]) };
        Layout { entity_type: Some("EntityType".into()), indexes: vec![index], ..Layout::of("PK", "SK") }
    }

    fn add(pk: &str) -> Write {
        let add = [("Value".to_owned(), AttributeValue::N("1".to_owned()))].into();
        let action = Action::Update(Update { add, ..Update::default() });
        Write { table: Table::Main, key: Key::new(pk, "S"), action, guard: None }
    }

    fn value(database: &Database, pk: &str) -> Option<AttributeValue> {
        database.memory().view(Table::Main, |items| items.get(&Key::new(pk, "S"))?.get("Value").cloned())
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    /// The outcome of a single addition, whether it was done, and its units for the caller.
    fn added(side: Side, fault: Fault) -> (Option<bool>, bool, Units) {
        let database = Arc::new(Database::new(layout(), 400));
        let handle = Faulty::new(&database, Says(Some((side, fault))));
        let write = add("P");
        // A call with a response takes fewer than these polls.
        let answer = block_on(async {
            let mut call = Box::pin(handle.write(&write));
            for _ in 0..4 {
                if let std::task::Poll::Ready(answer) = poll!(&mut call) {
                    return Some(answer);
                }
            }
            None
        });
        let is_retry = answer.map(|answer| answer.is_err_and(|error| error.is_retry()));
        let done = value(&database, "P") == Some(n("1"));
        while database.land(0).is_some() {
            assert!(!done && value(&database, "P") == Some(n("1")), "it lands once");
        }
        (is_retry, done, handle.answered())
    }

    #[test]
    fn a_fault_is_before_the_call_or_after_it() {
        let throttle = || Fault::Throttle(BTreeSet::from([0]));
        for fault in [Fault::Unanswered, Fault::Conflict(0), throttle()] {
            assert_eq!(added(Side::Before, fault.clone()), (Some(true), false, 0.0), "{fault:?}");
            assert_eq!(added(Side::After, fault.clone()), (Some(true), true, 0.0), "{fault:?}");
        }
        assert_eq!(added(Side::Before, Fault::Killed), (None, false, 0.0));
        assert_eq!(added(Side::After, Fault::Killed), (None, true, 0.0));
        assert_eq!(added(Side::Before, Fault::Late), (None, false, 0.0), "it lands later");
        assert_eq!(added(Side::After, Fault::Late), (Some(true), false, 0.0), "it lands later");
    }

    #[test]
    fn a_transaction_is_cancelled_at_the_positions_and_its_units_are_counted_when_it_is_done() {
        let database = Arc::new(Database::new(layout(), 400));
        let transaction = Transaction::new(vec![add("P"), add("Q")]).unwrap();
        let busy = Faulty::new(&database, Says(Some((Side::Before, Fault::Conflict(1)))));
        let cancelled = TransactOutcome::Cancelled { reasons: vec![Reason::None, Reason::Busy(Busy::Conflict)] };
        assert_eq!(block_on(busy.transact(&transaction)).unwrap(), cancelled);
        assert_eq!((value(&database, "P"), busy.answered()), (None, 0.0));
        let handle = Faulty::new(&database, Says(None));
        block_on(handle.transact(&transaction)).unwrap();
        assert_eq!((value(&database, "P"), handle.answered()), (Some(n("1")), 4.0));
    }

    #[test]
    fn every_call_lets_others_run_before_it_is_done_and_after() {
        let database = Arc::new(Database::new(layout(), 400));
        let handle = Faulty::new(&database, Says(None));
        let write = add("P");
        let mut call = Box::pin(handle.write(&write));
        assert!((&mut call).now_or_never().is_none());
        assert_eq!(value(&database, "P"), None);
        assert!((&mut call).now_or_never().is_none());
        assert_eq!(value(&database, "P"), Some(n("1")));
        assert!(call.now_or_never().is_some());
    }

    #[test]
    fn an_index_lags_item_by_item() {
        let database = Arc::new(Database::lagging(layout(), 400, Lagging::Indexes));
        let handle = Faulty::new(&database, Says(None));
        let query = Query::prefix(Some("I"), "I", "");
        let found = || {
            let page = block_on(handle.query(Table::Main, &query, None)).unwrap();
            page.items.iter().map(|item| keys::item::text(item, "PK").unwrap().to_owned()).collect::<String>()
        };
        for pk in ["P", "Q"] {
            let key = Key::new(pk, "S");
            let mut item = layout().key_item(&key);
            item.extend(["IPK", "ISK"].map(|name| (name.to_owned(), AttributeValue::S("I".to_owned()))));
            let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
            block_on(handle.write(&write)).unwrap();
        }
        assert_eq!((found(), database.n_behind()), (String::new(), 2));
        database.catch_up(1);
        assert_eq!((found(), database.n_behind()), ("Q".to_owned(), 1));
        database.catch_up(0);
        assert_eq!((found(), database.n_behind()), ("PQ".to_owned(), 0));
        let table = Query::prefix(None, "P", "");
        assert_eq!(
            block_on(handle.query(Table::Main, &table, None)).unwrap().items.len(),
            1,
            "the table itself never lags"
        );
        assert_eq!(database.take_records().len(), 2, "the stream has every record once");
    }

    /// Conflicts when calls overlap.
    struct Overlaps;

    impl Decider for Overlaps {
        fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
            None
        }

        fn conflicts(&self, _call: &Call<'_>) -> bool {
            true
        }

        fn ended(&self, _call: &Call<'_>, _how: &str) {}

        fn sends(&self, _guard: &Guard) -> bool {
            true
        }
    }

    #[test]
    fn a_transaction_and_another_write_of_its_item_conflict_only_while_both_are_under_way() {
        let database = Arc::new(Database::new(layout(), 400));
        let [one, other] = [(); 2].map(|()| Faulty::new(&database, Overlaps));
        let both = Transaction::new(vec![add("P"), add("Q")]).unwrap();
        let later = Transaction::new(vec![add("R"), add("Q")]).unwrap();
        let (single, elsewhere) = (add("P"), add("S"));
        block_on(async {
            let mut first = Box::pin(one.transact(&both));
            assert!(poll!(&mut first).is_pending());
            let TransactOutcome::Cancelled { reasons } = other.transact(&later).await.unwrap() else {
                panic!("it is done")
            };
            assert_eq!(reasons, [Reason::None, Reason::Busy(Busy::Conflict)]);
            let error = other.write(&single).await.unwrap_err();
            assert!(matches!(error, StoreError::Retry { busy: Some(Busy::Conflict), .. }), "{error}");
            assert!(matches!(other.write(&elsewhere).await.unwrap(), Outcome::Done { .. }));
            assert!(matches!(first.await.unwrap(), TransactOutcome::Done { .. }));
            assert!(matches!(other.write(&single).await.unwrap(), Outcome::Done { .. }), "it is answered");

            // Two single writes wait for each other, and a caller that is gone blocks nothing.
            let mut write = Box::pin(one.write(&single));
            assert!(poll!(&mut write).is_pending());
            assert!(matches!(other.write(&single).await.unwrap(), Outcome::Done { .. }));
            assert!(matches!(other.transact(&both).await.unwrap(), TransactOutcome::Cancelled { .. }));
            drop(write);
            assert!(matches!(other.transact(&both).await.unwrap(), TransactOutcome::Done { .. }));
        });
        assert_eq!(value(&database, "P"), Some(n("4")));
    }

    /// Stores the outcome of each call.
    #[derive(Default)]
    struct Keeps(Mutex<Vec<String>>);

    impl Decider for &Keeps {
        fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
            None
        }

        fn ended(&self, _call: &Call<'_>, how: &str) {
            self.0.lock().unwrap().push(how.to_owned());
        }

        fn sends(&self, _guard: &Guard) -> bool {
            true
        }
    }

    #[test]
    fn a_read_is_torn_if_the_table_is_written_between_its_halves_or_its_pages() {
        // A page of 1 byte holds one item.
        let database = Arc::new(Database::new(layout(), 1));
        let write = |pk: &str| {
            let outcome = database.memory().write(&add(pk)).now_or_never().unwrap().unwrap();
            assert!(matches!(outcome, Outcome::Done { .. }));
        };
        ["P", "Q", "R"].into_iter().for_each(write);
        let ends = Keeps::default();
        let handle = Faulty::new(&database, &ends);
        let segment = Segment { number: 0, of: 1 };
        let next = |after| block_on(handle.scan(Table::Main, segment, after)).unwrap().next;
        let first = next(None);
        let second = next(first.clone());
        write("P");
        next(second);
        next(first);
        let keys = ["P", "Q"].map(|pk| Key::new(pk, "S"));
        for is_written in [false, true] {
            block_on(async {
                let mut read = Box::pin(handle.get(Table::Main, &keys));
                assert!(poll!(&mut read).is_pending());
                assert!(poll!(&mut read).is_pending());
                if is_written {
                    write("R");
                }
                assert_eq!(read.await.unwrap().len(), 2);
            });
        }
        assert_eq!(*ends.0.lock().unwrap(), ["read", "read", TORN, "read", "read", TORN]);
    }
}
