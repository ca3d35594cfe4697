//! Deletes counters of zero, so that a target without counted items leaves nothing behind.
//!
//! *Keeps true*: no count is lost, and none counts twice. A missing counter counts as zero, and the next count creates
//! it. The sweep deletes a counter's home or satellite only while its count and its sum are zero, it has no watermark, and
//! none has moved since it was read. It never deletes a home that has spread: the home decides where stream shards count.
//! It first removes watermarks that are too old to be needed; the next round deletes the counter.
//! The deletion requests a refresh of the display, which then does not differ.

use derive::{
    guard::Guard,
    schema::Schema,
    write::{Action, Table, Write},
};
use futures::{StreamExt, stream};
use keys::{
    counter::{COUNTER, CounterKey, REVISION, SPREAD, SUM, VALUE},
    item::Item,
    key::Key,
    value::is_zero,
};
use store::{Outcome, Store};

use crate::{
    backoff::{GaveUp, Patience},
    count::marked::pruning,
    ledger::watermarks::{HORIZON_MS, KEPT_MS, marks},
    protocol::ProtocolStep,
    reading::CALLS_AT_ONCE,
    sweep::TableSweep,
};

/// True if this is a counter's home or satellite with nothing counted.
pub(super) fn is_zero_counter(schema: &Schema, key: &Key, item: &Item) -> bool {
    CounterKey::parse(key).is_some()
        && schema.image(key, item).is_some_and(|image| image.is(COUNTER))
        && [VALUE, SUM].iter().all(|name| item.get(name).is_none_or(is_zero))
}

impl<S: Store> TableSweep<'_, S> {
    /// The write for a counter of zero; none while it has watermarks that may be needed.
    pub(super) fn collection(&self, key: &Key, item: &Item) -> Option<Write> {
        let now_ms = self.context.clock.now_ms();
        let takes = |step| self.context.takes(step);
        let kept_ms = if takes(ProtocolStep::PruneLate) { KEPT_MS } else { HORIZON_MS / 1_000 };
        if takes(ProtocolStep::ZeroWithoutMarks) && marks(item).next().is_some() {
            return pruning(key, item, kept_ms, now_ms);
        }
        if item.contains_key(SPREAD) && takes(ProtocolStep::HomeStays) {
            return None;
        }
        let revision = Some(item.get(REVISION)).filter(|_| takes(ProtocolStep::ZeroRevision));
        let mut guard = Guard::still_zero(revision);
        guard.asks.retain(|ask| takes(ProtocolStep::HomeStays) || ask.attribute() != Some(SPREAD));
        let guard = Some(guard);
        Some(Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard })
    }

    /// Sends these writes for counters of zero, and returns the number of deleted counters.
    pub(super) async fn collect_counters(&self, writes: Vec<Write>, patience: Patience<'_>) -> Result<usize, GaveUp> {
        let deletions = writes.into_iter().map(|write| async move {
            let outcome = patience.call(|| self.context.store.write(&write)).await;
            outcome.map(|outcome| (outcome, write.action == Action::Delete))
        });
        let mut n_collected = 0;
        let mut deletions = stream::iter(deletions).buffer_unordered(CALLS_AT_ONCE);
        while let Some(outcome) = deletions.next().await {
            n_collected += usize::from(matches!(outcome?, (Outcome::Done { .. }, true)));
        }
        Ok(n_collected)
    }
}
