//! What an application adds to an item while it moves goes with it.
//!
//! An item moves only while every attribute that was read, or that is declared, is unchanged; but no condition can ask
//! for attributes of which nobody knows. So a move leaves a note of what it took along. The record of the old key's
//! removal shows what the item held in the end; what the note does not name was added in between, and is set where the
//! new item lacks it.
//!
//! A removal has its own note: the oldest one of the key of which it holds all that was taken, with the same values, and
//! of what a move asks for nothing else, and that no removal had before. That a removal was looked at is a receipt, which
//! is taken with the note in one transaction; so a removal that comes again, or one of the application's own, does not
//! have the note of a later move.
//! Of one of the application's own that held the same nobody can tell that it is not the move's; so another may have a
//! note that one had: what was added is rather given to an item that somebody removed it from than lost.
//! Notes stay until they expire: they lead from key to key to where an item is that moved on meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::Images,
    guard::Guard,
    kinds::rekey::Rekey,
    query::Query,
    write::{Action, Table, Update, Write},
};
use flate2::Crc;
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
    number,
};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{Stop, Touched, Work};
use crate::{
    attribute::{n, number, s},
    batch::Engine,
    ledger::{EXPIRES_AT, expires_at, ledger_item, receipts::receipt_of},
    listing::fitted,
    protocol::ProtocolStep,
};

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const NAMES: &str = "Names";
const TAKEN: &str = "Taken";
const MOVED_AT: &str = "MovedAt";
const HAD: &str = "Had";

/// A removal that is older than the note by more is not the note's, in milliseconds: a record's time is rounded down, at
/// worst to the minute, and clocks differ.
const OLDER_MS: u64 = 2 * 60 * 1_000;

/// How often it is tried while an application writes to the new item.
const ROUNDS_MAX: usize = 8;

/// The write that notes what a move takes along. Each move has its own; `nonce` tells apart those of a millisecond.
pub(crate) fn moved_note(layout: &Layout, (old, new): (&Key, &Key), item: &Item, (now_ms, nonce): (u64, u64)) -> Write {
    let key = Key::new(notes_of(old), format!("{now_ms:015}-{nonce}"));
    let names: Vec<&str> = item.keys().collect();
    let taken = checksum(item, names.iter().copied());
    let attributes = [
        (ITEM_PK, s(&new.pk)),
        (ITEM_SK, s(&new.sk)),
        (NAMES, AttributeValue::L(names.into_iter().map(s).collect())),
        (TAKEN, s(&taken)),
        (MOVED_AT, n(now_ms)),
        (EXPIRES_AT, expires_at(now_ms)),
    ];
    let put = Action::Put(ledger_item(layout, &key, attributes));
    Write { table: Table::Ledger, key, action: put, guard: None }
}

/// Partition key of the notes of items that left a key. Stored, so it is stable.
fn notes_of(old: &Key) -> String {
    fitted(format!("MOVED#{}#{}", old.pk, old.sk))
}

/// A checksum of these attributes, the same for the same values, whatever their form. Stored, so it is stable.
fn checksum<'a>(item: &Item, names: impl Iterator<Item = &'a str>) -> String {
    let mut crc = Crc::new();
    for name in names {
        crc.update(name.as_bytes());
        crc.update(item.get(name).map(plain).unwrap_or_default().as_bytes());
    }
    format!("{:08x}", crc.sum())
}

/// A value as text, the same for the same values.
fn plain(value: &AttributeValue) -> String {
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        format!("{texts:?}")
    };
    let number = |text: &String| number::canonical(text).unwrap_or_else(|| text.clone());
    match value {
        AttributeValue::N(text) => format!("N{}", number(text)),
        AttributeValue::Ns(set) => format!("NS{}", sorted(set.iter().map(number).collect())),
        AttributeValue::Ss(set) => format!("SS{}", sorted(set.clone())),
        AttributeValue::Bs(set) => format!("BS{}", sorted(set.iter().map(|bytes| format!("{bytes:?}")).collect())),
        AttributeValue::L(list) => format!("L{:?}", list.iter().map(plain).collect::<Vec<_>>()),
        AttributeValue::M(map) => {
            format!("M{}", sorted(map.iter().map(|(name, value)| format!("{name:?}{}", plain(value))).collect()))
        }
        other => format!("{other:?}"),
    }
}

impl<S: Store> Engine<S> {
    /// Sets on an item that moved what was added to it before it did.
    pub(super) async fn merge(&self, old: &Key, rekey: &Rekey, work: &mut Work<'_>) -> Result<(), Stop> {
        let Some(record) = work.batch.records.get(work.touch.position) else { return Ok(()) };
        let change = match &record.change {
            Ok(change) if !self.is_behind_horizon(change.created_ms) => change,
            _ => return Ok(()),
        };
        let Images::Removed(image) = &change.images else { return Ok(()) };
        let receipt = Key::new(format!("RECEIPT#{}", change.id), self.catalogue.name(work.touch.derivation));
        let receipt = receipt_of(&self.schema.layout, &receipt, self.clock.now_ms());
        for _ in 0..ROUNDS_MAX {
            let mut writes = vec![receipt.clone()];
            if let Some(note) = self.note_of(old, image, change.created_ms, rekey, work).await? {
                let added = self.added(image, &note, rekey);
                let target = self.new_place(&note, work).await?;
                writes.extend(self.having(&note));
                writes.extend(target.and_then(|(key, item)| self.setting(key, &item, &added)));
            }
            match self.decided(writes, work).await? {
                Touched::Unheld(at) if !at.contains(&0) => {}
                Touched::Done | Touched::Unheld(_) => return Ok(()),
            }
        }
        Err(Stop::NotNow("other writers were at the item all the time".to_owned()))
    }

    /// The note of the move that removed the item as this image shows it; `None` when no move did.
    async fn note_of(
        &self,
        old: &Key,
        image: &Item,
        created_ms: Option<u64>,
        rekey: &Rekey,
        work: &Work<'_>,
    ) -> Result<Option<Item>, Stop> {
        let created_ms = created_ms.unwrap_or(0);
        let Some(definition) = self.schema.entity(&rekey.entity) else { return Ok(None) };
        let held: BTreeSet<&str> =
            self.known(definition).map(String::as_str).filter(|name| image.get(name).is_some()).collect();
        let is_of_it = |note: &Item| {
            let taken: BTreeSet<&str> = names(note).collect();
            created_ms.saturating_add(OLDER_MS) >= moved_at(note)
                && held.is_subset(&taken)
                && text(note, TAKEN) == Some(checksum(image, names(note)).as_str())
        };
        let mut notes = self.notes(old, work).await?;
        if let Some(at) = notes.iter().position(|note| note.get(HAD).is_none() && is_of_it(note)) {
            return Ok(Some(notes.swap_remove(at)));
        }
        let was_taken = |note: &Item| created_ms <= moved_at(note).saturating_add(OLDER_MS) && is_of_it(note);
        Ok(notes.into_iter().rfind(was_taken))
    }

    /// The notes of all moves from a key, the oldest first.
    async fn notes(&self, old: &Key, work: &Work<'_>) -> Result<Vec<Item>, Stop> {
        let query = Query::prefix(None, notes_of(old), "");
        Ok(self.pages_of(Table::Ledger, &query, work.batch.patience).await?)
    }

    /// The attributes of the item as it left its key that the move did not take along.
    fn added(&self, image: &Item, note: &Item, rekey: &Rekey) -> Item {
        let taken: BTreeSet<&str> = names(note).collect();
        let derived = self.schema.entity(&rekey.entity).map(|definition| definition.derived_attributes.as_slice());
        let is_added = |name: &str| {
            !taken.contains(name)
                && !self.schema.layout.is_key(name)
                && !derived.unwrap_or_default().iter().any(|derived| derived == name)
        };
        let added = image.iter().filter(|(name, _)| is_added(name) && self.takes(ProtocolStep::MergeAdded));
        added.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// The item where it is now: where the note says, or where it went from there. `None` when somebody removed it.
    async fn new_place(&self, note: &Item, work: &Work<'_>) -> Result<Option<(Key, Item)>, Stop> {
        let (mut place, mut passed) = (place_of(note), BTreeSet::new());
        while let Some(key) = place {
            if let Some(item) = self.item_now(Table::Main, &key, work).await? {
                return Ok(Some((key, item)));
            }
            // Where it went when it left for the last time. Where that leads in a circle, it left otherwise.
            let next = self.notes(&key, work).await?.last().and_then(place_of);
            place = next.filter(|_| passed.insert(key));
        }
        Ok(None)
    }

    /// The write that says that a removal had its note.
    fn having(&self, note: &Item) -> Option<Write> {
        let key = self.schema.layout.key(note)?;
        let set = Item::from([(HAD.to_owned(), AttributeValue::Bool(true))]);
        let as_read = |name: &str| (name.to_owned(), note.get(name).cloned());
        let read = BTreeMap::from([as_read(MOVED_AT), as_read(HAD)]);
        let action = Action::Update(Update::set(set));
        Some(Write { table: Table::Ledger, key, action, guard: Some(Guard::SourceAsRead(read)) })
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

/// Where a move went.
fn place_of(note: &Item) -> Option<Key> {
    Some(Key::new(text(note, ITEM_PK)?, text(note, ITEM_SK)?))
}

/// When a move was made, in milliseconds since the epoch.
fn moved_at(note: &Item) -> u64 {
    number(note, MOVED_AT).unwrap_or(0)
}

/// Names of the attributes that a move took along.
fn names(note: &Item) -> impl Iterator<Item = &str> {
    let names = match note.get(NAMES) {
        Some(AttributeValue::L(names)) => names.as_slice(),
        _ => &[],
    };
    names.iter().filter_map(|name| match name {
        AttributeValue::S(name) => Some(name.as_str()),
        _ => None,
    })
}
