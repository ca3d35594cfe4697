//! Putting the mark of a possible loss when a batch comes late. See [`loss`](crate::account::loss).

use derive::{derivation::Derivation, family::Family, kind::shape::Shape, position::RecordAt, write::Table};
use store::{Outcome, Store};

use crate::{
    account::{
        Account,
        loss::{Mark, POSSIBLE_LOSS_MS},
    },
    backoff::{GaveUp, describe},
    batch::input::Batch,
    context::Context,
};

/// Puts marks of a possible loss.
pub(crate) struct LossWatch<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> LossWatch<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> LossWatch<'_, S> {
    /// Sees how late a batch comes, and puts the mark where others may be lost.
    pub(crate) async fn see_loss(&self, asks: bool, batch: &Batch<'_>, account: &mut Account) {
        let now_ms = self.context.clock.now_ms();
        let Some(oldest_ms) = account.created_ms.iter().flatten().min().copied() else { return };
        let late_ms = Some(now_ms.saturating_sub(oldest_ms)).filter(|late_ms| *late_ms >= POSSIBLE_LOSS_MS);
        let watch = self.context.watch.as_ref().filter(|_| late_ms.is_some());
        let is_first_backlog = watch.is_some_and(|watch| watch.is_first_backlog(oldest_ms));
        account.is_first_backlog = is_first_backlog;
        account.late_ms = late_ms.filter(|_| !is_first_backlog);
        let Some(late_ms) = late_ms.filter(|_| asks) else { return };
        let is_due = |mark: &Mark| self.context.loss_put.is_due(&mark.key(), now_ms);
        let is_kept = |mark: &Mark| !is_first_backlog || self.holds_cascades(mark);
        let due: Vec<Mark> = self.marks(late_ms, batch).filter(is_kept).filter(is_due).collect();
        if due.is_empty() {
            return;
        }
        let hours = late_ms / (3_600 * 1_000);
        tracing::warn!(late_ms, hours, shard = batch.lane.shard, "records may be lost: the stream is handled too late");
        for mark in due {
            let key = mark.key();
            match self.put_mark(mark, batch, account).await {
                Ok(()) => self.context.loss_put.is_put(key, now_ms),
                Err(error) => tracing::warn!(cause = %describe(&error), "the mark of a possible loss cannot be put"),
            }
        }
    }

    /// Does this mark hold a cascade that is declared? Such a mark is put for the first backlog too: a cascade deletes items
    /// of the application, and filling the table does not bring them back.
    fn holds_cascades(&self, mark: &Mark) -> bool {
        let is_cascade = |it: &Derivation| matches!(it.kind.shape(), Shape::Cascade(_));
        mark.is_of(Family::LevelTriggered) && self.context.catalogue.derivations().any(is_cascade)
    }

    /// The marks of the batch's lane, seen now: one for each family that the function runs.
    pub(crate) fn marks(&self, late_ms: u64, batch: &Batch<'_>) -> impl Iterator<Item = Mark> {
        let now_ms = self.context.clock.now_ms();
        self.context.families.iter().map(move |family| Mark::new(*family, &batch.lane, late_ms, now_ms))
    }

    /// Puts a mark, or says in one that is there that it was seen again.
    pub(crate) async fn put_mark(&self, seen: Mark, batch: &Batch<'_>, account: &mut Account) -> Result<(), GaveUp> {
        let keys = [seen.key()];
        let held = batch.patience.call(|| self.context.store.get(Table::Ledger, &keys)).await?;
        let held = held.first().map(|(_, item)| Mark::of(item));
        let (since_ms, late_ms) = held.map_or((seen.since_ms, 0), |held| (held.since_ms, held.late_ms));
        let mark = Mark { since_ms, late_ms: late_ms.max(seen.late_ms), ..seen };
        let write = mark.write(&self.context.schema.layout);
        if let Outcome::Done { units } = batch.patience.call(|| self.context.store.write(&write)).await? {
            account.commits.push(self.context.ledger_commit(&write.key, units, RecordAt(0)));
        }
        Ok(())
    }
}
