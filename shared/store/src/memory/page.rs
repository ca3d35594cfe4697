//! Pages, of a table's items in order of their keys.

use std::{collections::BTreeMap, ops::Bound};

use derive::write::Query;
use keys::{item::Item, key::Key, layout::Layout};

use crate::{Cursor, Page, size::item_bytes};

pub(super) fn query(
    layout: &Layout,
    items: &BTreeMap<Key, Item>,
    query: &Query,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let first = Key::new(&query.pk, &query.sk_prefix);
    let from = match after.and_then(|Cursor(item)| layout.key(item)) {
        Some(after) if after >= first => Bound::Excluded(after),
        _ => Bound::Included(first),
    };
    let found = items
        .range((from, Bound::Unbounded))
        .take_while(|(key, _)| key.pk == query.pk && key.sk.starts_with(&query.sk_prefix))
        .map(|(_, item)| item.clone());
    paged(found, &[&layout.pk, &layout.sk], page_bytes)
}

pub(super) fn scan(layout: &Layout, items: &BTreeMap<Key, Item>, after: Option<&Cursor>, page_bytes: usize) -> Page {
    let from = after.and_then(|Cursor(item)| layout.key(item)).map_or(Bound::Unbounded, Bound::Excluded);
    let found = items.range((from, Bound::Unbounded)).map(|(_, item)| item.clone());
    paged(found, &[&layout.pk, &layout.sk], page_bytes)
}

/// The items up to the first with which the page is full.
///
/// A page that is full says that there may be more, even when there is none, as DynamoDB does.
pub(super) fn paged(found: impl Iterator<Item = Item>, cursor_names: &[&String], page_bytes: usize) -> Page {
    let mut items = Vec::new();
    let mut bytes = 0;
    for item in found {
        bytes += item_bytes(&item);
        if bytes >= page_bytes {
            let next = item.iter().filter(|(name, _)| cursor_names.iter().any(|cursor| cursor == name));
            let next = next.map(|(name, value)| (name, value.clone())).collect();
            items.push(item);
            return Page { items, next: Some(Cursor(next)) };
        }
        items.push(item);
    }
    Page { items, next: None }
}
