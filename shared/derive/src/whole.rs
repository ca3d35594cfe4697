//! The definition: what all derived data should be, from all items of a table.
//!
//! This is what `verify` and the tests hold the service to. It shares no code with planning and refreshing but the
//! interpretation of single items, and it is as dull as it can be: take the ground, and let each derivation add its
//! part, those that others build on first.
//!
//! A history count cannot be told from the ground, so its counters are taken as they are stored, where they are not
//! below what the ground shows; a display of it is a display of that.

use std::collections::BTreeMap;

use keys::{item::Item, key::Key};

use crate::{
    catalogue::Catalogue,
    derivation::{Counts, Derived, Items},
    refresh::sums,
    schema::Schema,
};

/// All that should be derived.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// What each derivation derives, in the catalogue's order.
    pub by_derivation: Vec<(String, Vec<Derived>)>,
}

/// The ground: items without those, and without those attributes, that are derived.
#[must_use]
pub fn ground(schema: &Schema, items: &Items) -> Items {
    let mut ground = Items::new();
    for (key, item) in items {
        let Some(image) = schema.image(key, item).filter(|image| !image.definition.derived) else { continue };
        let derived = &image.definition.derived_attributes;
        let kept = item.iter().filter(|(name, _)| !derived.iter().any(|other| other == name));
        ground.insert(key.clone(), kept.map(|(name, value)| (name, value.clone())).collect());
    }
    ground
}

/// What should be derived from these items, of which only the ground is read.
#[must_use]
pub fn derive(schema: &Schema, catalogue: &Catalogue, items: &Items) -> Whole {
    let is_history = |name: &str| catalogue.derivations().any(|d| d.name == name && d.kind.is_history());
    let mut counts: Counts = sums(schema, items.values());
    counts.retain(|(_, derivation), _| is_history(derivation));
    let mut items = ground(schema, items);
    let mut whole = Whole::default();
    for derivation in catalogue.derivations() {
        let derived = derivation.kind.derive(&derivation.name, schema, &items, &counts);
        for part in &derived {
            match part {
                Derived::Count { target, value, at_least } => {
                    let count = counts.entry((target.clone(), derivation.name.clone())).or_default();
                    *count = if *at_least { (*count).max(*value) } else { *value };
                }
                Derived::Item { key, item } => {
                    items.insert(key.clone(), item.clone());
                }
                // Nothing that is derived depends on where the item stands.
                Derived::Placed { .. } => {}
                Derived::Attributes { key, attributes } => add(&mut items, key, attributes),
            }
        }
        whole.by_derivation.push((derivation.name.clone(), derived));
    }
    whole
}

fn add(items: &mut BTreeMap<Key, Item>, key: &Key, attributes: &[crate::write::Wanted]) {
    let Some(item) = items.get_mut(key) else { return };
    for wanted in attributes {
        match &wanted.value {
            Some(value) => drop(item.insert(wanted.name.clone(), value.clone())),
            None => drop(item.remove(&wanted.name)),
        }
    }
}
