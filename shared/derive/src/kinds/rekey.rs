//! Rekey: an item that stands under its parent's path moves when its parent is another, or is elsewhere.
//!
//! *Keeps true*: the path in an item's key is its parent's path and its own id; without a parent, its own id alone.
//! *From* an item that was made or names another parent, and from an item that left its key, *to* a look at the item,
//! or at those one level below the key that was left.
//!
//! *Level-triggered, and strict.* Where an item belongs is read when it is moved, so any order of bells ends right. A
//! move is one transaction: the old key is deleted only while every attribute that was read is unchanged, and the new
//! key is put only if nothing stands there, so an item is at every moment under exactly one key. What an application
//! added to the old item in between comes with the record of its removal, and is set where the new item lacks it.
//!
//! An item stays where it is while its parent does not exist or stands under two keys, while its place is taken, and
//! where its place would be below itself or deeper than the declaration allows. When an item of the id that is in the way
//! comes or goes, it is looked at again.
//!
//! *Example*: `ORG#o / EMP#/ceo/vp/dev` names the manager `cto`, who is at `EMP#/ceo/cto`. It becomes
//! `ORG#o / EMP#/ceo/cto/dev`; the record of the old key's removal looks at `EMP#/ceo/vp/dev/…`, one level down.

use std::collections::{BTreeMap, BTreeSet};

use keys::{entity::Definition, fields::Fields, key::Key, path::Path};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Family, Items, Kind, Part, Reach},
    effect::{Effect, Ground},
    kinds::{entity, knows},
    query::Query,
    schema::{Image, Schema, Unreadable},
};

/// The declaration of a rekey.
#[derive(Clone, Debug)]
pub struct Rekey {
    /// Entity of the items that move.
    pub entity: String,
    /// Field of their key that holds the path; its last segment is an item's id.
    pub path: String,
    /// Attribute of type S that holds the parent's id; an item without it stands at the top.
    pub parent: String,
    /// Index that finds an item by its id: the only field of its partition key is the path's last segment.
    pub index: String,
    /// Most segments of a path.
    pub depth_max: usize,
}

/// Where an item belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Under this key.
    At(Key),
    /// Where it is, for this reason.
    Stays(&'static str),
}

impl Rekey {
    fn path_of(&self, fields: &Fields) -> Option<Path> {
        fields.get(&self.path)?.parse().ok()
    }

    /// The id of an item: the last segment of its path.
    #[must_use]
    pub fn id_of(&self, fields: &Fields) -> Option<String> {
        self.path_of(fields)?.segments().last().cloned()
    }

    /// The parent's id; `None` at the top.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when it is no text, or empty.
    pub fn parent_of(&self, image: &Image<'_>) -> Result<Option<String>, Unreadable> {
        let unreadable = |why: &str| Unreadable { attribute: self.parent.clone(), why: why.to_owned() };
        match image.attribute(&self.parent) {
            None => Ok(None),
            Some(AttributeValue::S(text)) if text.is_empty() => Err(unreadable("is empty")),
            Some(AttributeValue::S(text)) => Ok(Some(text.clone())),
            Some(_) => Err(unreadable("is not of type S")),
        }
    }

    /// The query that finds an item by its id.
    #[must_use]
    pub fn by_id(&self, schema: &Schema, id: &str) -> Option<Query> {
        let index = schema.entity(&self.entity)?.indexes.iter().find(|index| index.index == self.index)?;
        let path = Path::new(vec![id.to_owned()]).ok()?.to_string();
        let field = |name: &str| (name == self.path).then_some(path.as_str());
        Some(Query::prefix(Some(&self.index), index.key.pk.build_of(field).ok()?, ""))
    }

    /// The place of an item below a parent, or at the top.
    #[must_use]
    pub fn place(&self, definition: &Definition, fields: &Fields, parent: Option<&Fields>) -> Place {
        let (Some(id), parent) = (self.id_of(fields), parent.map(|parent| self.path_of(parent))) else {
            return Place::Stays("its key holds no path");
        };
        let mut segments = match parent {
            None => Vec::new(),
            Some(Some(path)) => path.segments().to_vec(),
            Some(None) => return Place::Stays("its parent's key holds no path"),
        };
        if segments.contains(&id) {
            return Place::Stays("its place would be below itself");
        }
        segments.push(id);
        if segments.len() > self.depth_max {
            return Place::Stays("its place would be too deep");
        }
        let Ok(path) = Path::new(segments) else { return Place::Stays("its place is no path") };
        let mut fields = fields.clone();
        fields.insert(self.path.clone(), path.to_string());
        match definition.build(&fields) {
            Ok(key) => Place::At(key),
            Err(_) => Place::Stays("the key of its place would be too long"),
        }
    }

    /// The items one level below a key, as a query that finds those of all levels.
    fn below(&self, schema: &Schema, key: &Key) -> Option<Query> {
        let definition = schema.entity(&self.entity)?;
        definition.key.parse_key(key)?;
        Some(Query::prefix(None, &key.pk, format!("{}/", key.sk)))
    }

    /// Is this the key of an item one level below another?
    #[must_use]
    pub fn is_child(&self, above: &Key, key: &Key) -> bool {
        let rest = key.sk.strip_prefix(above.sk.as_str()).and_then(|rest| rest.strip_prefix('/'));
        above.pk == key.pk && rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
    }
}

impl Kind for Rekey {
    fn kind(&self) -> &'static str {
        "rekey"
    }

    fn family(&self) -> Family {
        Family::LevelTriggered
    }

    /// It writes no attribute; a key that changes takes the item along, whole.
    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let definition = entity(schema, &self.entity)?;
        knows(definition, [self.parent.as_str()])?;
        let holds_path = definition.key.sk.field_names() == [self.path.as_str()];
        if !holds_path || definition.key.pk.holds(&self.path) {
            return Err(format!(
                "the sort key of {} must hold {} alone, and its partition key not",
                self.entity, self.path
            ));
        }
        let index = definition.indexes.iter().find(|index| index.index == self.index);
        if index.is_none_or(|index| index.key.pk.field_names() != [self.path.as_str()]) {
            return Err(format!("the index {} does not find {} by the end of {}", self.index, self.entity, self.path));
        }
        let reads = vec![Part::existence(&self.entity), Part::attribute(&self.entity, &self.parent)];
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.entity]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.entity);
        let mut effects = Vec::new();
        match (old, new) {
            (None, Some(new)) => {
                effects.extend([Ground::Place(new.key.clone()), Ground::Awaited(new.key.clone())]);
            }
            (Some(_), Some(new)) if sight.differs_in(&self.parent) => effects.push(Ground::Place(new.key.clone())),
            (Some(old), None) => {
                effects.extend([Ground::Merge(old.key.clone()), Ground::Awaited(old.key.clone())]);
                effects.extend(
                    self.below(schema, old.key).map(|query| Ground::PlaceBelow { above: old.key.clone(), query }),
                );
            }
            _ => {}
        }
        effects.into_iter().map(Effect::Ground).collect()
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if image.is(&self.entity) { self.parent_of(image).err() } else { None }
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let Some(definition) = schema.entity(&self.entity) else { return Vec::new() };
        let images = items.iter().filter_map(|(key, item)| schema.image(key, item));
        let ours: BTreeMap<Key, Image<'_>> =
            images.filter(|image| image.is(&self.entity)).map(|image| (image.key.clone(), image)).collect();
        let mut by_id: ById = ById::new();
        for (key, image) in &ours {
            if let Some(id) = self.id_of(image.key_fields()) {
                by_id.entry((key.pk.clone(), id)).or_default().push(key.clone());
            }
        }
        let mut placed = Vec::new();
        for key in ours.keys() {
            let place = definition_of_place(self, definition, &ours, &by_id, key, &mut BTreeSet::new());
            placed.push(Derived::Placed { key: key.clone(), place });
        }
        placed
    }

    fn rekey(&self) -> Option<&Rekey> {
        Some(self)
    }
}

/// Keys of items by partition key and id.
type ById = BTreeMap<(String, String), Vec<Key>>;

/// Where an item belongs: below the place of its parent; where it is, if it has none there.
fn definition_of_place(
    rekey: &Rekey,
    definition: &Definition,
    ours: &BTreeMap<Key, Image<'_>>,
    by_id: &ById,
    key: &Key,
    above: &mut BTreeSet<Key>,
) -> Key {
    let stays = key.clone();
    let Some(image) = ours.get(key).filter(|_| above.insert(key.clone())) else { return stays };
    let parent = match rekey.parent_of(image) {
        Ok(None) => None,
        Ok(Some(id)) => match by_id.get(&(key.pk.clone(), id)).map(Vec::as_slice) {
            Some([parent]) => {
                let place = definition_of_place(rekey, definition, ours, by_id, parent, above);
                match definition.key.parse_key(&place) {
                    Some(fields) => Some(fields),
                    None => return stays,
                }
            }
            // None, or several of which it cannot be told who is meant.
            _ => return stays,
        },
        Err(_) => return stays,
    };
    match rekey.place(definition, image.key_fields(), parent.as_ref()) {
        Place::At(place) if place == *key || !ours.contains_key(&place) => place,
        Place::At(_) | Place::Stays(_) => stays,
    }
}
