//! Items that cannot move yet, noted under the id that is in their way.
//!
//! *Keeps true*: an item that waits for an item of some id is looked at when one of that id comes or goes. A note is
//! written before the item is looked at once more, and taken back only while it is the note that was read; so nothing
//! that comes in between is missed.

use derive::{
    guard::Guard,
    kinds::rekey::Rekey,
    query::Query,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use store::Store;

use super::{Stop, Work};
use crate::{attribute::s, batch::Engine, ledger::ledger_item, listing::fitted};

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const WRITTEN: &str = "Written";

/// What an item waits for: an item of this id, beside others of its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Awaits {
    pub(crate) pk: String,
    pub(crate) id: String,
}

impl Awaits {
    /// Partition key of the notes. Stored, so it is stable.
    fn partition(&self) -> String {
        fitted(format!("AWAITED#{}#{}", self.pk, self.id))
    }

    /// The write that notes that an item waits. Every note is another, by what is `written`, so that one that was
    /// written meanwhile is not taken for the one that was read.
    pub(crate) fn note(&self, layout: &Layout, item: &Key, written: &str) -> Write {
        let key = Key::new(self.partition(), fitted(item.sk.clone()));
        let attributes = [(ITEM_PK, s(&item.pk)), (ITEM_SK, s(&item.sk)), (WRITTEN, s(written))];
        let put = Action::Put(ledger_item(layout, &key, attributes));
        Write { table: Table::Ledger, key, action: put, guard: None }
    }
}

impl<S: Store> Engine<S> {
    /// Notes that an item waits.
    pub(super) async fn note_waiting(&self, item: &Key, awaits: &Awaits, work: &mut Work<'_>) -> Result<(), Stop> {
        let written = format!("{}-{}", self.clock.now_ms(), self.clock.chance(u64::from(u32::MAX)));
        self.written(awaits.note(&self.schema.layout, item, &written), work).await
    }

    /// Looks at the items that wait for one of the id of this key.
    pub(super) async fn awaited(&self, key: &Key, rekey: &Rekey, work: &mut Work<'_>) -> Result<(), Stop> {
        let fields = self.schema.entity(&rekey.entity).and_then(|definition| definition.key.parse_key(key));
        let Some(id) = fields.and_then(|fields| rekey.id_of(&fields)) else { return Ok(()) };
        let awaits = Awaits { pk: key.pk.clone(), id };
        let query = Query::prefix(None, awaits.partition(), "");
        for note in self.pages_of(Table::Ledger, &query, work.batch.patience).await? {
            let (Some(pk), Some(sk)) = (text(&note, ITEM_PK), text(&note, ITEM_SK)) else { continue };
            let waits = self.place(&Key::new(pk, sk), rekey, work).await?;
            if !waits.contains(&awaits) {
                self.take_back(&note, work).await?;
            }
        }
        Ok(())
    }

    async fn take_back(&self, note: &Item, work: &mut Work<'_>) -> Result<(), Stop> {
        let Some(key) = self.schema.layout.key(note) else { return Ok(()) };
        let guard = Guard::Unmoved { attribute: WRITTEN.to_owned(), value: note.get(WRITTEN).cloned() };
        self.written(Write { table: Table::Ledger, key, action: Action::Delete, guard: Some(guard) }, work).await
    }
}
