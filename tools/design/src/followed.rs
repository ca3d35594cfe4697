//! What the making of an item sets going, and what all of that costs.
//!
//! The item's sample is planned as an insert, by every derivation. What it counts goes in as one transaction with one
//! receipt; each counter's display is written; and every item that is looked at is written once, whoever writes into it.
//! Items that a query would find are left out, since nobody knows how many they are.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::sum_of,
    change::{Change, Images},
    derivation::{Derivation, Family, Part},
    effect::Effect,
    kind::Refresh,
    plan::plan,
};
use keys::{counter::COUNTER, entity::Definition, item::Item, key::Key};

use crate::{
    Design,
    price::{Price, price},
};

/// What the making of an item sets going.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consequences {
    /// Names of the derivations that write.
    pub derivations: BTreeSet<String>,
    /// What they write costs.
    pub price: Price,
}

/// What the making of an entity's sample sets going; `None` where there is none, or where it is derived itself.
#[must_use]
pub fn followed(design: &Design, definition: &Definition) -> Option<Consequences> {
    let item = made(design, definition)?;
    let change = Change {
        id: String::new(),
        sequence_number: String::new(),
        created_ms: None,
        key: design.schema.layout.key(&item)?,
        images: Images::Inserted(item),
    };
    let families = [Family::Additive, Family::LevelTriggered];
    let planned = plan(&design.schema, &design.catalogue, &families, &change);
    let mut set_going = Consequences::default();
    let mut counting: BTreeMap<usize, Price> = BTreeMap::new();
    let mut written: BTreeMap<Key, Price> = BTreeMap::new();
    for (at, effect) in planned.effects {
        let Some(derivation) = design.catalogue.derivation(at) else { continue };
        match effect {
            Effect::Add(add) => {
                counting.extend(price(design, derivation).map(|price| (at, price)));
                for shown in displays(design, derivation) {
                    costs(&mut written, add.target.clone(), price(design, shown));
                    set_going.derivations.insert(shown.name.clone());
                }
            }
            Effect::Measure(_) => counting.extend(price(design, derivation).map(|price| (at, price))),
            Effect::Look(_) if shows(design, definition, derivation) => continue,
            Effect::Look(bell) => costs(&mut written, bell.item, price(design, derivation)),
            _ => continue,
        }
        set_going.derivations.insert(derivation.name.clone());
    }
    for price in counting.values() {
        set_going.price.table += price.table;
        // One receipt is the proof of all that a change counts.
        set_going.price.ledger = set_going.price.ledger.max(price.ledger);
    }
    for price in written.values() {
        set_going.price.table += price.table;
        set_going.price.indexes += price.indexes;
    }
    Some(set_going).filter(|set_going| !set_going.derivations.is_empty())
}

/// Notes what a write of an item costs: the most that any derivation's part of it does.
fn costs(written: &mut BTreeMap<Key, Price>, item: Key, price: Option<Price>) {
    let Some(price) = price else { return };
    let held = written.entry(item).or_default();
    if price.total() > held.total() {
        *held = price;
    }
}

/// An entity's sample as the application makes it; `None` where the entity is derived.
#[must_use]
pub fn made(design: &Design, definition: &Definition) -> Option<Item> {
    let mut item = design.samples.item(&definition.name).filter(|_| !definition.derived)?.clone();
    let derived = definition.indexes.iter().filter(|index| index.derived);
    let keys = derived.filter_map(|index| design.schema.layout.index(&index.index));
    let keys: Vec<&String> = keys.flat_map(|names| [&names.pk, &names.sk]).collect();
    for name in definition.derived_attributes.iter().chain(keys) {
        item.remove(name);
    }
    Some(item)
}

fn reads(design: &Design, derivation: &Derivation) -> Vec<Part> {
    derivation.kind.reach(&design.schema).map(|reach| reach.reads).unwrap_or_default()
}

/// Does it show, in an item of this entity, what is derived? Then it has nothing to show in a new one.
fn shows(design: &Design, definition: &Definition, derivation: &Derivation) -> bool {
    let is_derived = |part: &Part| {
        let own = definition.derived_attributes.iter().map(|name| Part::attribute(&definition.name, name));
        part.entity == COUNTER || own.into_iter().any(|own| own == *part)
    };
    !derivation.kind.refresh().is_some_and(Refresh::recurs) && reads(design, derivation).iter().any(is_derived)
}

/// The displays of a count, and what is made of those in the same write.
fn displays<'a>(design: &'a Design, count: &Derivation) -> Vec<&'a Derivation> {
    let counters = [count.name.clone(), sum_of(&count.name)].map(|name| Part::attribute(COUNTER, &name));
    let reads_any = |derivation: &Derivation, parts: &[Part]| {
        reads(design, derivation).iter().any(|read| parts.iter().any(|part| read.meets(part)))
    };
    let shown: Vec<&Derivation> =
        design.catalogue.derivations().filter(|derivation| reads_any(derivation, &counters)).collect();
    let writes = |derivation: &&Derivation| derivation.kind.reach(&design.schema).map(|reach| reach.writes);
    let written: Vec<Part> = shown.iter().filter_map(|derivation| writes(derivation).ok()).flatten().collect();
    let more = design.catalogue.derivations().filter(|derivation| reads_any(derivation, &written));
    let more: Vec<&Derivation> = more.collect();
    shown.into_iter().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_follows_costs_what_is_measured_on_the_embedded_database() {
        let design = crate::shipped::design().await.unwrap();
        let total = |entity: &str| followed(&design, design.schema.entity(entity).unwrap()).unwrap().price.total();
        // Those of `tests/database/cost.rs`, for items that were there before.
        for (entity, units) in [("Follow", 10.0), ("Like", 5.0), ("Comment", 6.0)] {
            assert!((total(entity) - units).abs() < f64::EPSILON, "{entity}: {}", total(entity));
        }
    }
}
