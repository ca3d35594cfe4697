//! What a batch adds, by counter and in the order of the stream shard.

use std::collections::BTreeMap;

use derive::{
    coalesce::Adds,
    position::{DerivationAt, RecordAt},
};
use keys::{item::Item, key::Key};
use store::Store;

use crate::{
    count::{Counter, admission::CountEntry, session::ShardSession},
    ledger::watermarks::Sequence,
    protocol::ProtocolStep,
};

/// What one change adds to a counter or a bucket.
#[derive(Debug)]
pub(super) struct Todo {
    pub(super) position: RecordAt,
    /// Id of the event.
    pub(super) id: String,
    pub(super) sequence: Sequence,
    pub(super) adds: Vec<Adds>,
}

/// A counter or a bucket with what the batch adds to it, in the order of the shard.
#[derive(Debug)]
pub(super) struct CounterTodo {
    pub(super) key: Key,
    pub(super) derivation: DerivationAt,
    pub(super) todo: Vec<Todo>,
    pub(super) held: Option<Item>,
    /// May it have begun with what this batch adds? Then its target may show what other items of the counter came to.
    pub(super) may_begin: bool,
}

impl<S: Store> Counter<'_, S> {
    /// Sorts what a change adds by counters, or says why it is parked.
    pub(super) fn sort_out(
        &self,
        entry: &mut CountEntry,
        shard: &ShardSession,
        todo: &mut BTreeMap<Key, CounterTodo>,
    ) -> Result<(), String> {
        if let Some(cause) = entry.failed.take() {
            return Err(cause);
        }
        let Some(sequence) = Sequence::parse(&entry.change.sequence_number) else {
            return Err("the record has no sequence number that can be read".to_owned());
        };
        for amount in std::mem::take(&mut entry.change.amounts) {
            if shard.exceptions.excepts(&entry.change.id, Some(&amount.item)) {
                continue;
            }
            let counter = todo.entry(amount.item.clone()).or_insert_with(|| CounterTodo {
                key: amount.item,
                derivation: amount.derivation,
                todo: Vec::new(),
                held: None,
                may_begin: true,
            });
            match counter.todo.iter_mut().find(|todo| todo.sequence == sequence && todo.id == entry.change.id) {
                Some(todo) if self.context.takes(ProtocolStep::OnceABatch) => todo.adds.push(amount.adds),
                _ => {
                    let (position, id) = (entry.change.position, entry.change.id.clone());
                    counter.todo.push(Todo { position, id, sequence, adds: vec![amount.adds] });
                }
            }
        }
        Ok(())
    }
}
