//! Indexes, calculated from the items whenever they are asked for.
//!
//! An item is in an index when it has both of the index's keys. An entry holds the table's keys, the index's keys and
//! the attributes that the index projects.

use std::collections::BTreeMap;

use derive::write::Query;
use keys::{
    item::{Item, text},
    key::Key,
    layout::{Index, Layout},
};

use super::page::paged;
use crate::{Cursor, Page};

/// The keys of an item's entry in an index; `None` when it has none.
pub(super) fn keys<'a>(index: &Index, item: &'a Item) -> Option<(&'a str, &'a str)> {
    Some((text(item, &index.pk)?, text(item, &index.sk)?))
}

/// What an index holds of an item.
pub(super) fn entry(layout: &Layout, index: &Index, item: &Item) -> Item {
    let projected = |name: &String| {
        [&layout.pk, &layout.sk, &index.pk, &index.sk].contains(&name) || index.projection.contains(name)
    };
    item.iter().filter(|(name, _)| projected(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A page of an index: in order of its sort key, and of the table's keys where that is the same.
pub(super) fn query(
    layout: &Layout,
    index: &Index,
    items: &BTreeMap<Key, Item>,
    query: &Query,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let mut entries = BTreeMap::new();
    for (key, item) in items {
        if let Some((pk, sk)) = keys(index, item)
            && pk == query.pk
            && sk.starts_with(&query.sk_prefix)
        {
            entries.insert((sk.to_owned(), key), entry(layout, index, item));
        }
    }
    let after = after.and_then(|Cursor(item)| Some((text(item, &index.sk)?.to_owned(), layout.key(item)?)));
    let is_new = |(sk, key): &(String, &Key)| {
        after.as_ref().is_none_or(|(after_sk, after_key)| (sk, *key) > (after_sk, after_key))
    };
    let entries: Vec<Item> = entries.into_iter().filter(|(at, _)| is_new(at)).map(|(_, entry)| entry).collect();
    let cursor_names = [&layout.pk, &layout.sk, &index.pk, &index.sk];
    paged(entries.iter(), &cursor_names, page_bytes)
}
