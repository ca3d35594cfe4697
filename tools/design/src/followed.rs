//! The derived writes of creating an item, and their price.
//!
//! Every derivation plans the item's sample as an insert. The counts form one transaction with one receipt. Each
//! counter's display is written. Each refreshed item is written once, however many derivations write to it. Items that
//! only a query finds are left out, because their number is unknown.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::sum_of,
    change::{Change, Images},
    derivation::Derivation,
    effect::Effect,
    family::Family,
    kind::Refresh,
    part::Part,
    plan::plan,
    position::DerivationAt,
};
use keys::{counter::COUNTER, entity::Definition, item::Item, key::Key};

use crate::{
    Design,
    price::{Price, price},
};

/// The derived writes of creating an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consequences {
    /// Names of the derivations that write.
    pub derivations: BTreeSet<String>,
    /// The price of these writes.
    pub price: Price,
}

/// The derived writes of creating an entity's sample; `None` if there are none, if there is no sample, or if the entity
/// is derived.
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
    let mut counting: BTreeMap<DerivationAt, Price> = BTreeMap::new();
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
            Effect::Look(request) => costs(&mut written, request.item, price(design, derivation)),
            _ => continue,
        }
        set_going.derivations.insert(derivation.label().to_owned());
    }
    for price in counting.values() {
        set_going.price.table += price.table;
        // One receipt proves all counts of a change.
        set_going.price.ledger = set_going.price.ledger.max(price.ledger);
    }
    for price in written.values() {
        set_going.price.table += price.table;
        set_going.price.indexes += price.indexes;
    }
    Some(set_going).filter(|set_going| !set_going.derivations.is_empty())
}

/// Notes the price of writing an item: the highest price of any derivation's part of it.
fn costs(written: &mut BTreeMap<Key, Price>, item: Key, price: Option<Price>) {
    let Some(price) = price else { return };
    let held = written.entry(item).or_default();
    if price.total() > held.total() {
        *held = price;
    }
}

/// An entity's sample as the application creates it; `None` if the entity is derived.
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

/// True if the derivation displays a count on the item itself. A new item has no count yet.
fn shows(design: &Design, definition: &Definition, derivation: &Derivation) -> bool {
    let is_derived = |part: &Part| {
        let own = definition.derived_attributes.iter().map(|name| Part::attribute(&definition.name, name));
        part.entity == COUNTER || own.into_iter().any(|own| own == *part)
    };
    let is_own = |refresh: &dyn Refresh| refresh.target() == definition.name && !refresh.recurs();
    derivation.kind.refresh().is_some_and(is_own) && reads(design, derivation).iter().any(is_derived)
}

/// The displays of a count, and the attributes that the same write derives from them.
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

    #[test]
    fn what_follows_costs_what_is_measured_on_the_embedded_database() {
        let schema = catalogue::schema();
        let design = Design::declared(schema.clone(), catalogue::catalogue(&schema).unwrap());
        let total = |entity: &str| followed(&design, design.schema.entity(entity).unwrap()).unwrap().price.total();
        // The units of `tests/database/cost.rs`, for existing items.
        for (entity, units) in [("Follow", 10.0), ("Like", 5.0), ("Comment", 6.0)] {
            assert!((total(entity) - units).abs() < f64::EPSILON, "{entity}: {}", total(entity));
        }
    }

    #[test]
    fn entries_follow_although_they_carry_a_derived_attribute() {
        let text = r#"
            [table]
            partition-key = "PK"
            sort-key = "SK"
            type = "type"
            [entity.Lot]
            partition-key = "T#{t}"
            sort-key = "LOT#{lot}"
            derived-attributes = ["bidder"]
            [entity.Bid]
            partition-key = "B#{bidder}"
            sort-key = "BID#{t}#{lot}"
            attributes = ["amount"]
            derived-attributes = ["name"]
            [entity.Bidder]
            partition-key = "B#{bidder}"
            sort-key = "BIDDER"
            attributes = ["name"]
            [derivation.best-bidder]
            kind = "latest"
            from = "Bid"
            to = "Lot"
            by = "amount"
            attributes = { name = "bidder" }
            [derivation.name]
            kind = "copy"
            from = "Bidder"
            to = "Bid"
            attributes = ["name"]
        "#;
        let (schema, catalogue) = manifest::load(text).unwrap();
        let design = Design::declared(schema, catalogue);
        let follows = followed(&design, design.schema.entity("Bid").unwrap()).unwrap().derivations;
        assert!(follows.contains("best-bidder-entries"), "{follows:?}");
    }
}
