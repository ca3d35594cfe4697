//! A change: one stream record, decoded.

use keys::{
    item::Item,
    key::Key,
    value::{differing, same},
};

use crate::{
    condition::{DocumentPath, is_path},
    schema::{Image, Schema, Seen, Unreadable},
};

/// One stream record.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Id of the event: the same at every delivery of this record, and at no other record's.
    pub id: String,
    /// Sequence number: the order within a shard, and what a partial response names.
    pub sequence_number: String,
    /// When the write was made, in milliseconds since the epoch, rounded down to the second or to the minute; `None`
    /// where the record does not say.
    pub created_ms: Option<u64>,
    /// Key of the item.
    pub key: Key,
    /// The item before and after.
    pub images: Images,
}

/// The item before and after a change; one of them is there.
#[derive(Clone, Debug, PartialEq)]
pub enum Images {
    /// The item was made.
    Inserted(Item),
    /// The item was changed.
    Modified {
        /// As it was.
        old: Item,
        /// As it is.
        new: Item,
    },
    /// The item was removed, by a client or by its time to live.
    Removed(Item),
}

impl Change {
    /// The item as it was.
    #[must_use]
    pub fn old_image(&self) -> Option<&Item> {
        match &self.images {
            Images::Inserted(_) => None,
            Images::Modified { old, .. } | Images::Removed(old) => Some(old),
        }
    }

    /// The item as it is.
    #[must_use]
    pub fn new_image(&self) -> Option<&Item> {
        match &self.images {
            Images::Inserted(new) | Images::Modified { new, .. } => Some(new),
            Images::Removed(_) => None,
        }
    }

    /// Names of the attributes that differ between two images; none where there is but one.
    fn differing(&self) -> Vec<&str> {
        match &self.images {
            Images::Modified { old, new } => differing(old, new),
            Images::Inserted(_) | Images::Removed(_) => Vec::new(),
        }
    }
}

/// A change as the schema sees it: images that are of no declared entity are not there.
#[derive(Clone, Debug)]
pub struct Sight<'a> {
    /// As it was, where that is an item of a declared entity.
    pub old: Option<Image<'a>>,
    /// As it is, where that is an item of a declared entity.
    pub new: Option<Image<'a>>,
    /// Why the item as it is cannot be read, or is not in an index, though its entity is declared.
    pub misfit: Option<Unreadable>,
    /// Was there such a reason for the item as it was?
    pub was_misfit: bool,
    /// Names of the attributes that differ between two images; none where there is but one.
    differing: Vec<&'a str>,
    /// Does the change have both images?
    modifies: bool,
    /// Does it have the old one only?
    removes: bool,
}

impl<'a> Sight<'a> {
    /// Looks at a change.
    #[must_use]
    pub fn of(schema: &'a Schema, change: &'a Change) -> Self {
        let see = |item: Option<&'a Item>| item.map_or(Seen::Untyped, |item| schema.see(&change.key, item));
        let (new, misfit) = match see(change.new_image()) {
            Seen::Known(image) => (Some(image.clone()), image.long_index_key()),
            Seen::Misfit(why) => (None, Some(why)),
            Seen::Untyped | Seen::Unknown => (None, None),
        };
        // Both images have one key, which is read once where they are of one entity.
        let alike = new.as_ref().zip(change.old_image()).and_then(|(new, old)| new.of_the_same(schema, old));
        let (old, was_misfit) = match alike.map_or_else(|| see(change.old_image()), Seen::Known) {
            Seen::Known(image) => (Some(image.clone()), image.long_index_key().is_some()),
            Seen::Misfit(_) => (None, true),
            Seen::Untyped | Seen::Unknown => (None, false),
        };
        let modifies = matches!(change.images, Images::Modified { .. });
        let removes = matches!(change.images, Images::Removed(_));
        Self { old, new, misfit, was_misfit, differing: change.differing(), modifies, removes }
    }

    /// Was the item removed?
    #[must_use]
    pub fn removes(&self) -> bool {
        self.removes
    }

    /// Do the images differ? Some emulators make a record of a write that changes nothing.
    #[must_use]
    pub fn differs(&self) -> bool {
        !self.modifies || !self.differing.is_empty()
    }

    /// Names of the attributes that differ between two images; none where the change has but one.
    #[must_use]
    pub fn differing(&self) -> &[&'a str] {
        &self.differing
    }

    /// Does an attribute differ between these images of it, as [`entity`](Self::entity) gives them? An image that is not
    /// there has no attribute.
    pub(crate) fn attribute_differs(&self, old: Option<&Image<'_>>, new: Option<&Image<'_>>, attribute: &str) -> bool {
        match (old, new) {
            (Some(_), Some(_)) => self.differs_in(attribute),
            _ => old.or(new).is_some_and(|image| image.attribute(attribute).is_some()),
        }
    }

    /// Does an attribute, or a value inside of one, differ between two images? Never where the change has but one.
    #[must_use]
    pub fn differs_in(&self, attribute: &str) -> bool {
        if !is_path(attribute) {
            return self.differing.contains(&attribute);
        }
        let path = DocumentPath::of(attribute);
        let value = |image: &Option<Image<'a>>| image.as_ref().and_then(|image| path.value(image.item));
        self.differing.contains(&path.attribute.as_str()) && !same(value(&self.old), value(&self.new))
    }

    /// Only what is of this entity: a change of type removes the one entity and inserts the other.
    #[must_use]
    pub fn entity(&self, entity: &str) -> (Option<&Image<'a>>, Option<&Image<'a>>) {
        (self.old.as_ref().filter(|image| image.is(entity)), self.new.as_ref().filter(|image| image.is(entity)))
    }
}
