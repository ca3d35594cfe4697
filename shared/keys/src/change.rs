//! A change of an item, typed by its entity.

use crate::{entity::Entity, error::EntityError, item::Item, layout::Layout};

/// A change of an item of the entity `E`, from a stream record.
///
/// An item whose type attribute changed is removed from the one entity and inserted into the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityChange<E> {
    /// The item did not exist before.
    Inserted(E),
    /// The item existed before, and differs.
    Modified {
        /// Before.
        old: E,
        /// After.
        new: E,
    },
    /// The item no longer exists.
    Removed(E),
}

impl<E: Entity> EntityChange<E> {
    /// The typed change of two images; `None` if neither is of this entity.
    ///
    /// # Errors
    ///
    /// [`EntityError`] if an image names this entity and does not fit its declaration.
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
