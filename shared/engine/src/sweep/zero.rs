//! Counters of zero: collected, so that a target that nobody counts for any more leaves nothing behind.
//!
//! *Keeps true*: no count is lost. A counter that is not there counts zero, and the next count makes it; and one goes
//! only while its count and its sum are zero. Its removal rings the display, which then finds what it showed.

use derive::{
    guard::Guard,
    schema::Schema,
    write::{Action, Table, Write},
};
use futures::{StreamExt, stream};
use keys::{
    counter::{COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::is_zero,
};
use store::{Outcome, Store};

use crate::{
    backoff::{GaveUp, Patience},
    look::reading::CALLS_AT_ONCE,
    sweep::TableSweep,
};

/// Is this a counter, or a shard of one, that counts nothing?
pub(super) fn is_zero_counter(schema: &Schema, key: &Key, item: &Item) -> bool {
    CounterKey::parse(key).is_some()
        && schema.image(key, item).is_some_and(|image| image.is(COUNTER))
        && [VALUE, SUM].iter().all(|name| item.get(name).is_none_or(is_zero))
}

impl<S: Store> TableSweep<'_, S> {
    /// Deletes those of these counters that are still zero, and says how many.
    pub(super) async fn collect_counters(&self, counters: Vec<Key>, patience: Patience<'_>) -> Result<usize, GaveUp> {
        let deletions = counters.into_iter().map(|key| async move {
            let guard = Some(Guard::still_zero());
            let write = Write { table: Table::Main, key, action: Action::Delete, guard };
            patience.call(|| self.context.store.write(&write)).await
        });
        let mut n_collected = 0;
        let mut deletions = stream::iter(deletions).buffer_unordered(CALLS_AT_ONCE);
        while let Some(outcome) = deletions.next().await {
            n_collected += usize::from(matches!(outcome?, Outcome::Done { .. }));
        }
        Ok(n_collected)
    }
}
