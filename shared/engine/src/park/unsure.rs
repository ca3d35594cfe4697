//! Redrive of what counters may count already, since an invocation may have counted it before it was parked.
//!
//! *Keeps true*: what is redriven counts once. What cannot be decided is listed for a recount, and not guessed at. What it
//! was counted in is looked at again, since the invocation may have died before it showed the count.

use derive::{coalesce::Counted, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    account::Account,
    backoff::{GaveUp, Patience, describe},
    batch::input::Batch,
    count::{Counter, target::Target},
    ledger::watermarks::{HORIZON_MS, Sequence, has_passed, mark_name, mark_of},
    look::reading::ItemReader,
    park::redrive::Redriver,
    protocol::ProtocolStep,
};

impl<S: Store> Redriver<'_, S> {
    /// Leaves out of changes what their counters may count already, and lists it for a recount. A counter does not count a
    /// change while its watermark is below the change; above, another change may have moved it there. A counter without the
    /// watermark does not count a change that is so young that no watermark of it can have been taken away.
    pub(super) async fn leave_unsure(
        &self,
        changes: &mut [Counted],
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<(), String> {
        let mark = mark_name(&batch.lane).unwrap_or_default();
        let age_ms = batch.age_ms(self.context.clock.now_ms());
        let is_young = age_ms.is_some_and(|age_ms| age_ms < HORIZON_MS);
        let is_young = is_young || !self.context.takes(ProtocolStep::YoungWithoutMark);
        for change in changes {
            let (mut sure, mut unsure) = (Vec::new(), Vec::new());
            for amount in std::mem::take(&mut change.amounts) {
                let held = self.held_shards(&amount.item, batch.patience).await.map_err(|error| describe(&error))?;
                let sequence = Sequence::parse(&change.sequence_number);
                let is_passed = |mark: &[u8]| sequence.is_none_or(|sequence| has_passed(mark, sequence));
                let marks: Vec<&[u8]> = held.iter().filter_map(|item| mark_of(item, &mark)).collect();
                let is_unsure = if marks.is_empty() { !is_young } else { marks.into_iter().any(is_passed) };
                if !is_unsure {
                    sure.push(amount);
                    continue;
                }
                let shown = Counter::new(self.context).leave_to_their_records(&held, batch.patience).await;
                shown.map_err(|error| describe(&error))?;
                unsure.push(amount);
            }
            change.amounts = sure;
            if !unsure.is_empty() {
                let why = "it was parked while an invocation may have counted it, and its counters' watermarks have passed it or are gone";
                let unsure = Counted { amounts: unsure, ..change.clone() };
                Counter::new(self.context).refuse(&unsure, why, batch.patience, account).await?;
            }
        }
        Ok(())
    }

    /// All shards of a counter, or a bucket. At most one of them has the watermark of a given stream shard.
    async fn held_shards(&self, key: &Key, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
        let Some(counter) = CounterKey::parse(key) else {
            let keys = [key.clone()];
            let held = patience.call(|| self.context.store.get(Table::Main, &keys)).await?;
            return Ok(held.into_iter().map(|(_, item)| item).collect());
        };
        let target = Target { derivation: counter.derivation, item: counter.target };
        Ok(ItemReader::new(self.context).counters_of(&target, patience).await?.into_values().collect())
    }
}
