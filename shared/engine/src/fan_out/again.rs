//! Making a search of an index again, when the index has had time.
//!
//! *Keeps true*: whatever was found, or not found, by an index that may lag, is looked for once more after it has had
//! time to follow. An item that was written before a source changed and that the index did not show then, is shown
//! then; one that was written after looks at the source itself.
//!
//! A search leaves a *note* in the ledger, with the key it starts from and the derivations. Notes stand in the order in
//! which they are due, so that a sweep reads those alone; one that is done is deleted. Several sweeps at once do no
//! harm, and neither does a note that is done twice.
//!
//! A sweep that dies on a note, by time or memory, would die on it each time, and never come to those behind it. So it
//! *marks* what it is about to do; what it finds marked is given to jobs, whose records are parked when they are deadly.

use std::collections::BTreeSet;

use derive::{
    effect::Ground,
    query::{Query, SortKeys},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Store, StoreError};

use crate::{
    account::{Account, undone},
    backoff::{Patience, describe},
    batch::{Batch, Engine, Occasion},
    bells::Bells,
    event::Lane,
    ground::Touch,
    job::s,
    ledger::ledger_item,
    own_image::OwnImages,
    protocol::ProtocolStep,
};

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const DERIVATIONS: &str = "Derivations";

/// Sort key of a partition's mark, behind those of all notes. Stored, so it is stable.
const MARK: &str = "~";

/// Attribute of a mark: sort key of the last note that was begun. Stored, so it is stable.
const LAST: &str = "Last";

/// Partitions that notes are spread over. Stored in keys, so it is stable.
const PARTITIONS: u32 = 8;

/// Digits of a time in milliseconds, as it stands in a note's key.
const DIGITS: usize = 15;

/// Notes that are read together.
const NOTES_AT_ONCE: u32 = 50;

/// What a run of searches came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Notes that were done.
    pub n_done: usize,
    /// Notes that are due and could not be done now.
    pub n_left: usize,
    /// Items that were written.
    pub n_written: usize,
}

/// A note that something is to be searched for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The source, or the item that looked for another.
    pub(crate) item: Key,
    /// Names of the derivations.
    pub(crate) derivations: BTreeSet<String>,
}

impl Note {
    /// The write that notes it. `nonce` tells apart those of a millisecond.
    pub(crate) fn write(&self, layout: &Layout, due_at_ms: u64, nonce: u64) -> Write {
        let number = u32::try_from(nonce % u64::from(PARTITIONS)).unwrap_or(0);
        let key = Key::new(partition(number), format!("{due_at_ms:0DIGITS$}-{nonce}"));
        let names = AttributeValue::L(self.derivations.iter().map(|name| s(name)).collect());
        let attributes = [(ITEM_PK, s(&self.item.pk)), (ITEM_SK, s(&self.item.sk)), (DERIVATIONS, names)];
        let put = Action::Put(ledger_item(layout, &key, attributes));
        Write { table: Table::Ledger, key, action: put, guard: None }
    }

    fn of(item: &Item) -> Option<Self> {
        let names = match item.get(DERIVATIONS) {
            Some(AttributeValue::L(names)) => names.as_slice(),
            _ => &[],
        };
        let names = names.iter().filter_map(|name| match name {
            AttributeValue::S(name) => Some(name.clone()),
            _ => None,
        });
        Some(Self { item: Key::new(text(item, ITEM_PK)?, text(item, ITEM_SK)?), derivations: names.collect() })
    }
}

/// The write that marks notes as begun, up to this one.
pub(crate) fn marked_to(layout: &Layout, mark: &Key, last: &str) -> Write {
    let put = Action::Put(ledger_item(layout, mark, [(LAST, s(last))]));
    Write { table: Table::Ledger, key: mark.clone(), action: put, guard: None }
}

/// Key of the mark of a partition, for a sample.
pub(crate) fn mark() -> Key {
    Key::new(partition(0), MARK)
}

/// Partition key of some of the notes. Stored, so it is stable.
fn partition(number: u32) -> String {
    format!("AGAIN#{number:02}")
}

impl<S: Store> Engine<S> {
    /// The write that notes that this is to be searched for again, where it is.
    pub(crate) fn noted(&self, item: &Key, derivations: impl IntoIterator<Item = usize>) -> Option<Write> {
        let names = derivations.into_iter().map(|at| self.catalogue.name(at).to_owned());
        let note = Note { item: item.clone(), derivations: names.collect() };
        let due_at_ms = self.clock.now_ms().saturating_add(self.fan_out.index_lag_ms);
        let is_noted = self.takes(ProtocolStep::SearchAgain) && !note.derivations.is_empty();
        is_noted.then(|| note.write(&self.schema.layout, due_at_ms, self.clock.chance(u64::from(u32::MAX))))
    }

    /// Makes the searches again that are due, until this time in milliseconds since the epoch; what is not reached is
    /// for the next run.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the notes cannot be read or deleted.
    pub async fn search_again(&self, deadline_ms: u64) -> Result<Again, StoreError> {
        let patience = Patience { clock: self.clock.as_ref(), deadline_ms };
        let mut all = Again::default();
        for number in 0..PARTITIONS {
            let mark = Key::new(partition(number), MARK);
            let marked = self.store.get(Table::Ledger, std::slice::from_ref(&mark)).await?.into_iter().next();
            let deadly = marked.as_ref().and_then(|(_, item)| text(item, LAST)).map(str::to_owned);
            let due = SortKeys::Between("0".to_owned(), format!("{:0DIGITS$}~", self.clock.now_ms()));
            let due = Query { limit: Some(NOTES_AT_ONCE), ..Query::of(None, partition(number), due) };
            let mut after = None;
            while !patience.is_over() {
                let page = self.store.query(Table::Ledger, &due, after).await?;
                let notes: Vec<Key> = page.items.iter().filter_map(|item| self.schema.layout.key(item)).collect();
                if let Some(last) = notes.last() {
                    self.store.write(&marked_to(&self.schema.layout, &mark, &last.sk)).await?;
                }
                for (key, item) in notes.into_iter().zip(&page.items) {
                    let is_deadly = deadly.as_ref().is_some_and(|deadly| key.sk <= *deadly);
                    if !patience.is_over() {
                        self.do_again(key, item, is_deadly, patience, &mut all).await?;
                    }
                }
                let unmark = Write { table: Table::Ledger, key: mark.clone(), action: Action::Delete, guard: None };
                if !page.items.is_empty() {
                    self.store.write(&unmark).await?;
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// Is there anything that is to be searched for again, due or not?
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the notes cannot be read.
    pub async fn has_notes(&self) -> Result<bool, StoreError> {
        for number in 0..PARTITIONS {
            let all = SortKeys::Between("0".to_owned(), "9".repeat(DIGITS + 1));
            let any = Query { limit: Some(1), ..Query::of(None, partition(number), all) };
            if !self.store.query(Table::Ledger, &any, None).await?.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn do_again(
        &self,
        key: Key,
        item: &Item,
        is_deadly: bool,
        patience: Patience<'_>,
        all: &mut Again,
    ) -> Result<(), StoreError> {
        let mut account = Account::default();
        if let Some(note) = Note::of(item) {
            let batch = Batch { records: Vec::new(), lane: Lane::default(), patience, occasion: Occasion::Again };
            if is_deadly {
                tracing::warn!(item = %note.item, "a sweep died on what is to be searched for again, so jobs do it");
                self.give_to_jobs(&note, &batch, &mut account).await;
            } else {
                self.search_for(&note, &batch, &mut account).await;
            }
        }
        all.n_written += account.commits.iter().filter(|commit| commit.table == Table::Main).count();
        if let Some(why) = account.undone.values().next() {
            tracing::warn!(item = %key, why, "what an index may have missed is searched for again at the next run");
            all.n_left += 1;
            return Ok(());
        }
        all.n_done += 1;
        let delete = Write { table: Table::Ledger, key, action: Action::Delete, guard: None };
        self.store.write(&delete).await.map(drop)
    }

    async fn give_to_jobs(&self, note: &Note, batch: &Batch<'_>, account: &mut Account) {
        for derivation in note.derivations.iter().filter_map(|name| self.catalogue.position(name)) {
            if let Err(error) = self.fan_out(derivation, &note.item, batch.patience).await {
                undone(account, [0], &describe(&error));
            }
        }
    }

    async fn search_for(&self, note: &Note, batch: &Batch<'_>, account: &mut Account) {
        let (mut bells, mut touches) = (Bells::default(), Vec::new());
        for derivation in note.derivations.iter().filter_map(|name| self.catalogue.position(name)) {
            if let Some(find) = self.search_of(derivation, &note.item) {
                bells.find(find, derivation, &note.item, 0);
            }
            if self.catalogue.derivation(derivation).is_some_and(|derivation| derivation.kind.rekey().is_some()) {
                touches.push(Touch { position: 0, derivation, effect: Ground::Place(note.item.clone()) });
            }
        }
        self.search(&mut bells, batch, account).await;
        Box::pin(self.look_at_rung(bells, &OwnImages::of(std::iter::empty(), false), batch, account)).await;
        Box::pin(self.touch(touches, batch, account)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_was_written() {
        let layout = Layout {
            pk: "pk".into(),
            sk: "sk".into(),
            entity_type: Some("Type".into()),
            time_to_live: None,
            indexes: Vec::new(),
        };
        let names = ["comment-author", "review-author"].map(str::to_owned);
        let note = Note { item: Key::new("USER#ann", "PROFILE"), derivations: names.into() };
        let write = note.write(&layout, 7, 9);
        let Action::Put(item) = &write.action else { panic!("{write:?}") };
        assert_eq!((Note::of(item), write.key), (Some(note), Key::new("AGAIN#01", "000000000000007-9")));
    }
}
