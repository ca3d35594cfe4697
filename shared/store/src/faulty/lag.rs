//! A view of the main table that lags behind it, item by item: the content of an index.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use derive::write::{Action, Table, Write};
use futures::FutureExt as _;
use keys::{item::Item, key::Key, layout::Layout};

use crate::{Store as _, memory::MemoryStore};

/// The view, and the changes that it has not applied yet, in order for each item.
#[derive(Debug)]
pub(super) struct Lag {
    view: Arc<MemoryStore>,
    behind: BTreeMap<Key, VecDeque<Option<Item>>>,
}

impl Lag {
    pub(super) fn new(layout: Layout, page_bytes: usize) -> Self {
        Self { view: Arc::new(MemoryStore::with_page_bytes(layout, page_bytes)), behind: BTreeMap::new() }
    }

    pub(super) fn view(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.view)
    }

    /// Adds a change of an item, to apply it later.
    pub(super) fn note(&mut self, key: &Key, new: Option<&Item>) {
        self.behind.entry(key.clone()).or_default().push_back(new.cloned());
    }

    /// Number of items that are behind.
    pub(super) fn len(&self) -> usize {
        self.behind.len()
    }

    /// Applies the next change of the item at this position.
    pub(super) fn catch_up(&mut self, at: usize) {
        let Some(key) = self.behind.keys().nth(at).cloned() else { return };
        let changes = self.behind.get_mut(&key);
        let new = changes.and_then(VecDeque::pop_front).flatten();
        self.behind.retain(|_, changes| !changes.is_empty());
        let action = new.map_or(Action::Delete, Action::Put);
        let write = Write { table: Table::Main, key, action, guard: None };
        // The main table accepted the write, so the view does too; and the model is never busy.
        drop(self.view.write(&write).now_or_never());
        drop(self.view.take_records());
    }
}
