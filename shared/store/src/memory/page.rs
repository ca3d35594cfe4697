//! Pages, of a table's items in order of their keys.

use std::{collections::BTreeMap, ops::Bound};

use derive::query::{Order, Query};
use keys::{item::Item, key::Key, layout::Layout, size::item_bytes};

use crate::{Cursor, Page, Segment};

pub(super) fn query(
    layout: &Layout,
    items: &BTreeMap<Key, Item>,
    query: &Query,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let first = Key::new(&query.pk, query.sk.first());
    let among = items
        .range((Bound::Included(first), Bound::Unbounded))
        .take_while(|(key, _)| key.pk == query.pk && !query.sk.is_past(&key.sk));
    let after = after.and_then(|Cursor(item)| layout.key(item));
    let names = [&layout.pk, &layout.sk];
    match query.order {
        Order::Ascending => {
            let found = among.filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after));
            paged(found.map(|(_, item)| item.clone()), &names, page_bytes, query.limit)
        }
        Order::Descending => {
            let found: Vec<_> = among.filter(|(key, _)| after.as_ref().is_none_or(|after| *key < after)).collect();
            paged(found.into_iter().rev().map(|(_, item)| item.clone()), &names, page_bytes, query.limit)
        }
    }
}

pub(super) fn scan(
    layout: &Layout,
    items: &BTreeMap<Key, Item>,
    segment: Segment,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let from = after.and_then(|Cursor(item)| layout.key(item)).map_or(Bound::Unbounded, Bound::Excluded);
    let found = items.range((from, Bound::Unbounded)).filter(|(key, _)| segment_of(key, segment.of) == segment.number);
    paged(found.map(|(_, item)| item.clone()), &[&layout.pk, &layout.sk], page_bytes, None)
}

/// The segment in which an item is, of so many: all items of a partition are in one.
fn segment_of(key: &Key, n_segments: u32) -> u32 {
    let sum = key.pk.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    sum % n_segments.max(1)
}

/// The items up to the first with which the page is full, by bytes or by the query's limit.
///
/// A page that is full says that there may be more, even when there is none, as DynamoDB does.
pub(super) fn paged(
    found: impl Iterator<Item = Item>,
    cursor_names: &[&String],
    page_bytes: usize,
    limit: Option<u32>,
) -> Page {
    let n_items_max = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let mut bytes = 0;
    for item in found {
        bytes += item_bytes(&item);
        if bytes >= page_bytes || items.len() + 1 >= n_items_max {
            let next = item.iter().filter(|(name, _)| cursor_names.iter().any(|cursor| cursor == name));
            let next = next.map(|(name, value)| (name, value.clone())).collect();
            items.push(item);
            return Page { items, next: Some(Cursor(next)) };
        }
        items.push(item);
    }
    Page { items, next: None }
}
