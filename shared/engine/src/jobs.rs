//! Changes to the application's own items: cascades. Fan-outs are jobs as well, and run here.
//!
//! A cascade cannot be corrected later, so it is strict: each change is a transaction with the condition that makes it
//! right, and each removal creates one job. An item that cannot be changed now is reported as not done, and its record
//! is redelivered; nothing is done twice.

pub(crate) mod deletions;
pub mod held;
pub mod sweep;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use derive::{
    effect::{Ground, Removal},
    kind::Shape,
    position::RecordAt,
    write::{Action, Table, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{job::JobKey, key::Key};
use store::Store;
use tokio::sync::OwnedMutexGuard;

use crate::{
    account::{Account, Commit, undone},
    clock::age_ms,
    context::Context,
    input::Batch,
    job::{
        Job,
        touch::{self, TouchFailure, TouchOutcome, Work},
    },
    ledger::{HORIZON_MS, receipt_of},
    park,
    plan::Touch,
    protocol::ProtocolStep,
};

/// Number of effects that are handled at once.
const TOUCHES_AT_ONCE: usize = 16;

/// Handles the effects of records on the application's own items.
pub(crate) struct Worker<'a, S> {
    pub(crate) context: &'a Context<S>,
    turns: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl<'a, S> Worker<'a, S> {
    pub(crate) fn new(context: &'a Context<S>) -> Self {
        Self { context, turns: Mutex::default() }
    }

    /// Waits for the turn of a cascade among those of the same batch with the same owner. The removal of an item and
    /// that of its mirror start two cascades that would delete the same items, and transactions that check one item at
    /// once conflict.
    async fn turn(&self, removal: &Removal) -> OwnedMutexGuard<()> {
        let owner = removal.absent.iter().min().unwrap_or(&removal.owner);
        let turn = self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(owner.clone()).or_default().clone();
        turn.lock_owned().await
    }
}

impl<S: Store> Worker<'_, S> {
    /// Handles the effects of records on the application's own items; jobs last, because they are not urgent.
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
                        park::park(self.context, touch.position, [touch.derivation], &cause, batch, account).await;
                    }
                }
            }
        }
    }

    /// True if only jobs ran in the last second, in this batch and earlier ones; then a page may take longer. A
    /// fan-out's own writes and the change that started it do not count as other work, because nothing waits behind
    /// them. If other writers are active, their changes wait for a page, so pages are short.
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

// ---- Starting a cascade: a removal creates one job ----

impl<S: Store> Worker<'_, S> {
    /// True if a record may be so old that its receipt has expired.
    fn is_behind_horizon(&self, created_ms: Option<u64>) -> bool {
        let is_old = age_ms(created_ms, self.context.clock.now_ms()).is_none_or(|age_ms| age_ms > HORIZON_MS);
        is_old && self.context.takes(ProtocolStep::Horizon)
    }

    /// Creates the job of a removal, under a receipt; a removal from behind the ledger's horizon creates none.
    async fn start(&self, removal: &Removal, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let Some(record) = work.batch.record(work.touch.position) else { return Ok(()) };
        let (id, now_ms) = (park::id(&record.head, record.text), self.context.clock.now_ms());
        let derivation = self.context.catalogue.label(work.touch.derivation);
        if self.is_behind_horizon(record.head.created_ms) {
            tracing::warn!(event_id = %id, derivation, owner = removal.owner.for_log(), "a removal starts no cascade: it is too old, or its time is unknown or ahead of this clock");
            return Ok(());
        }
        let name = self.context.catalogue.name(work.touch.derivation).to_owned();
        let key = JobKey { derivation: name, id: id.clone() };
        let mut job = Job::waiting(&key, removal.clone(), now_ms, now_ms.saturating_add(self.context.settle_ms));
        job.is_running = !self.context.takes(ProtocolStep::Settle);
        let action = Action::Put(job.item(&self.context.schema.layout));
        let due = job.entry().put(&self.context.schema.layout);
        let put = Write { table: Table::Main, key: job.key, action, guard: None };
        let receipt = receipt_of(&self.context.schema.layout, &Key::new(format!("RECEIPT#{id}"), derivation), now_ms);
        let writes = if self.context.takes(ProtocolStep::StartOnce) { vec![receipt, put, due] } else { vec![put, due] };
        match touch::decided(self.context, writes, work).await? {
            TouchOutcome::Done => {
                tracing::info!(event_id = %id, derivation, owner = removal.owner.for_log(), "started a cascade");
            }
            TouchOutcome::Unheld(_) => {}
        }
        Ok(())
    }
}
