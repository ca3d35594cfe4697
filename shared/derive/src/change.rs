//! A change: one stream record, decoded.

use keys::{
    item::Item,
    key::Key,
    value::{differing, same},
};

use crate::{
    expression::document_path::{DocumentPath, is_path},
    schema::{Image, Schema, Seen, Unreadable},
};

/// One stream record.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Id of the event: the same at every delivery of this record, and unique to it.
    pub id: String,
    /// Sequence number: the order within a shard, and the name in a partial batch response.
    pub sequence_number: String,
    /// Time of the write, in milliseconds since the epoch, rounded down to the second or to the minute; `None` if the
    /// record has none.
    pub created_ms: Option<u64>,
    /// Key of the item.
    pub key: Key,
    /// The item before and after.
    pub images: Images,
}

/// The item before and after a change; at least one of them exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Images {
    /// The item was created.
    Inserted(Item),
    /// The item was changed.
    Modified {
        /// Before.
        old: Item,
        /// After.
        new: Item,
    },
    /// The item was removed by a client.
    Removed(Item),
    /// DynamoDB removed the item, by its time to live.
    Expired(Item),
}

impl Change {
    /// The item before the change.
    #[must_use]
    pub fn old_image(&self) -> Option<&Item> {
        match &self.images {
            Images::Inserted(_) => None,
            Images::Modified { old, .. } | Images::Removed(old) | Images::Expired(old) => Some(old),
        }
    }

    /// The item after the change.
    #[must_use]
    pub fn new_image(&self) -> Option<&Item> {
        match &self.images {
            Images::Inserted(new) | Images::Modified { new, .. } => Some(new),
            Images::Removed(_) | Images::Expired(_) => None,
        }
    }

    /// Names of the attributes that differ between two images; empty if there is only one.
    fn differing(&self) -> Vec<&str> {
        match &self.images {
            Images::Modified { old, new } => differing(old, new),
            Images::Inserted(_) | Images::Removed(_) | Images::Expired(_) => Vec::new(),
        }
    }
}

/// A change as the schema sees it: without images of undeclared entities.
#[derive(Clone, Debug)]
pub struct Sight<'a> {
    /// The item before, if its entity is declared.
    pub old: Option<Image<'a>>,
    /// The item after, if its entity is declared.
    pub new: Option<Image<'a>>,
    /// Why the new item cannot be read, or is not in an index, though its entity is declared.
    pub misfit: Option<Unreadable>,
    /// True if there was such a reason for the old item.
    pub was_misfit: bool,
    /// Names of the attributes that differ between two images; empty if there is only one.
    differing: Vec<&'a str>,
    change: &'a Change,
}

impl<'a> Sight<'a> {
    /// Interprets a change.
    #[must_use]
    pub fn of(schema: &'a Schema, change: &'a Change) -> Self {
        let see = |item: Option<&'a Item>| item.map_or(Seen::Untyped, |item| schema.see(&change.key, item));
        let (new, misfit) = match see(change.new_image()) {
            Seen::Known(image) => (Some(image.clone()), image.long_index_key()),
            Seen::Misfit(why) => (None, Some(why)),
            Seen::Untyped | Seen::Unknown => (None, None),
        };
        // Both images have the same key, so it is parsed once if they are of one entity.
        let alike = new.as_ref().zip(change.old_image()).and_then(|(new, old)| new.of_the_same(schema, old));
        let (old, was_misfit) = match alike.map_or_else(|| see(change.old_image()), Seen::Known) {
            Seen::Known(image) => (Some(image.clone()), image.long_index_key().is_some()),
            Seen::Misfit(_) => (None, true),
            Seen::Untyped | Seen::Unknown => (None, false),
        };
        Self { old, new, misfit, was_misfit, differing: change.differing(), change }
    }

    /// The same change without the images that do not meet a condition.
    pub(crate) fn only(&self, meets: impl Fn(&Image<'a>) -> bool) -> Self {
        let [old, new] = [&self.old, &self.new].map(|image| image.clone().filter(&meets));
        Self { old, new, ..self.clone() }
    }

    /// True if the item was removed.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(self.change.images, Images::Removed(_) | Images::Expired(_))
    }

    /// True if DynamoDB removed the item, by its time to live.
    #[must_use]
    pub fn expires(&self) -> bool {
        matches!(self.change.images, Images::Expired(_))
    }

    /// Time of the write, in milliseconds since the epoch, as in [`Change::created_ms`].
    pub(crate) fn created_ms(&self) -> Option<u64> {
        self.change.created_ms
    }

    /// True if the images differ. Some emulators create a record for a write that changes nothing.
    #[must_use]
    pub fn differs(&self) -> bool {
        !matches!(self.change.images, Images::Modified { .. }) || !self.differing.is_empty()
    }

    /// Names of the attributes that differ between two images; empty if the change has only one.
    #[must_use]
    pub fn differing(&self) -> &[&'a str] {
        &self.differing
    }

    /// True if an attribute differs between these images, as [`entity`](Self::entity) returns them. A missing image has
    /// no attributes, and no fields of a key.
    pub(crate) fn attribute_differs(&self, old: Option<&Image<'_>>, new: Option<&Image<'_>>, attribute: &str) -> bool {
        match (old, new) {
            (Some(_), Some(_)) => self.differs_in(attribute),
            _ => old.or(new).is_some_and(|image| {
                image.attribute(attribute).is_some() || image.key_fields().get(attribute).is_some()
            }),
        }
    }

    /// True if an attribute, or a value inside one, differs between two images; false if there is only one image.
    #[must_use]
    pub fn differs_in(&self, attribute: &str) -> bool {
        if !is_path(attribute) {
            return self.differing.contains(&attribute);
        }
        let path = DocumentPath::of(attribute);
        let value = |image: &Option<Image<'a>>| image.as_ref().and_then(|image| path.value(image.item));
        self.differing.contains(&path.attribute.as_str()) && !same(value(&self.old), value(&self.new))
    }

    /// The item of this entity, if it was created, or one of these attributes of it changed.
    pub(crate) fn touched<'n>(&self, entity: &str, mut names: impl Iterator<Item = &'n str>) -> Option<Key> {
        let (old, new) = self.entity(entity);
        let new = new.filter(|new| old.is_none() || names.any(|name| self.attribute_differs(old, Some(new), name)))?;
        Some(new.key.clone())
    }

    /// The images of this entity alone: a change of type removes the one entity and inserts the other.
    #[must_use]
    pub fn entity(&self, entity: &str) -> (Option<&Image<'a>>, Option<&Image<'a>>) {
        (self.old.as_ref().filter(|image| image.is(entity)), self.new.as_ref().filter(|image| image.is(entity)))
    }
}
