//! Which attribute names the kind of an item.

use std::collections::{BTreeMap, BTreeSet};

use keys::item::{Item, text};

use crate::shape::TableShape;

/// Usual names of such an attribute, the most certain first. In small letters.
const NAMES: [&str; 12] = [
    "__typename",
    "__edb_e__",
    "_et",
    "entitytype",
    "entity_type",
    "_type",
    "itemtype",
    "recordtype",
    "entity",
    "type",
    "objecttype",
    "kind",
];

/// The names of which nothing but the kind of an item is usual, so that keys without a form do not speak against them.
const N_CERTAIN: usize = 6;

/// Smallest share of the items that have the attribute. Some tables have an item for locks or migrations without it.
const SHARE_MIN: f64 = 0.95;

/// Smallest share of the items of one form of keys that have the same value of it.
const AGREEING_MIN: f64 = 0.99;

/// Most kinds of items. An attribute with more different values is rather a name or a date.
const KINDS_MAX: usize = 64;

/// Fewest items that show that an attribute with an unusual name is the type.
const ITEMS_MIN: usize = 20;

/// Finds the attribute. `skeletons` are the constant parts of each item's key.
pub(crate) fn find(shape: &TableShape, items: &[&Item], skeletons: &[String]) -> Option<String> {
    let mut names: BTreeSet<&str> = items.iter().flat_map(|item| item.keys()).collect();
    names.retain(|name| !shape.is_key(name));
    let rank = |name: &str| NAMES.iter().position(|it| *it == name.to_lowercase());
    let mut candidates: Vec<(usize, &str)> =
        names.into_iter().map(|name| (rank(name).unwrap_or(NAMES.len()), name)).collect();
    candidates.sort_unstable();
    let found = candidates.into_iter().find(|(rank, name)| names_kinds(name, *rank, items, skeletons));
    found.map(|(_, name)| name.to_owned())
}

fn names_kinds(name: &str, rank: usize, items: &[&Item], skeletons: &[String]) -> bool {
    let mut by_skeleton = BTreeMap::<&str, BTreeMap<&str, usize>>::new();
    let mut kinds = BTreeSet::new();
    let mut n_with = 0;
    for (item, skeleton) in items.iter().zip(skeletons) {
        let Some(kind) = text(item, name) else { continue };
        n_with += 1;
        kinds.insert(kind);
        *by_skeleton.entry(skeleton).or_default().entry(kind).or_default() += 1;
    }
    let is_known = rank < NAMES.len();
    let is_few = kinds.len() <= KINDS_MAX && kinds.iter().all(|kind| !kind.is_empty() && kind.len() <= 64);
    if n_with == 0 || share(n_with, items.len()) < SHARE_MIN || !is_few {
        return false;
    }
    if !is_known && (n_with < ITEMS_MIN || kinds.len() < 2 || by_skeleton.len() != kinds.len()) {
        return false;
    }
    if rank < N_CERTAIN {
        return true;
    }
    // A subtype, such as the kinds of a notification, varies within a form.
    let n_agreeing: usize = by_skeleton.values().filter_map(|kinds| kinds.values().max()).sum();
    share(n_agreeing, n_with) >= AGREEING_MIN
}

/// A part of a number of things, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than the 15 digits that stay exact")]
pub(crate) fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}
