//! Applying additive effects: chunks of a batch, each one transaction with the ledger's proofs.
//!
//! *Keeps true*: each change counts once, whatever is delivered again, cancelled, throttled or lost on the way.
//! A chunk whose transaction is cancelled is sent again without the changes that are in already; one that `DynamoDB`
//! refuses is cut in two until the change at fault stands alone, which is then parked.
//!
//! A change that is older than the ledger's horizon is refused before anything is sent.

pub(crate) mod admission;
pub mod counts_of;
pub(crate) mod parcel;
pub mod recount;
pub mod target;

use std::collections::{BTreeSet, VecDeque};

use derive::{
    coalesce::Counted,
    position::{DerivationAt, RecordAt},
    write::Table,
};
use keys::key::Key;
use store::{Store, StoreError};

use crate::{
    account::{Account, undone},
    backoff::{Tries, describe},
    batch::input::Batch,
    context::Context,
    count::admission::CountEntry,
    ledger::Ledger,
    protocol::ProtocolStep,
};

/// The ledger while a batch is applied.
pub(crate) struct Session<'a> {
    pub(crate) ledger: Box<dyn Ledger + 'a>,
    /// Was it read where it stands?
    is_read: bool,
    /// Why nothing more may go in, where changes must go in in order and one could not.
    stopped: Option<String>,
}

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
    /// A proof's guard failed: some of the changes may be in already.
    Proven,
    /// Another writer holds these counters, or they are throttled; none where it is the ledger that is busy.
    Busy(BTreeSet<Key>),
    /// A bucket was not as it was read any more.
    Moved,
    Refused(String),
    Unanswered(StoreError),
}

impl<'a> Session<'a> {
    /// A ledger of which nothing is known yet.
    pub(crate) fn new(ledger: Box<dyn Ledger + 'a>) -> Self {
        Self { ledger, is_read: false, stopped: None }
    }

    /// One change could not go in: where order matters, none behind it may.
    pub(crate) fn stop(&mut self, why: String) {
        if self.ledger.is_ordered() {
            self.stopped.get_or_insert(why);
        }
    }
}

impl Chunk {
    /// A chunk of changes to apply.
    pub(crate) fn new(changes: Vec<Counted>) -> Self {
        Self { changes, failed: None, tries: Tries::default(), again: None }
    }

    /// A change to park.
    pub(crate) fn parking(change: Counted, cause: String) -> Self {
        Self { failed: Some(cause), ..Self::new(vec![change]) }
    }

    fn positions(&self) -> impl Iterator<Item = RecordAt> {
        self.changes.iter().map(|change| change.position)
    }

    fn derivations(&self) -> impl Iterator<Item = DerivationAt> {
        self.changes.iter().flat_map(|change| &change.amounts).map(|amount| amount.derivation)
    }
}

/// Applies what must count once.
pub(crate) struct Counter<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Counter<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Counter<'_, S> {
    /// Applies what a batch adds.
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
        if let Err(why) = self.read_standing(session, batch).await {
            undone(account, entries.iter().map(|entry| entry.change.position), &why);
            return session.stop(why);
        }
        let entries = self.admitted(entries, session, batch, account).await;
        let mut waiting = self.cut(entries, session.ledger.as_ref());
        while let Some(mut next) = waiting.pop_front() {
            if let Some(why) = self.must_stop(&mut next, session, batch).await {
                undone(account, next.positions(), &why);
                session.stop(why);
                continue;
            }
            // What another invocation has passed meanwhile must not be passed again.
            if self.context.takes(ProtocolStep::DropBeforeSend) {
                next.changes.retain(|change| !session.ledger.has(change));
            }
            if next.changes.is_empty() {
                continue;
            }
            match self.send(&next, session, batch, account).await {
                ChunkOutcome::Done => session.ledger.passed(&next.changes),
                ChunkOutcome::Proven => {
                    next.again = self.without_known(&mut next.changes, session, batch, account).await.err();
                    if !next.changes.is_empty() {
                        waiting.push_front(next);
                    }
                }
                ChunkOutcome::Busy(counters) => {
                    account.sends_again(next.derivations());
                    self.make_way(next, &counters, session, &mut waiting);
                }
                ChunkOutcome::Moved => {
                    account.sends_again(next.derivations());
                    next.again = Some("a bucket was changed by others all the time".to_owned());
                    self.put_back(next, session, &mut waiting);
                }
                ChunkOutcome::Unanswered(error) if error.is_standing() => {
                    let why = describe(&error);
                    undone(account, next.positions(), &why);
                    session.stop(why);
                }
                ChunkOutcome::Unanswered(error) => {
                    account.sends_again(next.derivations());
                    next.again = Some(describe(&error));
                    self.put_back(next, session, &mut waiting);
                }
                ChunkOutcome::Refused(cause) => match next.changes.as_slice() {
                    [only] if next.failed.is_some() => {
                        let why = format!("parking it is refused: {cause}");
                        undone(account, [only.position], &why);
                        session.stop(why);
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

    /// Reads the ledger where it stands, unless that is known.
    pub(crate) async fn read_standing(&self, session: &mut Session<'_>, batch: &Batch<'_>) -> Result<(), String> {
        if session.is_read {
            return Ok(());
        }
        if let Some(key) = session.ledger.standing() {
            let keys = [key.clone()];
            let items = batch.patience.call(|| self.context.store.get(Table::Ledger, &keys)).await;
            let items = items.map_err(|error| describe(&error))?;
            session.ledger.stands(items.first().map(|(_, item)| item));
        }
        session.is_read = true;
        Ok(())
    }

    /// Why a chunk cannot be sent any more. Waits first where it was not done before.
    async fn must_stop(&self, chunk: &mut Chunk, session: &Session<'_>, batch: &Batch<'_>) -> Option<String> {
        let stopped = session.stopped.as_ref().filter(|_| self.context.takes(ProtocolStep::NobodyOvertakes));
        if let Some(why) = stopped {
            return Some(why.clone());
        }
        if let Some(why) = chunk.again.take()
            && !batch.patience.wait(&mut chunk.tries).await
        {
            return Some(why);
        }
        batch.patience.is_over().then(|| "no time is left for it".to_owned())
    }

    /// Drops the changes that are in; an error where it is not known of any.
    async fn without_known(
        &self,
        changes: &mut Vec<Counted>,
        session: &mut Session<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<(), String> {
        if session.ledger.standing().is_some() && !self.context.takes(ProtocolStep::ReadAgain) {
            changes.clear();
            return Ok(());
        }
        session.is_read = false;
        self.read_standing(session, batch).await?;
        let n_before = changes.len();
        changes.retain(|change| !session.ledger.has(change));
        account.n_duplicates += n_before - changes.len();
        if changes.len() == n_before { Err("the ledger is busy".to_owned()) } else { Ok(()) }
    }

    /// Puts a chunk back that must wait: behind all others where the order is free.
    fn put_back(&self, chunk: Chunk, session: &Session<'_>, waiting: &mut VecDeque<Chunk>) {
        if session.ledger.is_ordered() && self.context.takes(ProtocolStep::NobodyOvertakes) {
            waiting.push_front(chunk);
        } else {
            waiting.push_back(chunk);
        }
    }

    /// Puts a chunk back that met other writers, so that these hold up as few as may be: where the order is free, the
    /// changes that touch a busy counter go behind all others; else the chunk is cut before the first of them.
    fn make_way(&self, chunk: Chunk, counters: &BTreeSet<Key>, session: &Session<'_>, waiting: &mut VecDeque<Chunk>) {
        let touches = |change: &Counted| change.amounts.iter().any(|amount| counters.contains(&amount.item));
        let Chunk { changes, failed, tries, .. } = chunk;
        let again = Some("its counter is busy".to_owned());
        let (free, busy): (Vec<_>, Vec<_>) = if counters.is_empty() || failed.is_some() {
            (Vec::new(), changes)
        } else if session.ledger.is_ordered() {
            let n_free = changes.iter().take_while(|change| !touches(change)).count();
            let mut free = changes;
            let busy = free.split_off(n_free);
            (free, busy)
        } else {
            changes.into_iter().partition(|change| !touches(change))
        };
        self.put_back(Chunk { changes: busy, failed, tries, again }, session, waiting);
        if !free.is_empty() {
            waiting.push_front(Chunk::new(free));
        }
    }
}
