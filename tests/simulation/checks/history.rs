//! All that was written to the table, read again from the first record to the last.

use std::collections::BTreeMap;

use derive::derived::Items;
use keys::{item::Item, key::Key};

use crate::stream::{Author, Made, Stream};

/// The table as it was, and when its items were made.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The items.
    pub(crate) items: Items,
    /// Which record made the item that stands here, or stood here last.
    pub(crate) inserted: BTreeMap<Key, usize>,
    /// Which record wrote it last.
    pub(crate) written: BTreeMap<Key, usize>,
    /// Which record of anybody but the service wrote it last.
    pub(crate) touched: BTreeMap<Key, usize>,
    /// All that it has been, from first to last.
    pub(crate) versions: BTreeMap<Key, Vec<Version>>,
}

/// What an item was from a record on.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) at: usize,
    pub(crate) at_ms: u64,
    /// `None` when it was not there.
    pub(crate) item: Option<Item>,
}

/// Shows each record with the table before it, and gives the table behind the last.
pub(crate) fn told<E>(stream: &Stream, mut see: impl FnMut(&Past, usize, &Made) -> Result<(), E>) -> Result<Past, E> {
    let mut past = Past::default();
    for (at, made) in stream.made.iter().enumerate() {
        see(&past, at, made)?;
        past.written.insert(made.key.clone(), at);
        let version = Version { at, at_ms: made.at_ms, item: made.new.clone() };
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
