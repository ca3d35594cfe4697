//! The exceptions of a stream shard: parked changes that no counter's watermark covers, because they are unreadable, or
//! because no watermark can be set on the item under the counter's key. A redelivered exception adds nothing.
//!
//! Each is an item of its own in the partition of the shard's item, in the order of the sequence numbers. A shard may
//! have any number of them: a batch reads those between its first and its last sequence number, if the shard's item
//! states that there are any.
//!
//! # Parking
//!
//! Under watermarks a change is parked for one counter, or as an exception of the stream shard.
//!
//! *Keeps true*: each addition of a change to a counter is either applied or parked, never both. The transaction that
//! parks a change for a counter also moves the counter's watermark past it, under the same condition as an update that
//! adds. If no watermark can be moved, because the record is unreadable or another item has the counter's key, the
//! change becomes an exception of its shard. Each batch reads the exceptions before it counts.

use std::collections::BTreeSet;

use derive::{
    coalesce::{Counted, item_write},
    family::Family,
    guard::{Ask, Guard, Purpose},
    query::{Query, SortKeys},
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{
    counter::{REVISION, SHOWN},
    item::Item,
    key::Key,
    layout::Layout,
};
use store::{Store, TransactOutcome, rejected, unheld};

use crate::{
    account::{Account, Commit, Parked, apportioned},
    attribute::n,
    backoff::{GaveUp, Patience, Tries, describe},
    context::Context,
    count::{
        Counter, CounterTodo, ShardSession, Todo,
        marked::{CounterOutcome, may_mark},
    },
    input::Batch,
    ledger::{EXPIRES_AT, announcing, expires_at, ledger_item, watermarks::Sequence},
    park::{ExceptionKind, Parking, own_id, report},
    plan::CountEntry,
    protocol::ProtocolStep,
    publishing,
};

/// Start of an exception's sort key. Stored, so it is stable.
const EXCEPTION: &str = "EXCEPTION#";

/// Digits of a sequence number in a sort key, so that texts sort as numbers. No [`Sequence`] is longer.
const DIGITS: usize = 41;

/// The exceptions that were read of a stream shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions(BTreeSet<String>);

impl Exceptions {
    /// Reads the exceptions from the lowest of these sequence numbers to the highest. A record whose number cannot be
    /// read sorts before all others.
    pub(crate) async fn read<S: Store>(
        context: &Context<S>,
        shard: &Key,
        sequences: impl Iterator<Item = Option<Sequence>>,
        patience: Patience<'_>,
    ) -> Result<Self, GaveUp> {
        let sequences: BTreeSet<Option<Sequence>> = sequences.collect();
        let (Some(lowest), Some(highest)) = (sequences.first(), sequences.last()) else { return Ok(Self::default()) };
        let end = if context.takes(ProtocolStep::WholeRange) { after(*highest) } else { before(*highest) };
        let query = Query::of(None, shard.pk.clone(), SortKeys::Between(before(*lowest), end));
        let (mut exceptions, mut start) = (BTreeSet::new(), None);
        loop {
            let page = patience.call(|| context.store.query(Table::Ledger, &query, start.clone())).await?;
            exceptions.extend(page.items.iter().filter_map(|item| id(&context.schema.layout.key(item)?)));
            start = page.next;
            if start.is_none() {
                return Ok(Self(exceptions));
            }
        }
    }

    /// True if this change is parked for all counters, or for this one.
    pub(crate) fn excepts(&self, id: &str, counter: Option<&Key>) -> bool {
        self.0.contains(&own_id(id, counter))
    }
}

/// The write that records an exception, for all counters or for one; it fails if the exception exists.
pub(crate) fn excepting(layout: &Layout, shard: &Key, change: &Counted, counter: Option<&Key>, now_ms: u64) -> Write {
    let sequence = Sequence::parse(&change.sequence_number);
    let key = Key::new(shard.pk.clone(), format!("{}{}", before(sequence), own_id(&change.id, counter)));
    let item = ledger_item(layout, &key, [(EXPIRES_AT, expires_at(now_ms))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::Exception)) }
}

/// Id of the change with this key.
fn id(key: &Key) -> Option<String> {
    key.sk.strip_prefix(EXCEPTION)?.split_once('#').map(|(_, id)| id.to_owned())
}

/// Prefix of the sort keys of a sequence number's exceptions.
fn before(sequence: Option<Sequence>) -> String {
    format!("{}#", number(sequence))
}

/// A text after all sort keys of a sequence number's exceptions, and before those of the next number.
fn after(sequence: Option<Sequence>) -> String {
    // `$` follows `#` in the character order.
    format!("{}$", number(sequence))
}

fn number(sequence: Option<Sequence>) -> String {
    let digits = sequence.map(|sequence| sequence.to_string()).unwrap_or_default();
    format!("{EXCEPTION}{digits:0>DIGITS$}")
}

// ---- Parking a change as an exception ----

/// Why a crashing record is parked.
pub(crate) const DIED: &str = "two invocations died while it was in progress, of time or of memory";

/// A change to park.
struct Exception<'a> {
    change: &'a Counted,
    counter: Option<&'a Key>,
    cause: &'a str,
}

/// How parking ended.
enum ParkOutcome {
    Done,
    /// The change is already counted or parked.
    Known,
    Refused(String),
}

/// The instances that may have handled a record.
enum AtWork {
    /// Some instances have another release or another catalogue, and may have read what this one cannot.
    Others,
    /// No other instances; with the check that none has started since. An instance publishes its derivations before it
    /// reads the exceptions.
    Alike(Option<Box<Write>>),
}

impl<S: Store> Counter<'_, S> {
    /// Parks an unreadable change as an exception of its shard.
    pub(super) async fn except(
        &self,
        entry: &CountEntry,
        cause: &str,
        shard: &ShardSession,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<(), String> {
        let exception = Exception { change: &entry.change, counter: None, cause };
        match self.park_exception(&exception, shard, batch, account).await? {
            ParkOutcome::Done => Ok(()),
            ParkOutcome::Known => {
                account.n_duplicates += 1;
                Ok(())
            }
            ParkOutcome::Refused(why) => Err(format!("parking it is refused: {why}")),
        }
    }

    /// Parks the first change of a counter that refuses it, and moves the counter's watermark past the change.
    pub(super) async fn park_first(
        &self,
        counter: &mut CounterTodo,
        cause: &str,
        shard: &ShardSession,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) -> Result<(), String> {
        let Some(first) = counter.todo.first() else { return Ok(()) };
        let change = counted(first);
        let set = Item::from([(shard.mark.clone(), first.sequence.mark(self.context.clock.now_ms()))]);
        // As each count does: a sweep that read the counter before does not delete it, and its record refreshes the
        // display.
        let count_from = Item::from([(REVISION.to_owned(), n(self.context.clock.now_ms()))]);
        let remove = BTreeSet::from([SHOWN.to_owned()]);
        let bound = first.sequence.bound(true);
        let mut asks = vec![if self.context.takes(ProtocolStep::ParkedWhereItCounts) {
            may_mark(&counter.at, &shard.mark, bound)
        } else {
            Ask::LacksOrBelow(shard.mark.clone(), bound)
        }];
        // The conditions on the type are those of the write that would have added the change.
        let adding = item_write(&self.context.schema, &counter.at, &first.adds, None).and_then(|write| write.guard);
        let type_name = self.context.schema.layout.type_name();
        asks.extend(adding.into_iter().flat_map(|it| it.asks).filter(|ask| ask.attribute() == Some(type_name)));
        let marked = Write {
            table: Table::Main,
            key: counter.at.clone(),
            action: Action::Update(Update { set, remove, count_from, ..Update::default() }),
            guard: Some(Guard { purpose: Purpose::Watermark, asks }),
        };
        let marked = Some(marked).filter(|_| self.context.takes(ProtocolStep::ProofOfParking)).into_iter().collect();
        let exception = Exception { change: &change, counter: Some(&counter.at), cause };
        match self.park_with(&exception, marked, None, batch, &mut outcome.account).await? {
            ParkOutcome::Done => parked(counter, outcome),
            // The next update that fails shows why.
            ParkOutcome::Known => {}
            ParkOutcome::Refused(_) => return self.except_first(counter, cause, shard, batch, outcome).await,
        }
        Ok(())
    }

    /// Parks the first change of a counter whose item cannot take a watermark.
    pub(super) async fn except_first(
        &self,
        counter: &mut CounterTodo,
        cause: &str,
        shard: &ShardSession,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) -> Result<(), String> {
        let Some(first) = counter.todo.first() else { return Ok(()) };
        let change = counted(first);
        let exception = Exception { change: &change, counter: Some(&counter.key), cause };
        match self.park_exception(&exception, shard, batch, &mut outcome.account).await? {
            ParkOutcome::Done | ParkOutcome::Known => parked(counter, outcome),
            ParkOutcome::Refused(why) => return Err(format!("parking it is refused: {why}")),
        }
        Ok(())
    }

    /// Parks a change as an exception of its shard.
    async fn park_exception(
        &self,
        exception: &Exception<'_>,
        shard: &ShardSession,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<ParkOutcome, String> {
        let now_ms = self.context.clock.now_ms();
        let expiring_ms = if self.context.takes(ProtocolStep::ExceptionsKept) { now_ms } else { 0 };
        let layout = &self.context.schema.layout;
        let excepted = excepting(layout, &shard.key, exception.change, exception.counter, expiring_ms);
        let announced = (!shard.item.has_exceptions()).then(|| announcing(&shard.key, now_ms));
        let takes = self.context.takes(ProtocolStep::Exceptions);
        let excepted = std::iter::once(excepted).chain(announced).filter(|_| takes);
        // An earlier invocation's write may still count the change, once another item has left the counter's key.
        let may_count = exception.cause == DIED || exception.counter.is_some();
        let created_ms = batch.record(exception.change.position).and_then(|record| record.head.created_ms);
        let at_work = if may_count { AtWork::Others } else { self.at_work(created_ms, batch).await? };
        let (kind, unchanged) = match at_work {
            AtWork::Others => (ExceptionKind::Unsure, None),
            AtWork::Alike(unchanged) => (ExceptionKind::Uncounted, unchanged),
        };
        let proofs = excepted.chain(unchanged.map(|write| *write)).collect();
        self.park_with(exception, proofs, Some(kind), batch, account).await
    }

    /// Which instances may have handled a record of this time.
    async fn at_work(&self, created_ms: Option<u64>, batch: &Batch<'_>) -> Result<AtWork, String> {
        let watch = self.context.watch.as_ref().filter(|_| self.context.takes(ProtocolStep::OneReader));
        let Some(watch) = watch else { return Ok(AtWork::Alike(None)) };
        let registered = publishing::registered(self.context, Family::Additive, batch.patience).await;
        let registered = registered.map_err(|error| describe(&error))?;
        let free_ms = registered.free_ms().saturating_add(watch.hold.map_or(0, |hold| hold.margin_ms));
        // An earlier instance may have handled the record: it is uncounted only if the others had ended by its time.
        let after = self.context.takes(ProtocolStep::YoungerThanOthers);
        let since_ms = if after { created_ms } else { Some(self.context.clock.now_ms()) };
        // A function's instance publishes its release; an operator's command only reads.
        let is_alone = registered.release() == watch.release && since_ms.is_some_and(|since_ms| free_ms < since_ms);
        let unchanged = || AtWork::Alike(Some(Box::new(registered.unchanged(Family::Additive))));
        Ok(if is_alone { unchanged() } else { AtWork::Others })
    }

    /// Parks a change in one transaction with the write that prevents its record from being counted, and with checks.
    async fn park_with(
        &self,
        exception: &Exception<'_>,
        proofs: Vec<Write>,
        kind: Option<ExceptionKind>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<ParkOutcome, String> {
        let Exception { change, counter, cause } = *exception;
        let Some(record) = batch.record(change.position) else { return Ok(ParkOutcome::Known) };
        let parking = Parking {
            head: &record.head,
            record: record.text,
            cause,
            family: Family::Additive,
            lane: &batch.lane,
            counter,
            exception: kind,
        };
        let parked = parking.writes(&self.context.schema.layout, self.context.clock.now_ms());
        let writes: Vec<Write> = proofs.into_iter().chain(parked).collect();
        let transaction = match Transaction::new(writes) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(ParkOutcome::Refused(error.to_string())),
        };
        let mut tries = Tries::default();
        loop {
            let outcome = batch.patience.call(|| self.context.store.transact(&transaction)).await;
            let reasons = match outcome {
                Ok(TransactOutcome::Done { units }) => {
                    let writes: Vec<&Write> = transaction.writes().iter().collect();
                    for (write, units) in writes.iter().zip(apportioned(&writes, &units)) {
                        account.commits.push(self.parked_commit(write, units, change));
                    }
                    let (position, id) = (change.position, change.id.clone());
                    let parked = Parked { position, id, cause: cause.to_owned() };
                    report(parked, Family::Additive, batch, account);
                    return Ok(ParkOutcome::Done);
                }
                Ok(TransactOutcome::Cancelled { reasons }) => reasons,
                Err(GaveUp::Refused(error)) => return Ok(ParkOutcome::Refused(describe(&error))),
                Err(error) => return Err(describe(&error)),
            };
            let purposes = unheld(&transaction, &reasons).filter_map(|write| write.guard.as_ref());
            let purposes: Vec<Purpose> = purposes.map(|guard| guard.purpose).collect();
            if purposes.iter().any(|purpose| *purpose != Purpose::Registry) {
                return Ok(ParkOutcome::Known);
            }
            if !purposes.is_empty() {
                return Err("an instance that may be able to read it began to work meanwhile".to_owned());
            }
            if let Some(why) = rejected(&reasons) {
                return Ok(ParkOutcome::Refused(why));
            }
            account.sends_again([]);
            if !batch.patience.wait(&mut tries).await {
                return Err("its counter is busy".to_owned());
            }
        }
    }

    fn parked_commit(&self, write: &Write, units: store::Units, change: &Counted) -> Commit {
        Commit {
            key: write.key.clone(),
            table: write.table,
            action: None,
            at_ms: self.context.clock.now_ms(),
            units,
            derivations: Vec::new(),
            causes: BTreeSet::from([change.position]),
            is_correction: false,
        }
    }
}

/// Notes that the first change of a counter is parked.
fn parked(counter: &mut CounterTodo, outcome: &mut CounterOutcome) {
    let first = counter.todo.remove(0);
    outcome.account.parked_for([counter.derivation]);
    outcome.done.insert(first.position);
}

fn counted(todo: &Todo) -> Counted {
    let (position, id, sequence_number) = (todo.position, todo.id.clone(), todo.sequence.to_string());
    Counted { position, id, sequence_number, amounts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_are_in_the_order_of_the_sequence_numbers() {
        let largest = u128::MAX.to_string();
        let numbers = ["", "7", "99", "100", "20500000000000000910398", largest.as_str()];
        let sequences = numbers.map(Sequence::parse);
        let keys: Vec<String> =
            sequences.iter().flat_map(|it| [before(*it), format!("{}~id", before(*it)), after(*it)]).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn an_exception_is_known_by_the_id_in_its_key() {
        let shard = Key::new("SHARD#label#shard", "SHARD");
        let counter = Key::new("p", "s");
        for (event, counter) in [("e1", None), ("e#1", Some(&counter))] {
            let change = Counted {
                position: derive::position::RecordAt(0),
                id: event.to_owned(),
                sequence_number: "7".to_owned(),
                amounts: Vec::new(),
            };
            let write = excepting(&crate::fixture::layout(), &shard, &change, counter, 0);
            assert_eq!(id(&write.key), Some(own_id(event, counter)));
        }
        assert_eq!(id(&shard), None);
    }
}
