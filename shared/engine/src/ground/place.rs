//! Moving an item to the key where it belongs, in one transaction.

use std::collections::BTreeMap;

use derive::{
    guard::Guard,
    kinds::rekey::{Place, Rekey},
    query::Query,
    write::{Action, Table, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{entity::Definition, fields::Fields, item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{Stop, TOUCHES_AT_ONCE, Touched, Work, awaited::Awaits, merge::moved_note};
use crate::{account::Account, backoff::Tries, batch::Engine, protocol::ProtocolStep};

/// How often an item is looked at anew after another writer was at it, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// How often a parent is looked up that the index shows where it is no more.
const LOOKUPS_MAX: usize = 6;

/// What a look at an item's place ends with.
pub(crate) enum Looked {
    /// It is where it belongs, or is not there at all.
    InPlace,
    /// It cannot move, until an item of one of these ids comes or goes.
    Stays { ids: Vec<String>, why: &'static str },
    /// It belongs there.
    Moves { item: Item, place: Key },
}

/// The one that an item names as its parent.
enum Found {
    None,
    One(Fields),
    Several,
}

impl<S: Store> Engine<S> {
    /// Looks whether an item stands where it belongs, and moves it there; says what it waits for where it cannot.
    pub(crate) async fn place(&self, key: &Key, rekey: &Rekey, work: &mut Work<'_>) -> Result<Vec<Awaits>, Stop> {
        let mut noted: Vec<Awaits> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            match self.look_for_place(key, rekey, work).await? {
                Looked::InPlace => return Ok(Vec::new()),
                Looked::Stays { ids, why } => {
                    let awaits: Vec<Awaits> = ids.into_iter().map(|id| Awaits { pk: key.pk.clone(), id }).collect();
                    if !self.takes(ProtocolStep::Await) {
                        return Ok(awaits);
                    }
                    // What it waits for may have come before the note was there; so it is looked at once more.
                    if noted == awaits {
                        tracing::warn!(item = key.for_log(), why, "an item stays where it does not belong");
                        return Ok(noted);
                    }
                    for awaits in &awaits {
                        self.note_waiting(key, awaits, work).await?;
                    }
                    // An index told who is there, and it may lag.
                    if let Some(note) = self.noted(key, [work.touch.derivation]).filter(|_| !work.is_again()) {
                        self.written(note, work).await?;
                    }
                    noted = awaits;
                }
                Looked::Moves { item, place } => {
                    if self.moved(key, item, &place, work).await? {
                        return Ok(Vec::new());
                    }
                }
            }
        }
        Err(Stop::NotNow("other writers were at the item all the time".to_owned()))
    }

    /// Looks at the items one level below a key that was left.
    pub(super) async fn place_below(
        &self,
        above: &Key,
        query: &Query,
        rekey: &Rekey,
        work: &mut Work<'_>,
    ) -> Result<(), Stop> {
        if !self.takes(ProtocolStep::LookBelow) {
            return Ok(());
        }
        let below = self.pages(query, work.batch.patience).await?;
        let keys = below.iter().filter_map(|item| self.schema.layout.key(item));
        let children: Vec<Key> = keys.filter(|key| rekey.is_child(above, key)).collect();
        self.place_all(children, rekey, work).await
    }

    /// Looks at several items, side by side.
    pub(super) async fn place_all(&self, keys: Vec<Key>, rekey: &Rekey, work: &mut Work<'_>) -> Result<(), Stop> {
        let (touch, batch, is_alone) = (work.touch, work.batch, work.is_alone);
        let placed = keys.into_iter().map(|key| {
            async move {
                let mut one = Work { touch, batch, is_alone, account: Account::default() };
                let placed = self.place(&key, rekey, &mut one).await;
                (placed, one.account)
            }
            .boxed()
        });
        let placed: Vec<BoxFuture<'_, _>> = placed.collect();
        let placed: Vec<_> = stream::iter(placed).buffer_unordered(TOUCHES_AT_ONCE).collect().await;
        let mut ended = Ok(());
        for (placed, account) in placed {
            work.account.add(account);
            ended = ended.and(placed.map(drop));
        }
        ended
    }

    pub(crate) async fn look_for_place(&self, key: &Key, rekey: &Rekey, work: &Work<'_>) -> Result<Looked, Stop> {
        let Some(item) = self.item_now(Table::Main, key, work).await? else { return Ok(Looked::InPlace) };
        let Some(image) = self.schema.image(key, &item).filter(|image| image.is(&rekey.entity)) else {
            return Ok(Looked::InPlace);
        };
        let (definition, fields) = (image.definition, image.key_fields());
        // What cannot be read is listed as such.
        let (Some(id), Ok(parent)) = (rekey.id_of(fields), rekey.parent_of(&image)) else {
            return Ok(Looked::InPlace);
        };
        let above = match &parent {
            None => None,
            Some(parent) => match self.by_id(&key.pk, parent, rekey, work).await? {
                Found::One(fields) => Some(fields),
                Found::None => return Ok(stays([parent], "its parent does not exist")),
                Found::Several => return Ok(stays([parent], "its parent stands under several keys")),
            },
        };
        match rekey.place(definition, fields, above.as_ref()) {
            Place::At(place) if place == *key => Ok(Looked::InPlace),
            Place::At(place) => match self.item_now(Table::Main, &place, work).await? {
                None => Ok(Looked::Moves { item, place }),
                // What is in the way may go, and its parent may go elsewhere.
                Some(_) => Ok(stays([&id].into_iter().chain(&parent), "its place is taken")),
            },
            Place::Stays(why) => Ok(stays([parent.as_ref().unwrap_or(&id)], why)),
        }
    }

    /// The one item of this id beside others of its partition.
    async fn by_id(&self, pk: &str, id: &str, rekey: &Rekey, work: &Work<'_>) -> Result<Found, Stop> {
        let Some(query) = rekey.by_id(&self.schema, id) else { return Ok(Found::None) };
        let patience = work.batch.patience;
        let mut tries = Tries::default();
        for _ in 0..LOOKUPS_MAX {
            let entries = self.pages(&query, patience).await?;
            let keys: Vec<Key> = entries.iter().filter_map(|entry| self.schema.layout.key(entry)).collect();
            let keys: Vec<Key> = keys.into_iter().filter(|key| key.pk == pk).collect();
            if keys.is_empty() {
                return Ok(Found::None);
            }
            let items = patience.call(|| self.store.get(Table::Main, &keys)).await?;
            let all_there = items.len() == keys.len();
            let images = items.iter().filter_map(|(key, item)| self.schema.image(key, item));
            let named = images.filter(|image| image.is(&rekey.entity));
            let named = named.filter(|image| rekey.id_of(image.key_fields()).as_deref() == Some(id));
            let mut named = named.map(|image| image.key_fields().clone());
            match (named.next(), named.next()) {
                (Some(fields), None) => return Ok(Found::One(fields)),
                (Some(_), Some(_)) => return Ok(Found::Several),
                // What stands there is none of ours, whatever the index was told.
                (None, _) if all_there => return Ok(Found::None),
                // It moved, or went; the index says so soon.
                (None, _) if !patience.wait(&mut tries).await => break,
                (None, _) => {}
            }
        }
        Err(Stop::NotNow("the index shows its parent where it is no more".to_owned()))
    }

    /// The attributes of which a move asks that none was added.
    pub(super) fn known<'a>(&'a self, definition: &'a Definition) -> impl Iterator<Item = &'a String> {
        let indexes = self.schema.layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]);
        definition.attributes.iter().chain(&definition.derived_attributes).chain(indexes)
    }

    /// Moves an item; false when another writer was at it.
    async fn moved(&self, key: &Key, item: Item, place: &Key, work: &mut Work<'_>) -> Result<bool, Stop> {
        let Some(definition) = self.schema.image(key, &item).map(|image| image.definition) else { return Ok(false) };
        let known = self.known(definition);
        let mut read: BTreeMap<String, Option<AttributeValue>> = known.map(|name| (name.clone(), None)).collect();
        read.extend(item.iter().map(|(name, value)| (name.to_owned(), Some(value.clone()))));
        let at_place = self.at_place(definition, item.clone(), place);
        let (now_ms, nonce) = (self.clock.now_ms(), self.clock.chance(u64::from(u32::MAX)));
        let main =
            |key: &Key, action, guard| Write { table: Table::Main, key: key.clone(), action, guard: Some(guard) };
        let writes = vec![
            main(key, Action::Delete, Guard::SourceAsRead(read)),
            main(place, Action::Put(at_place), Guard::PlaceFree),
            moved_note(&self.schema.layout, (key, place), &item, (now_ms, nonce)),
        ];
        Ok(matches!(self.decided(writes, work).await?, Touched::Done))
    }

    /// The item under another key, with the index keys that it has made anew.
    fn at_place(&self, definition: &Definition, mut item: Item, place: &Key) -> Item {
        item.extend(self.schema.layout.key_item(place));
        let fields = definition.fields(place, &item).unwrap_or_default();
        for (name, value) in definition.index_attributes(&self.schema.layout, &fields) {
            if let Some(value) = value.filter(|_| item.contains_key(&name)) {
                item.insert(name, value);
            }
        }
        item
    }
}

fn stays<'a>(ids: impl IntoIterator<Item = &'a String>, why: &'static str) -> Looked {
    Looked::Stays { ids: ids.into_iter().cloned().collect(), why }
}
