//! The definition of where items belong, from all items of a table.

use std::collections::{BTreeMap, BTreeSet};

use keys::{entity::Definition, key::Key};

use super::{Place, Rekey};
use crate::{
    derivation::Items,
    schema::{Image, Schema},
};

/// The items of a table that can move, as they stand.
pub(super) struct Standing<'a> {
    rekey: &'a Rekey,
    definition: &'a Definition,
    items: &'a Items,
    pub(super) ours: BTreeMap<&'a Key, Image<'a>>,
    /// Keys by partition key and id.
    by_id: BTreeMap<(&'a str, String), Vec<&'a Key>>,
}

impl<'a> Standing<'a> {
    pub(super) fn of(rekey: &'a Rekey, schema: &'a Schema, items: &'a Items) -> Option<Self> {
        let definition = schema.entity(&rekey.entity)?;
        let images = items.iter().filter_map(|(key, item)| schema.image(key, item));
        let ours: BTreeMap<_, _> =
            images.filter(|image| image.is(&rekey.entity)).map(|image| (image.key, image)).collect();
        let mut by_id: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (key, image) in &ours {
            if let Some(id) = rekey.id_of(image.key_fields()) {
                by_id.entry((key.pk.as_str(), id)).or_default().push(*key);
            }
        }
        Some(Self { rekey, definition, items, ours, by_id })
    }

    /// The key where an item belongs: its place, or where it is.
    pub(super) fn key_of(&self, key: &Key, above: &mut BTreeSet<Key>) -> Key {
        match self.place_of(key, above) {
            Place::At(place) => place,
            Place::Stays(_) => key.clone(),
        }
    }

    /// Where an item belongs: below the place of its parent. `above` are those on the way here, of which none is asked
    /// again.
    pub(super) fn place_of(&self, key: &Key, above: &mut BTreeSet<Key>) -> Place {
        let Some(image) = self.ours.get(key).filter(|_| above.insert(key.clone())) else {
            return Place::Stays("it was asked already");
        };
        let parent = match self.rekey.parent_of(image) {
            Ok(None) => None,
            Ok(Some(id)) => match self.by_id.get(&(key.pk.as_str(), id)).map(Vec::as_slice) {
                Some([parent]) => match self.definition.key.parse_key(&self.key_of(parent, above)) {
                    Some(fields) => Some(fields),
                    None => return Place::Stays("its parent's key holds no path"),
                },
                _ => return Place::Stays("it cannot be told which item is its parent"),
            },
            Err(_) => return Place::Stays("what names its parent cannot be read"),
        };
        match self.rekey.place(self.definition, image.key_fields(), parent.as_ref()) {
            Place::At(place) if place != *key && self.items.contains_key(&place) => Place::Stays("its place is taken"),
            place => place,
        }
    }
}
