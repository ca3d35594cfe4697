//! What a write consumes, by DynamoDB's rules.
//!
//! | arm   | before and after                    | units                  |
//! |-------|-------------------------------------|------------------------|
//! | table | whatever they are                   | the larger, at least 1 |
//! | index | no entry, or the same entry         | none                   |
//! | index | one entry, or two in the same place | the larger             |
//! | index | two entries in different places     | both                   |
//!
//! In a transaction the table's arm counts twice, an index's once. Source: dynoxide's captures of eu-west-2.

use keys::{
    item::Item,
    layout::{Index, Layout},
    size::item_bytes,
    value::same_item,
};

use super::index;
use crate::{Units, size::write_units};

/// A transaction writes to the table twice: to prepare, and to commit.
pub(super) const TRANSACT_FACTOR: Units = 2.0;

pub(super) fn table_units(old: Option<&Item>, new: Option<&Item>) -> Units {
    let bytes = |item: Option<&Item>| item.map_or(0, item_bytes);
    write_units(bytes(old).max(bytes(new)))
}

pub(super) fn index_units(layout: &Layout, old: Option<&Item>, new: Option<&Item>) -> Units {
    layout.indexes.iter().map(|index| one_index_units(layout, index, old, new)).sum()
}

fn one_index_units(layout: &Layout, index: &Index, old: Option<&Item>, new: Option<&Item>) -> Units {
    let entry = |item: Option<&Item>| {
        let item = item?;
        let (pk, sk) = index::keys(index, item)?;
        Some(((pk.to_owned(), sk.to_owned()), index::entry(layout, index, item)))
    };
    let units = |entry: &Item| write_units(item_bytes(entry));
    match (entry(old), entry(new)) {
        (None, None) => 0.0,
        (Some((_, entry)), None) | (None, Some((_, entry))) => units(&entry),
        (Some((old_place, old)), Some((new_place, new))) => {
            if old_place != new_place {
                units(&old) + units(&new)
            } else if same_item(&old, &new) {
                0.0
            } else {
                units(&old).max(units(&new))
            }
        }
    }
}
