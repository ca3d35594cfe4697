//! A parcel: one transaction of receipts and effects, how it is made, read and accounted for.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    bucket::HeldBuckets,
    coalesce::{Counted, amount_writes, buckets},
    family::Family,
    position::{DerivationAt, RecordAt},
    write::{Table, Transaction, Write},
};
use keys::key::Key;
use store::{Reason, Store, StoreError, TransactOutcome, Units, unheld};

use crate::{
    account::{Account, Commit, Parked, apportioned},
    backoff::describe,
    batch::input::Batch,
    count::{
        Counter,
        chunks::{Chunk, ChunkOutcome},
    },
    ledger::receipts::Receipts,
    park::Parking,
    protocol::ProtocolStep,
};

/// A transaction: first the proofs, then what they prove.
struct Parcel {
    transaction: Transaction,
    /// The changes that it proves, in the order of the proofs where each has one.
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
        let held = match batch.patience.in_time(self.read_buckets(chunk)).await {
            Ok(held) => held,
            Err(error) if error.is_retry() => return ChunkOutcome::Unanswered(error),
            Err(error) => return ChunkOutcome::Refused(describe(&error)),
        };
        let parcel = match self.parcel(chunk, &held, receipts, batch) {
            Ok(Some(parcel)) => parcel,
            Ok(None) => return ChunkOutcome::Done,
            Err(cause) => return ChunkOutcome::Refused(cause),
        };
        match batch.patience.in_time(self.context.store.transact(&parcel.transaction)).await {
            Ok(TransactOutcome::Done { units }) => {
                self.commit(chunk, &parcel, &units, account);
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

    /// A counter or a bucket was not as the parcel asked: it has changed since it was read, or another item has its key.
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

    /// Reads the buckets that a chunk adds to, each time that it is sent.
    async fn read_buckets(&self, chunk: &Chunk) -> Result<HeldBuckets, StoreError> {
        let keys = if chunk.failed.is_some() { Vec::new() } else { buckets(&chunk.changes) };
        self.held_buckets(&keys).await
    }

    /// The parcel of a chunk; `None` when there is nothing to send.
    fn parcel(
        &self,
        chunk: &Chunk,
        held: &HeldBuckets,
        receipts: &Receipts<'_>,
        batch: &Batch<'_>,
    ) -> Result<Option<Parcel>, String> {
        let now_ms = self.context.clock.now_ms();
        let counters = amount_writes(&self.context.schema, &chunk.changes, held);
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
        let transaction = Transaction::new(writes).map_err(|error| error.to_string())?;
        let derivations = counters.into_iter().map(|(write, at)| (write.key, at)).collect();
        Ok(Some(Parcel { transaction, proven, n_proofs, derivations }))
    }

    /// All changes of a chunk, those too whose effects add up to nothing in it.
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

    fn commit(&self, chunk: &Chunk, parcel: &Parcel, units: &[(Table, Units)], account: &mut Account) {
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
            tracing::error!(event_id = %change.id, family = %Family::Additive, cause, "parked a change that cannot be applied");
            account.parked_for(change.amounts.iter().map(|amount| amount.derivation));
            account.parked.push(Parked { position: change.position, id: change.id.clone(), cause: cause.clone() });
        }
    }
}

/// Reads the reasons by position: first the proofs', then the effects'.
fn cancelled(parcel: &Parcel, reasons: &[Reason], receipts: &mut Receipts<'_>) -> ChunkOutcome {
    let (proofs, effects) = reasons.split_at(parcel.n_proofs.min(reasons.len()));
    if proofs.contains(&Reason::GuardFailed) {
        receipts.cancelled(&parcel.proven, proofs);
        return ChunkOutcome::Proven;
    }
    let rejected = reasons.iter().find_map(|reason| match reason {
        Reason::Rejected(why) => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = rejected {
        return ChunkOutcome::Refused(why);
    }
    if effects.contains(&Reason::GuardFailed) {
        return ChunkOutcome::Moved;
    }
    let writes = parcel.transaction.writes().iter().skip(parcel.n_proofs).zip(effects);
    let busy = writes.filter(|(_, reason)| matches!(reason, Reason::Busy(_)));
    ChunkOutcome::Busy(busy.map(|(write, _)| write.key.clone()).collect())
}
