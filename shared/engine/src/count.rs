//! Applying additive effects, each change once.
//!
//! *Keeps true*: each change counts once, whatever is redelivered, cancelled, throttled or lost on the way. The
//! [ledger](crate::ledger) proves it: `chunks` sends transactions with receipts, and `marked` sends updates with
//! watermarks.
//!
//! The engine refuses a change that is older than the ledger's horizon before it sends anything.
//!
//! # Recount
//!
//! The ledger does not show whether a refused change is counted, so the engine lists the change's targets in the ledger
//! for the operator, who has them recounted. A listed count may be right; `verify` shows it.

pub(crate) mod chunks;
pub(crate) mod exceptions;
pub(crate) mod marked;
pub(crate) mod shown;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    bucket::StoredBuckets,
    catalogue::Catalogue,
    coalesce::{Adds, Amount, Counted},
    position::{DerivationAt, RecordAt},
    write::{Action, Table, TransactionError, Write},
};
use keys::{
    counter::CounterKey,
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use store::{Outcome, Store, StoreError};

use crate::{
    account::{Account, Refused, Target, undone},
    attribute::{n, s, sort_key},
    backoff::{Patience, describe},
    clock::age_ms,
    context::Context,
    count::exceptions::Exceptions,
    input::Batch,
    ledger::{
        LedgerKind, Receipts, ShardItem, ledger_item, shard_key,
        watermarks::{Sequence, mark_name},
    },
    plan::CountEntry,
    protocol::ProtocolStep,
    record::{Decoded, Lane},
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
        let stored = self.stored_buckets(&keys).await?;
        Ok(writes.into_iter().find_map(|write| self.has_its_key(write, stored.get(&write.key)?)))
    }

    /// Returns the reason if this item has another type than the write requires.
    fn has_its_key(&self, write: &Write, stored: &Item) -> Option<String> {
        let type_name = self.context.schema.layout.type_name();
        let mut asks = write.guard.iter().flat_map(|guard| &guard.asks);
        let is_other = asks.any(|ask| ask.attribute() == Some(type_name) && !ask.holds(Some(stored)));
        let found = || text(stored, type_name).unwrap_or("another type");
        is_other.then(|| format!("under the key {} is an item of {}", write.key.for_log(), found()))
    }

    /// Reads the current buckets.
    pub(crate) async fn stored_buckets(&self, keys: &[Key]) -> Result<StoredBuckets, StoreError> {
        if keys.is_empty() {
            return Ok(StoredBuckets::new());
        }
        Ok(self.context.store.get(Table::Main, keys).await?.into_iter().collect())
    }
}

// ---- Admission: which changes of a batch must be counted ----

impl<S: Store> Counter<'_, S> {
    /// The changes to count: each once, none that is already counted, none from behind the horizon or of an unknown
    /// age. Also returns, if a refused change could not be listed, why no change behind it may pass it.
    async fn admitted(
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
    stored: Option<Item>,
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
                stored: None,
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

// ---- What a batch knows of the ledger ----

/// What a batch knows of the ledger while it is applied.
pub(crate) enum Session<'a> {
    Receipts(Receipts<'a>),
    Watermarks(ShardSession),
}

/// What a batch knows of its stream shard.
#[derive(Debug)]
pub(crate) struct ShardSession {
    /// Name of the counters' watermarks.
    pub(crate) mark: String,
    /// The stream shard.
    pub(crate) lane: Lane,
    /// Key of the stream shard's item.
    pub(crate) key: Key,
    pub(crate) item: ShardItem,
    /// The shard's exceptions in the batch's range of sequence numbers.
    pub(crate) exceptions: Exceptions,
    /// Why nothing more may be counted: later changes would pass one that could not be counted.
    pub(crate) stopped: Option<String>,
    /// Counters that stopped, with the reason.
    stopped_counters: BTreeMap<Key, String>,
}

impl ShardSession {
    /// A new session; `None` if the event names no shard.
    pub(crate) fn of(lane: &Lane, has_own_mark: bool) -> Option<Self> {
        let mark = mark_name(lane)?;
        // A mutant has one watermark for all shards.
        let mark = if has_own_mark { mark } else { "w--------".to_owned() };
        let (key, item) = (shard_key(lane)?, ShardItem::default());
        Some(Self {
            mark,
            lane: lane.clone(),
            key,
            item,
            exceptions: Exceptions::default(),
            stopped: None,
            stopped_counters: BTreeMap::new(),
        })
    }
}

impl Session<'_> {
    /// Key of the stream shard's item; `None` if the ledger has none.
    pub(crate) fn shard_key(&self) -> Option<Key> {
        match self {
            Self::Receipts(_) => None,
            Self::Watermarks(shard) => Some(shard.key.clone()),
        }
    }
}

impl<S: Store> Counter<'_, S> {
    /// Reads the stream shard's item, if the ledger has one, or returns why it cannot be read.
    pub(crate) async fn read_shard(
        &self,
        key: Option<Key>,
        patience: Patience<'_>,
    ) -> Option<Result<ShardItem, String>> {
        let stored = self.context.item(Table::Ledger, &key?, patience).await;
        Some(stored.map(|stored| ShardItem::of(stored.as_ref())).map_err(|error| describe(&error)))
    }

    /// Stores the shard's item in the session, creates or renews it if that is due, and reads the exceptions. If one of
    /// these steps fails, nothing of the batch may be counted.
    pub(crate) async fn open(
        &self,
        session: &mut Session<'_>,
        read: Option<Result<ShardItem, String>>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let (Session::Watermarks(shard), Some(read)) = (session, read) else { return };
        let opened = match read {
            Ok(item) => self.renewed(item, &shard.key, batch, account).await,
            Err(why) => Err(why),
        };
        let opened = match opened {
            Ok(item) => self.exceptions(&item, &shard.key, batch).await.map(|exceptions| (item, exceptions)),
            Err(why) => Err(why),
        };
        match opened {
            Ok((item, exceptions)) => (shard.item, shard.exceptions) = (item, exceptions),
            Err(why) => shard.stopped = Some(why),
        }
    }

    /// The shard's exceptions in the batch's range of sequence numbers.
    async fn exceptions(&self, item: &ShardItem, key: &Key, batch: &Batch<'_>) -> Result<Exceptions, String> {
        if !item.has_exceptions() || !self.context.takes(ProtocolStep::Exceptions) {
            return Ok(Exceptions::default());
        }
        let sequence = |record: &Decoded<'_>| record.head.sequence_number.as_deref().and_then(Sequence::parse);
        let read = Exceptions::read(self.context, key, batch.records.iter().map(sequence), batch.patience).await;
        read.map_err(|error| describe(&error))
    }

    /// The item, which then exists and does not expire soon.
    async fn renewed(
        &self,
        item: ShardItem,
        key: &Key,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<ShardItem, String> {
        let Some(write) = item.renewing(key, self.context.clock.now_ms()) else { return Ok(item) };
        let written = batch.patience.call(|| self.context.store.write(&write)).await;
        if let Outcome::Done { units } = written.map_err(|error| describe(&error))? {
            account.commits.push(self.context.ledger_commit(key, units, RecordAt(0)));
        }
        Ok(item)
    }
}

// ---- The list of targets that need a recount ----

/// Partition key of the list. Stored, so it is stable.
pub const RECOUNT: &str = "RECOUNT";

/// Name that stands for all derivations and all targets when a change cannot be read.
pub(crate) const ALL: &str = "*";

impl<S: Store> Counter<'_, S> {
    /// Notes that a change is refused, and lists its targets.
    ///
    /// # Errors
    ///
    /// Why the targets could not be listed; the change is then not done.
    pub(crate) async fn refuse(
        &self,
        change: &Counted,
        why: &str,
        patience: Patience<'_>,
        account: &mut Account,
    ) -> Result<(), String> {
        let targets = targets(&self.context.catalogue, change);
        for write in listed(&self.context.schema.layout, change, &targets, why, self.context.clock.now_ms()) {
            match patience.call(|| self.context.store.write(&write)).await {
                Ok(Outcome::Done { units }) => {
                    account.commits.push(self.context.ledger_commit(&write.key, units, change.position));
                }
                Ok(Outcome::GuardFailed) => {}
                Err(error) => {
                    undone(account, [change.position], &describe(&error));
                    return Err(describe(&error));
                }
            }
        }
        tracing::warn!(event_id = %change.id, why, "refused a change; its targets are listed for a recount");
        account.refused.push(refused(&self.context.catalogue, change, why));
        Ok(())
    }
}

/// The report of a refused change, with its targets.
pub(crate) fn refused(catalogue: &Catalogue, change: &Counted, why: &str) -> Refused {
    let (id, why) = (change.id.clone(), why.to_owned());
    Refused { position: change.position, id, why, targets: targets(catalogue, change) }
}

/// The targets of a change: the items that its counters belong to, and buckets.
pub(crate) fn targets(catalogue: &Catalogue, change: &Counted) -> Vec<Target> {
    let target = |amount: &Amount| {
        let counted = CounterKey::parse(&amount.item).filter(|_| matches!(amount.adds, Adds::Tally(_)));
        let item = counted.map_or_else(|| amount.item.clone(), |counter| counter.target);
        Target { derivation: catalogue.name(amount.derivation).to_owned(), item }
    };
    change.amounts.iter().map(target).collect()
}

/// The writes that list a refused change's targets, or the change itself if it cannot be read.
pub(crate) fn listed(layout: &Layout, change: &Counted, targets: &[Target], why: &str, now_ms: u64) -> Vec<Write> {
    let write = |sort_key: String, derivation: &str, item: Option<&Key>| {
        let key = Key::new(RECOUNT, sort_key);
        let attributes = [
            ("Derivation", s(derivation)),
            ("ItemPK", s(item.map_or(ALL, |item| &item.pk))),
            ("ItemSK", s(item.map_or(ALL, |item| &item.sk))),
            ("EventId", s(&change.id)),
            ("Why", s(why)),
            ("ListedAt", n(now_ms)),
        ];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    };
    if targets.is_empty() {
        return vec![write(format!("{ALL}#{}", change.id), ALL, None)];
    }
    let of =
        |target: &Target| write(sort_key(&target.derivation, &target.item), &target.derivation, Some(&target.item));
    targets.iter().map(of).collect()
}
