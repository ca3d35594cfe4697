//! What an application adds to an item while it moves goes with it.
//!
//! An item moves only while every attribute that was read is unchanged, but no condition can ask for attributes that were
//! not there. So a move leaves a note of what it took along. The record of the old key's removal shows what the item
//! held in the end; what the note does not name was added in between, and is set where the new item lacks it. The note is
//! taken with it, in one transaction, so that this happens once.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::Images,
    guard::Guard,
    kinds::rekey::Rekey,
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{
    Stop, Touched, Work,
    job::{n, s},
    place::Found,
};
use crate::{
    batch::Engine,
    ledger::{EXPIRES_AT, expires_at, ledger_item},
    listing::fitted,
    protocol::ProtocolStep,
    record::decode,
};

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const NAMES: &str = "Names";
const MOVED_AT: &str = "MovedAt";

/// A removal that is older than the note by more is not the note's, in milliseconds: a record's time is rounded down, at
/// worst to the minute, and clocks differ.
const OLDER_MS: u64 = 2 * 60 * 1_000;

/// How often it is tried while an application writes to the new item.
const ROUNDS_MAX: usize = 8;

/// The write that notes what a move takes along.
pub(super) fn moved_note(layout: &Layout, old: &Key, new: &Key, item: &Item, now_ms: u64) -> Write {
    let key = note_key(old);
    let names = item.keys().map(s).collect();
    let attributes = [
        (ITEM_PK, s(&new.pk)),
        (ITEM_SK, s(&new.sk)),
        (NAMES, AttributeValue::L(names)),
        (MOVED_AT, n(now_ms)),
        (EXPIRES_AT, expires_at(now_ms)),
    ];
    let put = Action::Put(ledger_item(layout, &key, attributes));
    Write { table: Table::Ledger, key, action: put, guard: None }
}

/// Key of the note of an item that left a key. Stored, so it is stable.
fn note_key(old: &Key) -> Key {
    Key::new(fitted(format!("MOVED#{}", old.pk)), fitted(old.sk.clone()))
}

impl<S: Store> Engine<S> {
    /// Sets on an item that moved what was added to it before it did.
    pub(super) async fn merge(&self, old: &Key, rekey: &Rekey, work: &mut Work<'_>) -> Result<(), Stop> {
        let Some(note) = self.item_now(Table::Ledger, &note_key(old), work).await? else { return Ok(()) };
        let record = work.batch.records.get(work.touch.position);
        let change = record.and_then(|record| decode(&self.schema.layout, record).ok());
        let Some((created_ms, Images::Removed(image))) = change.map(|change| (change.created_ms, change.images)) else {
            return Ok(());
        };
        let moved_at = match note.get(MOVED_AT) {
            Some(AttributeValue::N(text)) => text.parse::<u64>().unwrap_or(0),
            _ => 0,
        };
        if created_ms.is_none_or(|created_ms| created_ms.saturating_add(OLDER_MS) < moved_at) {
            return Ok(());
        }
        let added = self.added(&image, &note, rekey);
        for _ in 0..ROUNDS_MAX {
            let target = self.new_place(&note, rekey, old, work).await?;
            let mut writes = vec![self.taking(&note, old)];
            writes.extend(target.and_then(|(key, item)| self.setting(key, &item, &added)));
            match self.decided(writes, work).await? {
                Touched::Unheld(at) if !at.contains(&0) => {}
                Touched::Done | Touched::Unheld(_) => return Ok(()),
            }
        }
        Err(Stop::NotNow("other writers were at the item all the time".to_owned()))
    }

    /// The attributes of the item as it left its key that the move did not take along.
    fn added(&self, image: &Item, note: &Item, rekey: &Rekey) -> Item {
        let taken: BTreeSet<&str> = match note.get(NAMES) {
            Some(AttributeValue::L(names)) => names
                .iter()
                .filter_map(|name| match name {
                    AttributeValue::S(name) => Some(name.as_str()),
                    _ => None,
                })
                .collect(),
            _ => BTreeSet::new(),
        };
        let derived = self.schema.entity(&rekey.entity).map(|definition| definition.derived_attributes.as_slice());
        let is_added = |name: &str| {
            !taken.contains(name)
                && !self.schema.layout.is_key(name)
                && !derived.unwrap_or_default().iter().any(|derived| derived == name)
        };
        let added = image.iter().filter(|(name, _)| is_added(name) && self.takes(ProtocolStep::MergeAdded));
        added.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// The item where it is now: where the note says, or where it went from there.
    async fn new_place(
        &self,
        note: &Item,
        rekey: &Rekey,
        old: &Key,
        work: &Work<'_>,
    ) -> Result<Option<(Key, Item)>, Stop> {
        let (Some(pk), Some(sk)) = (text(note, ITEM_PK), text(note, ITEM_SK)) else { return Ok(None) };
        let noted = Key::new(pk, sk);
        if let Some(item) = self.item_now(Table::Main, &noted, work).await? {
            return Ok(Some((noted, item)));
        }
        let fields = self.schema.entity(&rekey.entity).and_then(|definition| definition.key.parse_key(old));
        let Some(id) = fields.and_then(|fields| rekey.id_of(&fields)) else { return Ok(None) };
        match self.by_id(&old.pk, &id, rekey, work).await? {
            Found::One(key, _) => Ok(self.item_now(Table::Main, &key, work).await?.map(|item| (key, item))),
            Found::None | Found::Several => Ok(None),
        }
    }

    fn taking(&self, note: &Item, old: &Key) -> Write {
        let guard = Guard::Unmoved { attribute: MOVED_AT.to_owned(), value: note.get(MOVED_AT).cloned() };
        Write { table: Table::Ledger, key: note_key(old), action: Action::Delete, guard: Some(guard) }
    }

    /// The write that sets what the item lacks, as long as it lacks it; `None` where it lacks nothing.
    fn setting(&self, key: Key, item: &Item, added: &Item) -> Option<Write> {
        let lacking = added.iter().filter(|(name, _)| item.get(name).is_none());
        let set: Item = lacking.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        if set.is_empty() {
            return None;
        }
        let mut read: BTreeMap<String, Option<AttributeValue>> =
            set.keys().map(|name| (name.to_owned(), None)).collect();
        // An attribute that is there asks that the item is.
        let sk = &self.schema.layout.sk;
        read.insert(sk.clone(), item.get(sk).cloned());
        let guard = Some(Guard::SourceAsRead(read));
        Some(Write { table: Table::Main, key, action: Action::Update(Update::set(set)), guard })
    }
}
