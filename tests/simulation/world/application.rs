//! The application's memory. What it writes is in `actors/application.rs`.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    derived::Items,
    schema::Schema,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};

use store::{Store as _, faulty::Call};

use crate::{executor::now, scene::Scene};

/// The attribute by which an item that has the key of a derived one is found again, and its text.
pub(crate) const NOTE: &str = "Note";
pub(crate) const FOREIGN: &str = "foreign";

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

    /// An item that has the key of a derived one, or had it when it was put.
    pub(crate) fn any_foreign(&self) -> Option<Key> {
        self.scene.chance.one_of(&self.foreign()).cloned()
    }

    fn foreign(&self) -> Vec<Key> {
        let makers: Vec<&str> = self.scene.catalogue.makers().map(|(_, entity)| entity).collect();
        let has_derived_key = |key: &Key, item: &Item| {
            let is_of = |entity: &str| self.schema.image(key, item).is_some_and(|image| image.is(entity));
            let fits = |entity: &str| self.schema.entity(entity).is_some_and(|it| it.key.parse_key(key).is_some());
            makers.iter().any(|entity| fits(entity) && !is_of(entity))
        };
        let is_foreign = |(key, item): &(&Key, &Item)| {
            text(item, NOTE) == Some(FOREIGN) || self.untyped.contains(*key) && has_derived_key(key, item)
        };
        let keys = |items: &Items| items.iter().filter(is_foreign).map(|(key, _)| key.clone()).collect();
        self.scene.database.memory().view(Table::Main, keys)
    }

    /// All of them go.
    pub(crate) fn remove_foreign(&self) {
        for key in self.foreign() {
            let write = Write { table: Table::Main, key, action: Action::Delete, guard: None };
            self.scene.trace.note(|| format!("app {}", Call::Write(&write)));
            now(self.scene.database.memory().write(&write)).unwrap();
        }
    }

    /// Keys of items that it left without a known type at some time.
    pub(crate) fn untyped(&self) -> &BTreeSet<Key> {
        &self.untyped
    }
}
