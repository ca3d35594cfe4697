//! Applying additive effects, each change once.
//!
//! *Keeps true*: each change counts once, whatever is redelivered, cancelled, throttled or lost on the way. The
//! [ledger](crate::ledger) proves it: `chunks` sends transactions with receipts, and `marked` sends updates with
//! watermarks.
//!
//! The engine refuses a change that is older than the ledger's horizon before it sends anything.

pub(crate) mod chunks;
pub(crate) mod excepted;
pub(crate) mod exceptions;
pub(crate) mod marked;
pub mod recount;
pub(crate) mod session;
pub(crate) mod shown;
pub(crate) mod spread;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    bucket::HeldBuckets,
    coalesce::{Adds, Counted},
    position::{DerivationAt, RecordAt},
    write::{Table, TransactionError, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::{Store, StoreError};

use crate::{
    account::Account,
    clock::age_ms,
    context::Context,
    count::session::{Session, ShardSession},
    input::Batch,
    ledger::{LedgerKind, watermarks::Sequence},
    plan::CountEntry,
    protocol::ProtocolStep,
};

/// Number of counters that a batch updates at once under watermarks. They do not wait for each other; a batch has as
/// many connections.
pub const UPDATES_AT_ONCE: usize = 100;

/// Applies additive effects.
pub(crate) struct Counter<'a, S> {
    pub(crate) context: &'a Context<S>,
}

/// Why the additions of a change are not sent as a transaction.
pub(crate) fn unsendable(error: &TransactionError) -> String {
    match error {
        TransactionError::TooMany { .. } => {
            format!("the change adds to too many counters at once: {error}. Discard it and run `ripple repair`")
        }
        TransactionError::Empty | TransactionError::Twice { .. } => error.to_string(),
    }
}

impl<'a, S> Counter<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Counter<'_, S> {
    /// Applies the additions of a batch.
    pub(crate) async fn add(
        &self,
        entries: Vec<CountEntry>,
        session: &mut Session<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        if entries.is_empty() {
            return;
        }
        match session {
            Session::Receipts(receipts) => self.add_chunks(entries, receipts, batch, account).await,
            Session::Watermarks(shard) => self.add_marked(entries, shard, batch, account).await,
        }
    }

    /// Returns which item of another type has the key of one of these writes, if any.
    pub(crate) async fn have_their_keys(
        &self,
        writes: impl Iterator<Item = &Write>,
    ) -> Result<Option<String>, StoreError> {
        let writes: Vec<&Write> = writes.collect();
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let held = self.held_buckets(&keys).await?;
        Ok(writes.into_iter().find_map(|write| self.has_its_key(write, held.get(&write.key)?)))
    }

    /// Returns the reason if this item has another type than the write requires.
    pub(crate) fn has_its_key(&self, write: &Write, held: &Item) -> Option<String> {
        let type_name = self.context.schema.layout.type_name();
        let mut asks = write.guard.iter().flat_map(|guard| &guard.asks);
        let is_other = asks.any(|ask| ask.attribute() == Some(type_name) && !ask.holds(Some(held)));
        let found = || text(held, type_name).unwrap_or("another type");
        is_other.then(|| format!("under the key {} is an item of {}", write.key.for_log(), found()))
    }

    /// Reads the current buckets.
    pub(crate) async fn held_buckets(&self, keys: &[Key]) -> Result<HeldBuckets, StoreError> {
        if keys.is_empty() {
            return Ok(HeldBuckets::new());
        }
        Ok(self.context.store.get(Table::Main, keys).await?.into_iter().collect())
    }
}

// ---- Admission: which changes of a batch must be counted ----

impl<S: Store> Counter<'_, S> {
    /// The changes to count: each once, none that is already counted, none from behind the horizon or of an unknown
    /// age. Also returns, if a refused change could not be listed, why no change behind it may pass it.
    pub(crate) async fn admitted(
        &self,
        entries: Vec<CountEntry>,
        is_in: impl Fn(&Counted) -> bool,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> (Vec<CountEntry>, Option<String>) {
        let (mut seen, mut admitted, mut unlisted) = (BTreeSet::new(), Vec::new(), None);
        for mut entry in entries {
            let is_again = !seen.insert(entry.change.id.clone()) && self.context.takes(ProtocolStep::OnceABatch);
            if is_again || is_in(&entry.change) {
                account.n_duplicates += 1;
                continue;
            }
            if let Some(why) = self.refusal(entry.created_ms) {
                unlisted = unlisted.or(self.refuse(&entry.change, why, batch.patience, account).await.err());
                continue;
            }
            if entry.created_ms.is_none() {
                let why = "the record does not say when it was made (ApproximateCreationDateTime)";
                entry.failed.get_or_insert(why.to_owned());
            }
            admitted.push(entry);
        }
        (admitted, unlisted)
    }

    /// Why the ledger cannot decide about a change from this time.
    fn refusal(&self, created_ms: Option<u64>) -> Option<&'static str> {
        match age_ms(created_ms, self.context.clock.now_ms()) {
            Some(age_ms) if age_ms > self.context.ledger.horizon_ms() => match self.context.ledger {
                LedgerKind::Receipts => Some("it is older than the ledger's horizon of 14 days"),
                LedgerKind::Watermarks => Some("it is older than the ledger's horizon of 26 hours"),
            }
            .filter(|_| self.context.takes(ProtocolStep::Horizon)),
            None if created_ms.is_some() && self.context.takes(ProtocolStep::NotAhead) => Some(
                "its time (ApproximateCreationDateTime) is more than five minutes ahead of the function's clock, so its age \
                 is unknown",
            ),
            _ => None,
        }
    }
}

// ---- The additions of a batch, by counter and in the order of the stream shard ----

/// The additions of one change to a counter or a bucket.
#[derive(Debug)]
struct Todo {
    position: RecordAt,
    /// Id of the event.
    id: String,
    sequence: Sequence,
    adds: Vec<Adds>,
}

/// A counter or a bucket with the batch's additions to it, in the order of the shard.
#[derive(Debug)]
struct CounterTodo {
    /// The counter's home, or the bucket.
    key: Key,
    /// The item on which the stream shard counts: that, or a satellite.
    at: Key,
    derivation: DerivationAt,
    todo: Vec<Todo>,
    held: Option<Item>,
    /// True if this batch may have created the counter. Its target may then display a count of the counter's other
    /// items.
    may_begin: bool,
    /// True if the counter is [hot](Context::hot).
    is_hot: bool,
}

impl<S: Store> Counter<'_, S> {
    /// Sorts the additions of a change by counter, or returns why the change is parked.
    fn sort_out(
        &self,
        entry: &mut CountEntry,
        shard: &ShardSession,
        todo: &mut BTreeMap<Key, CounterTodo>,
    ) -> Result<(), String> {
        if let Some(cause) = entry.failed.take() {
            return Err(cause);
        }
        let Some(sequence) = Sequence::parse(&entry.change.sequence_number) else {
            return Err("the record has no sequence number that can be read".to_owned());
        };
        for amount in std::mem::take(&mut entry.change.amounts) {
            if shard.exceptions.excepts(&entry.change.id, Some(&amount.item)) {
                continue;
            }
            let counter = todo.entry(amount.item.clone()).or_insert_with(|| CounterTodo {
                at: self.counted_at(&amount, shard),
                key: amount.item.clone(),
                derivation: amount.derivation,
                todo: Vec::new(),
                held: None,
                may_begin: true,
                is_hot: false,
            });
            match counter.todo.iter_mut().find(|todo| todo.sequence == sequence && todo.id == entry.change.id) {
                Some(todo) if self.context.takes(ProtocolStep::OnceABatch) => todo.adds.push(amount.adds),
                _ => {
                    let (position, id) = (entry.change.position, entry.change.id.clone());
                    counter.todo.push(Todo { position, id, sequence, adds: vec![amount.adds] });
                }
            }
        }
        Ok(())
    }
}
