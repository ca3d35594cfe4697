//! The application's memory. What it writes is in `actors/application.rs`.

use std::{collections::BTreeSet, sync::Arc};

use derive::schema::Schema;
use keys::{item::Item, key::Key};

use crate::scene::Scene;

/// An application, with items that it read before.
pub(crate) struct Application {
    pub(crate) scene: Arc<Scene>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) read_before: Vec<Item>,
    pub(crate) untyped: BTreeSet<Key>,
    /// The item that it wrote last.
    pub(crate) newest: Option<Key>,
}

impl Application {
    pub(crate) fn new(scene: &Arc<Scene>) -> Self {
        let (scene, schema) = (Arc::clone(scene), Arc::clone(&scene.schema));
        Self { scene, schema, read_before: Vec::new(), untyped: BTreeSet::new(), newest: None }
    }

    /// Keys of items that it left without a known type at some time.
    pub(crate) fn untyped(&self) -> &BTreeSet<Key> {
        &self.untyped
    }
}
