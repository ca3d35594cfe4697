//! Under receipts: chunks of a batch, each one transaction with the receipts of its changes.
//!
//! A chunk whose transaction is cancelled is sent again without the changes that are in already; one that `DynamoDB`
//! refuses is cut in two until the change at fault stands alone, which is then parked.

use std::collections::{BTreeSet, VecDeque};

use derive::{
    coalesce::{Counted, chunks},
    position::{DerivationAt, RecordAt},
};
use keys::key::Key;
use store::{Store, StoreError};

use crate::{
    account::{Account, undone},
    backoff::{Tries, describe},
    batch::input::Batch,
    count::{Counter, admission::CountEntry},
    ledger::receipts::Receipts,
};

/// A part of a batch that is sent as one transaction.
pub(crate) struct Chunk {
    pub(crate) changes: Vec<Counted>,
    /// Why its only change cannot be applied, and is parked.
    pub(crate) failed: Option<String>,
    tries: Tries,
    /// Why it was not done the last time; then it waits before it is sent again.
    again: Option<String>,
}

/// How sending a chunk ended.
pub(crate) enum ChunkOutcome {
    Done,
    /// A receipt's guard failed: some of the changes are in already.
    Proven,
    /// Another writer holds these counters, or they are throttled; none where it is the ledger that is busy.
    Busy(BTreeSet<Key>),
    /// A bucket was not as it was read any more.
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
    /// Applies what a batch adds, with a receipt for each change.
    pub(crate) async fn add_chunks(
        &self,
        entries: Vec<CountEntry>,
        receipts: &mut Receipts<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let (entries, _) = self.admitted(entries, |change| receipts.has(change), batch, account).await;
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
                    make_way(next, &counters, &mut waiting);
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

/// Cuts what must go in into chunks. What is parked stands alone, behind what is applied, which it would cut in two.
fn cut(entries: Vec<CountEntry>) -> VecDeque<Chunk> {
    let (parked, applied): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.failed.is_some());
    let applied = chunks(applied.into_iter().map(|entry| entry.change).collect()).into_iter().map(Chunk::new);
    let parked = parked.into_iter().filter_map(|entry| Some(Chunk::parking(entry.change, entry.failed?)));
    applied.chain(parked).collect()
}

/// Why a chunk cannot be sent any more. Waits first where it was not done before.
async fn must_stop(chunk: &mut Chunk, batch: &Batch<'_>) -> Option<String> {
    if let Some(why) = chunk.again.take()
        && !batch.patience.wait(&mut chunk.tries).await
    {
        return Some(why);
    }
    batch.patience.is_over().then(|| "no time is left for it".to_owned())
}

/// Puts a chunk back that met other writers, so that these hold up as few as may be: the changes that touch a busy counter
/// go behind all others.
fn make_way(chunk: Chunk, counters: &BTreeSet<Key>, waiting: &mut VecDeque<Chunk>) {
    let touches = |change: &Counted| change.amounts.iter().any(|amount| counters.contains(&amount.item));
    let Chunk { changes, failed, tries, .. } = chunk;
    let again = Some("its counter is busy".to_owned());
    let (free, busy): (Vec<_>, Vec<_>) = if counters.is_empty() || failed.is_some() {
        (Vec::new(), changes)
    } else {
        changes.into_iter().partition(|change| !touches(change))
    };
    waiting.push_back(Chunk { changes: busy, failed, tries, again });
    if !free.is_empty() {
        waiting.push_front(Chunk::new(free));
    }
}
