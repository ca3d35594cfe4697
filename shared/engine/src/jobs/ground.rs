//! What touches items of the application itself: cascades. Fan-outs are jobs as well, and are worked here.
//!
//! It cannot be corrected later, so it is strict: each touch is a transaction with the condition that makes it right,
//! and what starts a job starts it once. An item that cannot be touched now is reported as not done, and its record
//! comes again; nothing that was done is done twice.

pub(crate) mod listed;
mod start;
pub mod sweep;
mod work;

use std::{collections::BTreeSet, sync::atomic::Ordering};

use derive::{
    effect::Ground,
    write::{Table, Transaction, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{item::Item, job::JobKey, key::Key};
use store::{Reason, Store, TransactOutcome, Units};

use crate::{
    account::{Account, Commit, apportioned, undone},
    backoff::{GaveUp, Tries, describe},
    batch::{Batch, Engine},
};

/// Items that are touched at once.
const TOUCHES_AT_ONCE: usize = 16;

/// What a record asks for, on behalf of a derivation.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// Position of the record in its batch.
    pub(crate) position: usize,
    /// Position of the derivation in the catalogue.
    pub(crate) derivation: usize,
    /// What it asks for.
    pub(crate) effect: Ground,
}

/// On whose behalf something is touched, and what came of it.
pub(crate) struct Work<'a> {
    pub(crate) touch: &'a Touch,
    pub(crate) batch: &'a Batch<'a>,
    /// Does nobody wait behind it? See [`Engine::is_alone`].
    pub(crate) is_alone: bool,
    pub(crate) account: Account,
}

/// Why something could not be touched.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Not now: its record comes again.
    NotNow(String),
    /// Never: its record is parked.
    Refused(String),
}

impl From<GaveUp> for Stop {
    fn from(gave_up: GaveUp) -> Self {
        match &gave_up {
            GaveUp::Refused(error) => Self::Refused(describe(error)),
            GaveUp::OutOfTime { .. } => Self::NotNow(describe(&gave_up)),
        }
    }
}

/// How a transaction on ground items ended.
pub(crate) enum Touched {
    Done,
    /// The guards of the writes at these positions did not hold.
    Unheld(BTreeSet<usize>),
}

impl<S: Store> Engine<S> {
    /// Does what records ask for of the application's own items; jobs last, since they are in no hurry.
    pub(crate) async fn touch(&self, touches: Vec<Touch>, batch: &Batch<'_>, account: &mut Account) {
        let (jobs, others): (Vec<Touch>, Vec<Touch>) =
            touches.into_iter().partition(|touch| matches!(touch.effect, Ground::Work(_)));
        let is_alone = self.is_alone(&others, account);
        for touches in [others, jobs] {
            let touched = touches.iter().map(|touch| {
                async move {
                    let mut work = Work { touch, batch, is_alone, account: Account::default() };
                    let ended = if batch.patience.is_over() {
                        Err(Stop::NotNow("no time is left for it".to_owned()))
                    } else {
                        Box::pin(self.touch_one(&mut work)).await
                    };
                    (touch, work.account, ended)
                }
                .boxed()
            });
            let touched: Vec<BoxFuture<'_, _>> = touched.collect();
            let ended: Vec<_> = stream::iter(touched).buffered(TOUCHES_AT_ONCE).collect().await;
            for (touch, of_one, ended) in ended {
                account.add(of_one);
                match ended {
                    Ok(()) => {}
                    Err(Stop::NotNow(why)) => undone(account, [touch.position], &why),
                    Err(Stop::Refused(cause)) => {
                        self.park(touch.position, [touch.derivation], &cause, batch, account).await;
                    }
                }
            }
        }
    }

    /// Is nothing done but for jobs, in this batch and in those of the last second? A fan-out's own writes come back
    /// beside its job, and nobody waits behind them, nor behind the change that began it; whoever writes now and then
    /// waits for a page, which is short then.
    fn is_alone(&self, others: &[Touch], account: &Account) -> bool {
        let now_ms = self.clock.now_ms();
        let begin = account.commits.iter().filter(|commit| JobKey::parse(&commit.key).is_some());
        let begin: BTreeSet<usize> = begin.flat_map(|commit| &commit.causes).copied().collect();
        let is_of_others = |commit: &Commit| !commit.causes.is_subset(&begin);
        if !others.is_empty() || account.n_changes > begin.len() || account.commits.iter().any(is_of_others) {
            self.others_at_ms.store(now_ms, Ordering::Relaxed);
            return false;
        }
        now_ms.saturating_sub(self.others_at_ms.load(Ordering::Relaxed)) >= self.fan_out.page_ms
    }

    async fn touch_one(&self, work: &mut Work<'_>) -> Result<(), Stop> {
        let Some(kind) = self.catalogue.derivation(work.touch.derivation).map(|derivation| &derivation.kind) else {
            return Ok(());
        };
        match (&work.touch.effect, kind.cascade()) {
            (Ground::Cascade(removal), Some(_)) => self.start(removal, work).await,
            (Ground::Cascade(_), None) => Ok(()),
            (Ground::Work(key), _) => self.work(key, work).await,
        }
    }

    /// Sends a transaction until it is decided.
    pub(crate) async fn decided(&self, writes: Vec<Write>, work: &mut Work<'_>) -> Result<Touched, Stop> {
        let transaction = Transaction::new(writes).map_err(|error| Stop::Refused(error.to_string()))?;
        let patience = work.batch.patience;
        let mut tries = Tries::default();
        loop {
            let reasons = match patience.call(|| self.store.transact(&transaction)).await? {
                TransactOutcome::Done { units } => {
                    self.note_commits(&transaction, &units, work);
                    return Ok(Touched::Done);
                }
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            let unheld = reasons.iter().enumerate().filter(|(_, reason)| **reason == Reason::GuardFailed);
            let unheld: BTreeSet<usize> = unheld.map(|(at, _)| at).collect();
            if !unheld.is_empty() {
                return Ok(Touched::Unheld(unheld));
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return Err(Stop::Refused(why.clone()));
            }
            if !patience.wait(&mut tries).await {
                return Err(Stop::NotNow("others are at its items all the time".to_owned()));
            }
        }
    }

    fn note_commits(&self, transaction: &Transaction, units: &[(Table, Units)], work: &mut Work<'_>) {
        let writes: Vec<&Write> = transaction.writes().iter().collect();
        let units = apportioned(&writes, units);
        for (write, units) in writes.into_iter().zip(units) {
            let commit = self.touched(&write.key, write.table, units, work);
            work.account.commits.push(commit);
        }
    }

    pub(crate) fn touched(&self, key: &Key, table: Table, units: Units, work: &Work<'_>) -> Commit {
        let derivation = self.catalogue.name(work.touch.derivation).to_owned();
        Commit {
            key: key.clone(),
            table,
            at_ms: self.clock.now_ms(),
            units,
            derivations: if table == Table::Main { vec![derivation] } else { Vec::new() },
            causes: BTreeSet::from([work.touch.position]),
            is_correction: false,
        }
    }

    /// An item as it is now.
    pub(super) async fn item_now(&self, table: Table, key: &Key, work: &Work<'_>) -> Result<Option<Item>, Stop> {
        let keys = [key.clone()];
        let items = work.batch.patience.call(|| self.store.get(table, &keys)).await?;
        Ok(items.into_iter().next().map(|(_, item)| item))
    }
}
