//! Making a search of an index again, when the index has had time.
//!
//! *Keeps true*: whatever was found, or not found, by an index that may lag, is looked for once more after it has had
//! time to follow. An item that was written before a source changed and that the index did not show then, is shown
//! then; one that was written after looks at the source itself.
//!
//! A search leaves a *note* in the ledger, with the key it starts from and the derivations. Notes stand in the order in
//! which they are due, so that a sweep reads those alone; one that is done is deleted. Several sweeps at once do no
//! harm, and neither does a note that is done twice. What starts from one key about the same time is one note: it is
//! due a little later than all of them, so nobody adds to one that a sweep may be at.
//!
//! A sweep that dies on a note, by time or memory, would die on it each time, and never come to those behind it. So it
//! *marks* what it is about to do; what it finds marked is given to jobs, whose records are parked when they are deadly.

use std::collections::BTreeSet;

use derive::{
    query::{Query, SortKeys},
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{checksum, id_of};
use crate::{
    account::{Account, undone},
    attribute::s,
    backoff::{GaveUp, Patience, describe},
    batch::{Batch, Engine},
    ledger::ledger_item,
    look::bells::Bells,
    look::own_image::OwnImages,
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

/// What is noted of an item within this part of the time that an index may lag is one note.
const TOGETHER: u64 = 16;

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
    /// The source.
    pub(crate) item: Key,
    /// Names of the derivations.
    pub(crate) derivations: BTreeSet<String>,
}

impl Note {
    /// The write that notes it, or adds it to what is noted of the item about this time.
    pub(crate) fn write(&self, now_ms: u64, lag_ms: u64) -> Write {
        let id = id_of(&self.item);
        let together_ms = (lag_ms / TOGETHER).max(1);
        let due_at_ms = ((now_ms.saturating_add(lag_ms)) / together_ms + 1).saturating_mul(together_ms);
        let key = Key::new(partition(checksum(&id) % PARTITIONS), format!("{due_at_ms:0DIGITS$}#{id}"));
        let [pk, sk] =
            [(ITEM_PK, &self.item.pk), (ITEM_SK, &self.item.sk)].map(|(name, text)| (name.to_owned(), s(text)));
        let names = AttributeValue::Ss(self.derivations.iter().cloned().collect());
        let add = Item::from([(DERIVATIONS.to_owned(), names)]);
        let action = Action::Update(Update { set: Item::from([pk, sk]), add, ..Update::default() });
        Write { table: Table::Ledger, key, action, guard: None }
    }

    fn of(item: &Item) -> Option<Self> {
        let names = match item.get(DERIVATIONS) {
            Some(AttributeValue::Ss(names)) => names.as_slice(),
            _ => &[],
        };
        Some(Self {
            item: Key::new(text(item, ITEM_PK)?, text(item, ITEM_SK)?),
            derivations: names.iter().cloned().collect(),
        })
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
        let lags = self.fan_out.index_lag_ms > 0 && self.takes(ProtocolStep::SearchAgain);
        let is_noted = lags && !note.derivations.is_empty();
        is_noted.then(|| note.write(self.clock.now_ms(), self.fan_out.index_lag_ms))
    }

    /// Makes the searches again that are due, until this time in milliseconds since the epoch; what is not reached is
    /// for the next run.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the notes cannot be read or deleted.
    pub async fn search_again(&self, deadline_ms: u64) -> Result<Again, GaveUp> {
        let patience = Patience { clock: self.clock.as_ref(), deadline_ms };
        let mut all = Again::default();
        for number in 0..PARTITIONS {
            let mark = Key::new(partition(number), MARK);
            let marks = std::slice::from_ref(&mark);
            let marked = patience.call(|| self.store.get(Table::Ledger, marks)).await?.into_iter().next();
            let deadly = marked.as_ref().and_then(|(_, item)| text(item, LAST)).map(str::to_owned);
            let due = SortKeys::Between("0".to_owned(), format!("{:0DIGITS$}~", self.clock.now_ms()));
            let due = Query { limit: Some(NOTES_AT_ONCE), ..Query::of(None, partition(number), due) };
            let mut after = None;
            while !patience.is_over() {
                let page = patience.call(|| self.store.query(Table::Ledger, &due, after.clone())).await?;
                let notes: Vec<Key> = page.items.iter().filter_map(|item| self.schema.layout.key(item)).collect();
                if let Some(last) = notes.last() {
                    let begun = marked_to(&self.schema.layout, &mark, &last.sk);
                    patience.call(|| self.store.write(&begun)).await?;
                }
                for (key, item) in notes.into_iter().zip(&page.items) {
                    let is_deadly = deadly.as_ref().is_some_and(|deadly| key.sk <= *deadly);
                    if !patience.is_over() {
                        self.do_again(key, item, is_deadly, patience, &mut all).await?;
                    }
                }
                let unmark = Write { table: Table::Ledger, key: mark.clone(), action: Action::Delete, guard: None };
                if !page.items.is_empty() {
                    patience.call(|| self.store.write(&unmark)).await?;
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// The items from which is still to be searched again.
    pub(crate) async fn noted_items(&self, patience: Patience<'_>) -> Result<Vec<Key>, GaveUp> {
        let mut items = Vec::new();
        for number in 0..PARTITIONS {
            let notes = Query::prefix(None, partition(number), "");
            let notes = self.pages_of(Table::Ledger, &notes, patience).await?;
            items.extend(notes.iter().filter_map(Note::of).map(|note| note.item));
        }
        Ok(items)
    }

    async fn do_again(
        &self,
        key: Key,
        item: &Item,
        is_deadly: bool,
        patience: Patience<'_>,
        all: &mut Again,
    ) -> Result<(), GaveUp> {
        let mut account = Account::default();
        if let Some(note) = Note::of(item) {
            let batch = Batch::without_records(patience);
            if is_deadly {
                tracing::warn!(
                    item = note.item.for_log(),
                    "a sweep died on what is to be searched for again, so jobs do it"
                );
                self.give_to_jobs(&note, &batch, &mut account).await;
            } else {
                self.search_for(&note, &batch, &mut account).await;
            }
        }
        all.n_written += account.commits.iter().filter(|commit| commit.table == Table::Main).count();
        if let Some(why) = account.undone.values().next() {
            tracing::warn!(
                item = key.for_log(),
                why,
                "what an index may have missed is searched for again at the next run"
            );
            all.n_left += 1;
            return Ok(());
        }
        all.n_done += 1;
        let delete = Write { table: Table::Ledger, key, action: Action::Delete, guard: None };
        patience.call(|| self.store.write(&delete)).await.map(drop)
    }

    async fn give_to_jobs(&self, note: &Note, batch: &Batch<'_>, account: &mut Account) {
        for derivation in note.derivations.iter().filter_map(|name| self.catalogue.position(name)) {
            if let Err(error) = self.fan_out(derivation, &note.item, batch.patience).await {
                undone(account, [0], &describe(&error));
            }
        }
    }

    async fn search_for(&self, note: &Note, batch: &Batch<'_>, account: &mut Account) {
        let mut bells = Bells::default();
        for derivation in note.derivations.iter().filter_map(|name| self.catalogue.position(name)) {
            if let Some(find) = self.search_of(derivation, &note.item) {
                bells.find(find, derivation, &note.item, 0);
            }
        }
        self.search(&mut bells, batch, account).await;
        Box::pin(self.look_at_rung(bells, &OwnImages::of(std::iter::empty(), false), batch, account)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_was_written() {
        let names = ["comment-author", "review-author"].map(str::to_owned);
        let note = Note { item: Key::new("USER#ann", "PROFILE"), derivations: names.into() };
        let write = note.write(5, 16_000);
        let Action::Update(update) = &write.action else { panic!("{write:?}") };
        let item: Item = update.set.iter().chain(update.add.iter()).map(|(n, v)| (n.to_owned(), v.clone())).collect();
        assert_eq!(Note::of(&item), Some(note));
        assert_eq!(write.key, Key::new("AGAIN#01", "000000000017000#8:USER#ann|PROFILE"));
    }

    #[test]
    fn notes_of_about_a_time_are_one_and_due_after_each_of_them_has_waited() {
        let note = Note { item: Key::new("USER#ann", "PROFILE"), derivations: BTreeSet::new() };
        let at = |now_ms| note.write(now_ms, 16_000).key.sk;
        assert_eq!(at(0), at(999));
        assert!(at(999).starts_with("000000000017000#") && at(1_000).starts_with("000000000018000#"));
        assert!(note.write(5, 0).key.sk.starts_with("000000000000006#"), "nobody adds to what is due");
    }
}
