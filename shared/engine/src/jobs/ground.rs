//! What touches items of the application itself: cascades. Fan-outs are jobs as well, and are worked here.
//!
//! It cannot be corrected later, so it is strict: each touch is a transaction with the condition that makes it right,
//! and what starts a job starts it once. An item that cannot be touched now is reported as not done, and its record
//! comes again; nothing that was done is done twice.

mod deletions;
pub mod held;
pub(crate) mod listed;
mod start;
pub mod sweep;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use derive::{
    effect::{Ground, Removal},
    kind::shape::Shape,
    position::RecordAt,
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{job::JobKey, key::Key};
use store::Store;
use tokio::sync::OwnedMutexGuard;

use crate::{
    account::{Account, Commit, undone},
    batch::input::Batch,
    context::Context,
    jobs::touch::{Touch, TouchFailure, Work},
    park::Parker,
};

/// Items that are touched at once.
const TOUCHES_AT_ONCE: usize = 16;

/// Does what records ask for of the application's own items.
pub(crate) struct Worker<'a, S> {
    pub(crate) context: &'a Context<S>,
    turns: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl<'a, S> Worker<'a, S> {
    pub(crate) fn new(context: &'a Context<S>) -> Self {
        Self { context, turns: Mutex::default() }
    }

    /// The turn of a cascade among those of the same batch with the same owner. The removal of an item and that of its mirror
    /// begin two, which would delete the same items, and transactions that check one item at once conflict.
    async fn turn(&self, removal: &Removal) -> OwnedMutexGuard<()> {
        let owner = removal.absent.iter().min().unwrap_or(&removal.owner);
        let turn = self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(owner.clone()).or_default().clone();
        turn.lock_owned().await
    }
}

impl<S: Store> Worker<'_, S> {
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
                        Err(TouchFailure::NotNow("no time is left for it".to_owned()))
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
                    Err(TouchFailure::NotNow(why)) => undone(account, [touch.position], &why),
                    Err(TouchFailure::Refused(cause)) => {
                        Parker::new(self.context)
                            .park(touch.position, [touch.derivation], &cause, batch, account)
                            .await;
                    }
                }
            }
        }
    }

    /// Is nothing done but for jobs, in this batch and in those of the last second? A fan-out's own writes come back
    /// beside its job, and nobody waits behind them, nor behind the change that began it; whoever writes now and then
    /// waits for a page, which is short then.
    fn is_alone(&self, others: &[Touch], account: &Account) -> bool {
        let now_ms = self.context.clock.now_ms();
        let begin = account.commits.iter().filter(|commit| JobKey::parse(&commit.key).is_some());
        let begin: BTreeSet<RecordAt> = begin.flat_map(|commit| &commit.causes).copied().collect();
        let is_of_others = |commit: &Commit| !commit.causes.is_subset(&begin);
        if !others.is_empty() || account.n_changes > begin.len() || account.commits.iter().any(is_of_others) {
            self.context.others_at_ms.store(now_ms, Ordering::Relaxed);
            return false;
        }
        now_ms.saturating_sub(self.context.others_at_ms.load(Ordering::Relaxed)) >= self.context.fan_out.page_ms
    }

    async fn touch_one(&self, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let Some(kind) = self.context.catalogue.derivation(work.touch.derivation).map(|derivation| &derivation.kind)
        else {
            return Ok(());
        };
        match (&work.touch.effect, kind.shape()) {
            (Ground::Cascade(removal), Shape::Cascade(_)) => self.start(removal, work).await,
            (Ground::Cascade(_), _) => Ok(()),
            (Ground::Work(key), _) => self.work(key, work).await,
        }
    }
}
