//! A change of an item, typed by its entity.

use crate::{entity::Entity, error::EntityError, item::Item, layout::Layout};

/// What a stream record says happened to an item of the entity `E`.
///
/// An item whose type attribute changed is removed from the one entity and inserted into the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityChange<E> {
    /// The item was not there before.
    Inserted(E),
    /// The item was there before, and differs.
    Modified {
        /// As it was.
        old: E,
        /// As it is.
        new: E,
    },
    /// The item is not there any more.
    Removed(E),
}

impl<E: Entity> EntityChange<E> {
    /// The typed change of two images; `None` when neither is of this entity.
    ///
    /// # Errors
    ///
    /// [`EntityError`] when an image says it is of this entity and does not fit its declaration.
    pub fn from_images(layout: &Layout, old: Option<&Item>, new: Option<&Item>) -> Result<Option<Self>, EntityError> {
        let typed = |image: Option<&Item>| image.map_or(Ok(None), |item| E::from_item(layout, item));
        Ok(match (typed(old)?, typed(new)?) {
            (None, None) => None,
            (None, Some(new)) => Some(Self::Inserted(new)),
            (Some(old), Some(new)) => Some(Self::Modified { old, new }),
            (Some(old), None) => Some(Self::Removed(old)),
        })
    }
}
