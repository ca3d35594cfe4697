//! Under receipts: the batch is divided into chunks, each one transaction with the receipts of its changes.
//!
//! If a transaction is cancelled, the engine sends it again without the changes that are already counted. If `DynamoDB`
//! refuses one, the engine halves the chunk until the change at fault is alone, and parks that change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use derive::{
    bucket::StoredBuckets,
    coalesce::{Counted, amount_writes, buckets, chunks},
    family::Family,
    position::{DerivationAt, RecordAt},
    write::{Table, Transaction, Write},
};
use keys::key::Key;
use store::{Reason, Store, StoreError, TransactOutcome, Units, rejected, unheld};

use crate::{
    account::{Account, Commit, Parked, apportioned, undone},
    backoff::{Tries, describe},
    count::{Counter, unsendable},
    input::Batch,
    ledger::Receipts,
    park::{Parking, report},
    plan::CountEntry,
    protocol::ProtocolStep,
};

/// A part of a batch that is sent as one transaction.
pub(crate) struct Chunk {
    pub(crate) changes: Vec<Counted>,
    /// Why its only change cannot be applied and is parked.
    pub(crate) failed: Option<String>,
    tries: Tries,
    /// Why the last attempt failed; the chunk then waits before it is sent again.
    again: Option<String>,
}

/// How sending a chunk ended.
pub(crate) enum ChunkOutcome {
    Done,
    /// A receipt's guard failed: some of the changes are already counted.
    Proven,
    /// Other writers conflict on these counters, or they are throttled; empty if the ledger is busy.
    Busy(BTreeSet<Key>),
    /// A bucket has changed since it was read.
    Moved,
    Refused(String),
    Unanswered(StoreError),
}

impl Chunk {
    /// A chunk of changes to apply.
    fn new(changes: Vec<Counted>) -> Self {
        Self { changes, failed: None, tries: Tries::default(), again: None }
    }

    /// A change to park.
    fn parking(change: Counted, cause: String) -> Self {
        Self { failed: Some(cause), ..Self::new(vec![change]) }
    }

    fn positions(&self) -> impl Iterator<Item = RecordAt> {
        self.changes.iter().map(|change| change.position)
    }

    fn derivations(&self) -> impl Iterator<Item = DerivationAt> {
        self.changes.iter().flat_map(|change| &change.amounts).map(|amount| amount.derivation)
    }
}

impl<S: Store> Counter<'_, S> {
    /// Applies the additions of a batch, with a receipt for each change.
    pub(crate) async fn add_chunks(
        &self,
        entries: Vec<CountEntry>,
        receipts: &mut Receipts<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let (mut entries, _) = self.admitted(entries, |change| receipts.has(change), batch, account).await;
        for amount in entries.iter_mut().flat_map(|entry| &mut entry.change.amounts) {
            // Where this engine went when the home was busy.
            if let Some(beside) = self.context.spread.remembered(&amount.item, "") {
                amount.item = beside;
            }
        }
        let mut waiting = cut(entries);
        while let Some(mut next) = waiting.pop_front() {
            if let Some(why) = must_stop(&mut next, batch).await {
                undone(account, next.positions(), &why);
                continue;
            }
            match self.send(&next, receipts, batch, account).await {
                ChunkOutcome::Done => {}
                ChunkOutcome::Proven => {
                    let n_before = next.changes.len();
                    next.changes.retain(|change| !receipts.has(change));
                    account.n_duplicates += n_before - next.changes.len();
                    if !next.changes.is_empty() {
                        waiting.push_front(next);
                    }
                }
                ChunkOutcome::Busy(counters) => {
                    account.sends_again(next.derivations());
                    self.make_way(next, &counters, &mut waiting);
                }
                ChunkOutcome::Moved => {
                    account.sends_again(next.derivations());
                    next.again = Some("a bucket was changed by others all the time".to_owned());
                    waiting.push_back(next);
                }
                ChunkOutcome::Unanswered(error) if error.is_standing() => {
                    undone(account, next.positions(), &describe(&error));
                }
                ChunkOutcome::Unanswered(error) => {
                    account.sends_again(next.derivations());
                    next.again = Some(describe(&error));
                    waiting.push_back(next);
                }
                ChunkOutcome::Refused(cause) => match next.changes.as_slice() {
                    [only] if next.failed.is_some() => {
                        undone(account, [only.position], &format!("parking it is refused: {cause}"));
                    }
                    [only] => waiting.push_front(Chunk::parking(only.clone(), cause)),
                    several => {
                        let (front, back) = several.split_at(several.len() / 2);
                        waiting.push_front(Chunk::new(back.to_vec()));
                        waiting.push_front(Chunk::new(front.to_vec()));
                    }
                },
            }
        }
    }
}

/// Divides the changes into chunks. Each change to park is alone, behind the changes to apply, whose chunks it would
/// divide.
fn cut(entries: Vec<CountEntry>) -> VecDeque<Chunk> {
    let (parked, applied): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.failed.is_some());
    let applied = chunks(applied.into_iter().map(|entry| entry.change).collect()).into_iter().map(Chunk::new);
    let parked = parked.into_iter().filter_map(|entry| Some(Chunk::parking(entry.change, entry.failed?)));
    applied.chain(parked).collect()
}

/// Why a chunk cannot be sent any more. Waits first if an attempt failed.
async fn must_stop(chunk: &mut Chunk, batch: &Batch<'_>) -> Option<String> {
    if let Some(why) = chunk.again.take()
        && !batch.patience.wait(&mut chunk.tries).await
    {
        return Some(why);
    }
    batch.patience.is_over().then(|| "no time is left for it".to_owned())
}

impl<S: Store> Counter<'_, S> {
    /// Queues a chunk again after a conflict. Changes on a busy counter go behind all others, so that they delay as few as
    /// possible, and to another item of the counter.
    fn make_way(&self, chunk: Chunk, counters: &BTreeSet<Key>, waiting: &mut VecDeque<Chunk>) {
        let touches = |change: &Counted| change.amounts.iter().any(|amount| counters.contains(&amount.item));
        let Chunk { changes, failed, tries, .. } = chunk;
        let again = Some("its counter is busy".to_owned());
        let (free, mut busy): (Vec<_>, Vec<_>) = if counters.is_empty() || failed.is_some() {
            (Vec::new(), changes)
        } else {
            changes.into_iter().partition(|change| !touches(change))
        };
        let id = busy.first().map(|change| change.id.clone()).unwrap_or_default();
        let beside: BTreeMap<&Key, Key> = counters.iter().map(|key| (key, self.beside(key, &id))).collect();
        for amount in busy.iter_mut().flat_map(|change| &mut change.amounts) {
            amount.item = beside.get(&amount.item).unwrap_or(&amount.item).clone();
        }
        waiting.push_back(Chunk { changes: busy, failed, tries, again });
        if !free.is_empty() {
            waiting.push_front(Chunk::new(free));
        }
    }
}

// ---- A parcel: one transaction of receipts and effects; building it, reading its result, accounting for it ----

/// A transaction: first the proofs, then the effects.
struct Parcel {
    transaction: Transaction,
    /// The changes that it proves, in the order of the proofs if each change has one.
    proven: Vec<Counted>,
    n_proofs: usize,
    /// For each counter and bucket, the position of its derivation.
    derivations: BTreeMap<Key, DerivationAt>,
}

impl<S: Store> Counter<'_, S> {
    /// Sends a chunk.
    pub(crate) async fn send(
        &self,
        chunk: &Chunk,
        receipts: &mut Receipts<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> ChunkOutcome {
        let stored = match batch.patience.in_time(self.read_buckets(chunk)).await {
            Ok(stored) => stored,
            Err(error) if error.is_retry() => return ChunkOutcome::Unanswered(error),
            Err(error) => return ChunkOutcome::Refused(describe(&error)),
        };
        let parcel = match self.parcel(chunk, &stored, receipts, batch) {
            Ok(Some(parcel)) => parcel,
            Ok(None) => return ChunkOutcome::Done,
            Err(cause) => return ChunkOutcome::Refused(cause),
        };
        match batch.patience.in_time(self.context.store.transact(&parcel.transaction)).await {
            Ok(TransactOutcome::Done { units }) => {
                self.commit(chunk, &parcel, &units, batch, account);
                ChunkOutcome::Done
            }
            Ok(TransactOutcome::Cancelled { reasons }) => {
                self.met(&parcel, &reasons, account);
                match cancelled(&parcel, &reasons, receipts) {
                    ChunkOutcome::Moved => self.moved(&parcel, &reasons, batch).await,
                    other => other,
                }
            }
            Err(error) if error.is_retry() => {
                error.busy().into_iter().for_each(|busy| account.contention.met(None, busy));
                ChunkOutcome::Unanswered(error)
            }
            Err(error) => ChunkOutcome::Refused(describe(&error)),
        }
    }

    /// Handles a failed guard of a counter or bucket: either it has changed since it was read, or another item has its
    /// key.
    async fn moved(&self, parcel: &Parcel, reasons: &[Reason], batch: &Batch<'_>) -> ChunkOutcome {
        match batch.patience.in_time(self.have_their_keys(unheld(&parcel.transaction, reasons))).await {
            Ok(Some(why)) => ChunkOutcome::Refused(why),
            Ok(None) => ChunkOutcome::Moved,
            Err(error) => ChunkOutcome::Unanswered(error),
        }
    }

    /// Counts the conflicts and throttles that a parcel met.
    fn met(&self, parcel: &Parcel, reasons: &[Reason], account: &mut Account) {
        for (write, reason) in parcel.transaction.writes().iter().zip(reasons) {
            if let Reason::Busy(busy) = reason {
                let derivation = parcel.derivations.get(&write.key).map(|at| self.context.catalogue.label(*at));
                account.contention.met(derivation, *busy);
            }
        }
    }

    /// Reads the buckets that a chunk adds to; done before each attempt.
    async fn read_buckets(&self, chunk: &Chunk) -> Result<StoredBuckets, StoreError> {
        let keys = if chunk.failed.is_some() { Vec::new() } else { buckets(&chunk.changes) };
        self.stored_buckets(&keys).await
    }

    /// The parcel of a chunk; `None` if there is nothing to send.
    fn parcel(
        &self,
        chunk: &Chunk,
        stored: &StoredBuckets,
        receipts: &Receipts<'_>,
        batch: &Batch<'_>,
    ) -> Result<Option<Parcel>, String> {
        let now_ms = self.context.clock.now_ms();
        let counters = amount_writes(&self.context.schema, &chunk.changes, stored);
        let (effects, proven) = match &chunk.failed {
            Some(cause) => (self.parking(chunk, cause, batch), chunk.changes.clone()),
            None => {
                (counters.iter().map(|(write, _)| write.clone()).collect(), self.to_prove(&chunk.changes, &counters))
            }
        };
        let is_proven = chunk.failed.is_none() || self.context.takes(ProtocolStep::ProofOfParking);
        let proofs = if is_proven { receipts.proofs(&proven, now_ms) } else { Vec::new() };
        let n_proofs = proofs.len();
        let writes: Vec<Write> = proofs.into_iter().chain(effects).collect();
        if writes.is_empty() {
            return Ok(None);
        }
        let transaction = Transaction::new(writes).map_err(|error| unsendable(&error))?;
        let derivations = counters.into_iter().map(|(write, at)| (write.key, at)).collect();
        Ok(Some(Parcel { transaction, proven, n_proofs, derivations }))
    }

    /// All changes of a chunk, including those whose effects cancel out in it.
    fn to_prove(&self, changes: &[Counted], counters: &[(Write, DerivationAt)]) -> Vec<Counted> {
        let written: BTreeSet<&Key> = counters.iter().map(|(write, _)| &write.key).collect();
        let is_written = |change: &Counted| change.amounts.iter().any(|amount| written.contains(&amount.item));
        let proven =
            changes.iter().filter(|change| self.context.takes(ProtocolStep::NetZeroProof) || is_written(change));
        proven.cloned().collect()
    }

    fn parking(&self, chunk: &Chunk, cause: &str, batch: &Batch<'_>) -> Vec<Write> {
        let record = chunk.changes.first().and_then(|change| batch.record(change.position));
        let Some(record) = record else { return Vec::new() };
        let parking = Parking {
            head: &record.head,
            record: record.text,
            cause,
            family: Family::Additive,
            lane: &batch.lane,
            counter: None,
            exception: None,
        };
        parking.writes(&self.context.schema.layout, self.context.clock.now_ms())
    }

    fn commit(
        &self,
        chunk: &Chunk,
        parcel: &Parcel,
        units: &[(Table, Units)],
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let writes = parcel.transaction.writes();
        let units = apportioned(&writes.iter().collect::<Vec<_>>(), units);
        let all = || chunk.changes.iter().map(|change| change.position).collect();
        for (at, (write, units)) in writes.iter().zip(units).enumerate() {
            let derivation = parcel.derivations.get(&write.key);
            let touches = |change: &&Counted| change.amounts.iter().any(|amount| amount.item == write.key);
            let causes: BTreeSet<RecordAt> = match (parcel.proven.get(at), derivation) {
                (Some(change), None) if parcel.n_proofs == parcel.proven.len() => BTreeSet::from([change.position]),
                (_, Some(_)) => chunk.changes.iter().filter(touches).map(|change| change.position).collect(),
                _ => all(),
            };
            account.commits.push(Commit {
                key: write.key.clone(),
                table: write.table,
                action: derivation.map(|_| write.action.clone()),
                at_ms: self.context.clock.now_ms(),
                units,
                derivations: derivation.map(|at| self.context.catalogue.label(*at).to_owned()).into_iter().collect(),
                causes,
                is_correction: false,
            });
        }
        if let (Some(cause), Some(change)) = (&chunk.failed, chunk.changes.first()) {
            account.parked_for(change.amounts.iter().map(|amount| amount.derivation));
            let parked = Parked { position: change.position, id: change.id.clone(), cause: cause.clone() };
            report(parked, Family::Additive, batch, account);
        }
    }
}

/// Reads the cancellation reasons by position: first the proofs, then the effects.
fn cancelled(parcel: &Parcel, reasons: &[Reason], receipts: &mut Receipts<'_>) -> ChunkOutcome {
    let (proofs, effects) = reasons.split_at(parcel.n_proofs.min(reasons.len()));
    if proofs.contains(&Reason::GuardFailed) {
        receipts.cancelled(&parcel.proven, proofs);
        return ChunkOutcome::Proven;
    }
    if let Some(why) = rejected(reasons) {
        return ChunkOutcome::Refused(why);
    }
    if effects.contains(&Reason::GuardFailed) {
        return ChunkOutcome::Moved;
    }
    let writes = parcel.transaction.writes().iter().skip(parcel.n_proofs).zip(effects);
    let busy = writes.filter(|(_, reason)| matches!(reason, Reason::Busy(_)));
    ChunkOutcome::Busy(busy.map(|(write, _)| write.key.clone()).collect())
}
