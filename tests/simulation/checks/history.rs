//! Everything that was written to the table, replayed from the first record to the last.

use std::collections::BTreeMap;

use derive::derived::Items;
use keys::{item::Item, key::Key};

use crate::platform::stream::{Author, Stream, TableChange};

/// The table at one moment, and which records made its items.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) items: Items,
    /// The record that inserted the item, present or deleted.
    pub(crate) inserted: BTreeMap<Key, usize>,
    /// The last record of each item.
    pub(crate) written: BTreeMap<Key, usize>,
    /// The last record of each item that the service did not write.
    pub(crate) touched: BTreeMap<Key, usize>,
    /// All versions of each item, the oldest first.
    pub(crate) versions: BTreeMap<Key, Vec<ItemVersion>>,
}

/// An item from a record on.
#[derive(Debug)]
pub(crate) struct ItemVersion {
    pub(crate) at: usize,
    pub(crate) at_ms: u64,
    /// `None` when it was deleted.
    pub(crate) item: Option<Item>,
}

/// Passes each record with the table before it to `see`, and returns the table after the last.
pub(crate) fn replayed<E>(
    stream: &Stream,
    mut see: impl FnMut(&Past, usize, &TableChange) -> Result<(), E>,
) -> Result<Past, E> {
    let mut past = Past::default();
    for (at, made) in stream.made.iter().enumerate() {
        see(&past, at, made)?;
        past.written.insert(made.key.clone(), at);
        let version = ItemVersion { at, at_ms: made.at_ms, item: made.new.clone() };
        past.versions.entry(made.key.clone()).or_default().push(version);
        if made.author != Author::Service {
            past.touched.insert(made.key.clone(), at);
        }
        match &made.new {
            Some(new) => {
                if made.old.is_none() {
                    past.inserted.insert(made.key.clone(), at);
                }
                past.items.insert(made.key.clone(), new.clone());
            }
            None => drop(past.items.remove(&made.key)),
        }
    }
    Ok(past)
}
