//! The note that something is to be searched for again.

use std::collections::BTreeSet;

use derive::write::{Action, Table, Update, Write};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;

use crate::{attribute::s, fan_out::progress::id_of, ledger::ledger_item, sort_key::checksum};

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const DERIVATIONS: &str = "Derivations";

/// Partitions that notes are spread over. Stored in keys, so it is stable.
pub(crate) const PARTITIONS: u32 = 8;

/// What is noted of an item within this part of the time that an index may lag is one note.
const TOGETHER: u64 = 16;

/// Digits of a time in milliseconds, as it stands in a note's key.
pub(crate) const DIGITS: usize = 15;

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
        let due_at_ms = (now_ms.saturating_add(lag_ms) / together_ms).saturating_add(1).saturating_mul(together_ms);
        let key = Key::new(partition(checksum(&id) % PARTITIONS), format!("{due_at_ms:0DIGITS$}#{id}"));
        let [pk, sk] =
            [(ITEM_PK, &self.item.pk), (ITEM_SK, &self.item.sk)].map(|(name, text)| (name.to_owned(), s(text)));
        let names = AttributeValue::Ss(self.derivations.iter().cloned().collect());
        let add = Item::from([(DERIVATIONS.to_owned(), names)]);
        let action = Action::Update(Update { set: Item::from([pk, sk]), add, ..Update::default() });
        Write { table: Table::Ledger, key, action, guard: None }
    }

    pub(crate) fn of(item: &Item) -> Option<Self> {
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

/// Sort key of a partition's mark, behind those of all notes. Stored, so it is stable.
pub(crate) const MARK: &str = "~";

/// Attribute of a mark: sort key of the last note that was begun. Stored, so it is stable.
pub(crate) const LAST: &str = "Last";

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
pub(crate) fn partition(number: u32) -> String {
    format!("AGAIN#{number:02}")
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
