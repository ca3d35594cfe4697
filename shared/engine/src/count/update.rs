//! The updates of a counter under watermarks: what adds and moves the watermark, and what removes old watermarks.

use std::collections::BTreeSet;

use derive::{
    coalesce::item_write,
    guard::{Ask, Guard, Purpose},
    position::RecordAt,
    write::{Action, Table, Update, Write},
};
use keys::{
    counter::{REVISION, SHOWN},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Store, Updated};

use crate::{
    account::Account,
    attribute::n,
    batch::input::Batch,
    count::{Counter, todo::CounterTodo},
    ledger::watermarks::{HORIZON_MS, KEPT_MS, older_than},
    protocol::ProtocolStep,
};

impl<S: Store> Counter<'_, S> {
    /// The update of a counter that adds its first changes and moves the watermark to the last of them.
    pub(super) fn marked_write(&self, counter: &CounterTodo, n_part: usize, mark: &str) -> Option<Write> {
        let part = counter.todo.get(..n_part)?;
        let (first, last) = (part.first()?, part.last()?);
        let amounts = part.iter().flat_map(|todo| &todo.adds);
        let mut write = item_write(&self.context.schema, &counter.key, amounts, counter.held.as_ref())?;
        let Action::Update(update) = &mut write.action else { return None };
        let is_nothing = update.add.values().all(keys::value::is_zero);
        if is_nothing && !self.context.takes(ProtocolStep::NetZeroProof) {
            return None;
        }
        let bound = first.sequence.bound(self.context.takes(ProtocolStep::BelowFirst));
        let mut asks = vec![Ask::LacksOrBelow(mark.to_owned(), bound)];
        asks.extend(write.guard.into_iter().flat_map(|guard| guard.asks));
        update.set.insert(mark.to_owned(), last.sequence.mark(self.context.clock.now_ms()));
        // A counter that begins anew is above what was shown before.
        update.count_from.insert(REVISION.to_owned(), n(self.context.clock.now_ms()));
        if self.shows_itself(counter) {
            update.set.insert(SHOWN.to_owned(), AttributeValue::Bool(true));
        } else if self.is_shown(counter) {
            update.remove.insert(SHOWN.to_owned());
        }
        write.guard = Some(Guard { purpose: Purpose::Watermark, asks });
        Some(write)
    }

    /// Removes watermarks that are too old to be asked for.
    pub(super) async fn prune(
        &self,
        counter: &CounterTodo,
        item: &Item,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let age_ms = if self.context.takes(ProtocolStep::PruneLate) { KEPT_MS } else { HORIZON_MS / 1_000 };
        let Some(write) = pruning(&counter.key, item, age_ms, self.context.clock.now_ms()) else { return };
        // What is not removed now is removed after the next update.
        if let Ok(Updated::Done { units, .. }) = batch.patience.in_time(self.context.store.update(&write)).await {
            self.commit_counter(counter, None, units, causes, account);
        }
    }
}

/// The write that removes a counter's watermarks of this age, in milliseconds; `None` when there are none.
pub(crate) fn pruning(key: &Key, item: &Item, age_ms: u64, now_ms: u64) -> Option<Write> {
    let old: BTreeSet<String> = older_than(item, age_ms, now_ms).into_iter().map(str::to_owned).collect();
    if old.is_empty() {
        return None;
    }
    let seen = old.iter().map(|name| (name.clone(), item.get(name).cloned()));
    let guard = Some(Guard::as_read(Purpose::OldWatermark, seen));
    let action = Action::Update(Update { remove: old, ..Update::default() });
    Some(Write { table: Table::Main, key: key.clone(), action, guard })
}
