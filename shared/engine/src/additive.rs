//! Applying additive effects: chunks of a batch, each one transaction with the ledger.
//!
//! *Keeps true*: each change counts once, whatever is delivered again, cancelled, throttled or lost on the way.
//! A chunk whose transaction is cancelled is sent again without the changes that are in already; one that DynamoDB
//! refuses is cut in two until the change at fault stands alone, which is then parked.

use std::collections::{BTreeSet, VecDeque};

use derive::{
    coalesce::{Counted, chunks, counter_writes},
    derivation::Family,
    write::{Transaction, Write},
};
use store::{Reason, Store, StoreError, TransactOutcome, Units};

use crate::{
    account::{Account, Commit, apportioned, undone},
    backoff::{Patience, Tries, describe},
    batch::{Engine, Raw},
    ledger::receipts::receipt,
};

/// A part of a batch that is sent as one transaction.
struct Chunk {
    changes: Vec<Counted>,
    tries: Tries,
    /// Why it was not done the last time; then it waits before it is sent again, behind those that need not.
    again: Option<String>,
}

/// How sending a chunk ended.
enum Sent {
    Done,
    /// These are in already; the others are still to be sent.
    Without(BTreeSet<usize>),
    /// Another writer holds the counters at these positions of the transaction, or they are throttled.
    Busy(BTreeSet<usize>),
    Refused(String),
    Unanswered(StoreError),
}

impl<S: Store> Engine<S> {
    /// Applies what a batch adds.
    pub(crate) async fn add(
        &self,
        changes: Vec<Counted>,
        raw: &Raw<'_>,
        patience: Patience<'_>,
        account: &mut Account,
    ) {
        let chunk = |changes| Chunk { changes, tries: Tries::default(), again: None };
        let mut waiting: VecDeque<Chunk> = chunks(changes).into_iter().map(chunk).collect();
        while let Some(mut next) = waiting.pop_front() {
            if let Some(why) = next.again.take()
                && !patience.wait(&mut next.tries).await
            {
                undone(account, next.changes.iter().map(|change| change.position), &why);
                continue;
            }
            if patience.is_over() {
                undone(account, next.changes.iter().map(|change| change.position), "no time is left for it");
                continue;
            }
            match self.send(&next.changes, account).await {
                Sent::Done => {}
                Sent::Without(known) => {
                    account.n_duplicates += known.len();
                    next.changes.retain(|change| !known.contains(&change.position));
                    if !next.changes.is_empty() {
                        waiting.push_front(next);
                    }
                }
                Sent::Busy(counters) => {
                    account.n_retries += 1;
                    let (busy, free) = self.parted(next.changes, &counters);
                    waiting.extend((!free.is_empty()).then(|| chunk(free)));
                    waiting.push_back(Chunk { changes: busy, again: Some("its counter is busy".to_owned()), ..next });
                }
                Sent::Unanswered(error) => {
                    account.n_retries += 1;
                    waiting.push_back(Chunk { again: Some(describe(&error)), ..next });
                }
                Sent::Refused(cause) => match next.changes.as_slice() {
                    [only] => self.park(only.position, &cause, Family::Additive, raw, patience, account).await,
                    several => {
                        let (front, back) = several.split_at(several.len() / 2);
                        waiting.push_front(chunk(back.to_vec()));
                        waiting.push_front(chunk(front.to_vec()));
                    }
                },
            }
        }
    }

    /// Parts the changes that touch these counters from the others, so that a contended counter holds up no other.
    fn parted(&self, changes: Vec<Counted>, counters: &BTreeSet<usize>) -> (Vec<Counted>, Vec<Counted>) {
        let writes = counter_writes(&self.schema, &changes);
        let n_receipts = changes.len();
        let busy: BTreeSet<_> = counters
            .iter()
            .filter_map(|at| writes.get(at.checked_sub(n_receipts)?))
            .map(|(write, _)| &write.key)
            .collect();
        if busy.is_empty() {
            return (changes, Vec::new());
        }
        changes.iter().cloned().partition(|change| change.amounts.iter().any(|amount| busy.contains(&amount.counter)))
    }

    async fn send(&self, changes: &[Counted], account: &mut Account) -> Sent {
        let now_ms = self.clock.now_ms();
        let receipts = changes.iter().map(|change| receipt(&self.schema.layout, &change.id, now_ms));
        let counters = counter_writes(&self.schema, changes);
        let writes: Vec<Write> = receipts.chain(counters.iter().map(|(write, _)| write.clone())).collect();
        let transaction = match Transaction::new(writes) {
            Ok(transaction) => transaction,
            Err(error) => return Sent::Refused(error.to_string()),
        };
        match self.store.transact(&transaction).await {
            Ok(TransactOutcome::Done { units }) => {
                let units = apportioned(&transaction.writes().iter().collect::<Vec<_>>(), &units);
                self.commit(changes, &counters, transaction.writes(), &units, account);
                Sent::Done
            }
            Ok(TransactOutcome::Cancelled { reasons }) => cancelled(changes, &reasons),
            Err(error) if error.is_retry() => Sent::Unanswered(error),
            Err(error) => Sent::Refused(describe(&error)),
        }
    }

    fn commit(
        &self,
        changes: &[Counted],
        counters: &[(Write, usize)],
        writes: &[Write],
        units: &[Units],
        account: &mut Account,
    ) {
        let at_ms = self.clock.now_ms();
        for (at, (write, units)) in writes.iter().zip(units).enumerate() {
            let counter = at.checked_sub(changes.len()).and_then(|at| counters.get(at));
            let touches = |change: &&Counted| change.amounts.iter().any(|amount| amount.counter == write.key);
            let causes: BTreeSet<usize> = match (counter, changes.get(at)) {
                (None, Some(change)) => BTreeSet::from([change.position]),
                _ => changes.iter().filter(touches).map(|change| change.position).collect(),
            };
            account.commits.push(Commit {
                key: write.key.clone(),
                table: write.table,
                at_ms,
                units: *units,
                derivations: counter.map(|(_, at)| self.catalogue.name(*at).to_owned()).into_iter().collect(),
                causes,
            });
        }
    }
}

/// Reads the reasons by position: first the receipts, one a change, then the counters.
fn cancelled(changes: &[Counted], reasons: &[Reason]) -> Sent {
    let known = changes.iter().zip(reasons).filter(|(_, reason)| **reason == Reason::GuardFailed);
    let known: BTreeSet<usize> = known.map(|(change, _)| change.position).collect();
    if !known.is_empty() {
        return Sent::Without(known);
    }
    let rejected = reasons.iter().find_map(|reason| match reason {
        Reason::Rejected(why) => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = rejected {
        return Sent::Refused(why);
    }
    Sent::Busy(reasons.iter().enumerate().filter(|(_, reason)| **reason == Reason::Busy).map(|(at, _)| at).collect())
}
