//! Indexes: the keys of their items are maintained by each write; an entry is built when it is read.
//!
//! An item is in an index if it has both of the index's keys. An entry has the table's keys, the index's keys and the
//! projected attributes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use derive::query::{Order, Query};
use keys::{
    item::{Item, text},
    key::Key,
    layout::{Index, Layout},
    tables::TableForms,
};

use crate::{Cursor, Page, memory::paged};

/// The entries of an index, in its order: partition key and sort key of the index, key of the item.
pub(super) type Places = BTreeSet<(String, String, Key)>;

/// Moves an item's entry in an index to its new position.
pub(super) fn moved(index: &Index, places: &mut Places, key: &Key, old: Option<&Item>, new: Option<&Item>) {
    let place = |item: Option<&Item>| {
        let (pk, sk) = keys(index, item?)?;
        Some((pk.to_owned(), sk.to_owned(), key.clone()))
    };
    let (old, new) = (place(old), place(new));
    if old != new {
        old.map(|old| places.remove(&old));
        places.extend(new);
    }
}

/// The keys of an item's entry in an index; `None` if it has none.
pub(super) fn keys<'a>(index: &Index, item: &'a Item) -> Option<(&'a str, &'a str)> {
    Some((text(item, &index.pk)?, text(item, &index.sk)?))
}

/// An index's entry for an item.
pub(super) fn entry(layout: &Layout, index: &Index, item: &Item) -> Item {
    if let Some(entry) = layout.forms.as_ref().and_then(|forms| in_forms(forms, index, item)) {
        return entry;
    }
    let keys = [&layout.pk, &layout.sk, &index.pk, &index.sk];
    let stored = item.iter().filter(|(name, _)| index.projects(name) || keys.iter().any(|key| key == name));
    stored.map(|(name, value)| (name, value.clone())).collect()
}

/// The entry for a table of any form: the index has attributes in their stored form, and all of them without a declared
/// projection.
fn in_forms(forms: &TableForms, index: &Index, item: &Item) -> Option<Item> {
    let (table, form) = forms.index(&index.name)?;
    let stored = table.outward(item)?;
    let held = stored
        .iter()
        .filter(|(name, _)| table.index_holds(form, name))
        .map(|(name, value)| (name.to_owned(), value.clone()));
    table.inward(held.collect())
}

/// A page of an index: in order of its sort key, and then of the table's keys.
pub(super) fn query(
    layout: &Layout,
    (index, places): (&Index, &Places),
    items: &BTreeMap<Key, Item>,
    query: &Query,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let first = (query.pk.clone(), query.sk.first().to_owned(), Key::new("", ""));
    let after =
        after.and_then(|Cursor(item)| Some((query.pk.clone(), text(item, &index.sk)?.to_owned(), layout.key(item)?)));
    let among = places
        .range((Bound::Included(first), Bound::Unbounded))
        .take_while(|(pk, sk, _)| *pk == query.pk && !query.sk.is_past(sk));
    let found = |(_, _, key): &(String, String, Key)| Some(entry(layout, index, items.get(key)?));
    let names = [&layout.pk, &layout.sk, &index.pk, &index.sk];
    match query.order {
        Order::Ascending => {
            let among = among.filter(|place| after.as_ref().is_none_or(|after| *place > after));
            paged(among.filter_map(found), &names, page_bytes, query.limit)
        }
        Order::Descending => {
            let among: Vec<_> = among.filter(|place| after.as_ref().is_none_or(|after| *place < after)).collect();
            paged(among.into_iter().rev().filter_map(found), &names, page_bytes, query.limit)
        }
    }
}
