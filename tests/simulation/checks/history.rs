//! All that was written to the table, read again from the first record to the last.

use std::collections::BTreeMap;

use derive::derivation::Items;
use keys::key::Key;

use crate::stream::{Made, Stream};

/// The table as it was, and when its items were made.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The items.
    pub(crate) items: Items,
    /// Which record made the item that stands here, or stood here last.
    pub(crate) inserted: BTreeMap<Key, usize>,
    /// Which record wrote it last.
    pub(crate) written: BTreeMap<Key, usize>,
}

/// Shows each record with the table before it, and gives the table behind the last.
pub(crate) fn told<E>(stream: &Stream, mut see: impl FnMut(&Past, usize, &Made) -> Result<(), E>) -> Result<Past, E> {
    let mut past = Past::default();
    for (at, made) in stream.made.iter().enumerate() {
        see(&past, at, made)?;
        past.written.insert(made.key.clone(), at);
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
