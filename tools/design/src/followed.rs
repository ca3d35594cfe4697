//! The derived writes of creating an item, and their price.
//!
//! Every derivation plans the item's sample as an insert. The counts form one transaction with one receipt. Each
//! counter's display is written. Each refreshed item is written once, however many derivations write to it. Items that
//! only a query finds are left out, because their number is unknown.
//!
//! # Growth
//!
//! The size up to which a table may grow before an update of a counter costs more than one write unit, under
//! watermarks.
//!
//! A counter stores a watermark for each stream shard that recently updated it, and the stream has a shard for each
//! partition of the table. If a counter has several items, each stream shard updates one of them, so each item stores
//! only a part of the watermarks.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::sum_of,
    change::{Change, Images},
    declaration::Count,
    derivation::Derivation,
    effect::Effect,
    family::Family,
    kind::{Refresh, Shape},
    part::Part,
    plan::plan,
    position::DerivationAt,
};
use engine::ledger::watermarks::{ENTRY_BYTES, GENERATIONS};
use keys::{
    counter::{COUNTER, CounterKey, REVISION, SHOWN, SUM, VALUE},
    entity::Definition,
    item::Item,
    key::Key,
    size::item_bytes,
};
use serde_dynamo::AttributeValue;
use store::WRITE_UNIT_BYTES;

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
    !derivation.kind.refresh().is_some_and(Refresh::recurs) && reads(design, derivation).iter().any(is_derived)
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

// ---- growth ----

/// Counts whose counters grow alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Number of items for each counter (`shards`).
    pub n_items: u32,
    /// Maximum number of partitions of the table at which an update costs one write unit. With several items it is an
    /// average, because a hash spreads the stream shards over the items.
    pub partitions_max: u64,
    /// Names of the derivations.
    pub derivations: Vec<String>,
}

/// The growth of the counters of all counts, by the number of their items.
#[must_use]
pub fn growth(design: &Design) -> Vec<CounterGrowth> {
    let mut groups: BTreeMap<(u32, u64), Vec<String>> = BTreeMap::new();
    for derivation in design.catalogue.derivations() {
        let Shape::Count(count) = derivation.kind.shape() else { continue };
        let Some(counter) = counter(design, &derivation.name, count) else { continue };
        let group = (count.n_shards, partitions_max(item_bytes(&counter), count.n_shards));
        groups.entry(group).or_default().push(derivation.label().to_owned());
    }
    let grouped = |((n_items, partitions_max), derivations)| CounterGrowth { n_items, partitions_max, derivations };
    groups.into_iter().map(grouped).collect()
}

/// Maximum number of partitions whose watermarks fit into a write unit, for items of this many bytes without
/// watermarks.
fn partitions_max(bytes: usize, n_items: u32) -> u64 {
    let n_entries = WRITE_UNIT_BYTES.saturating_sub(bytes) / ENTRY_BYTES;
    u64::try_from(n_entries).unwrap_or(u64::MAX).saturating_mul(n_items.into()) / GENERATIONS
}

/// A count of ten digits.
const COUNTED: &str = "1234567890";

/// A revision, which begins with the time in milliseconds.
const FIRST_REVISION: &str = "1705315200001";

/// A counter for the sample of its target, without watermarks; `None` if the target has no sample.
fn counter(design: &Design, derivation: &str, count: &Count) -> Option<Item> {
    let layout = &design.schema.layout;
    let target = layout.key(design.samples.item(&count.target)?)?;
    let key = CounterKey { target, derivation: derivation.to_owned(), shard: 0 }.key().ok()?;
    let mut item = layout.key_item(&key);
    item.extend(layout.type_of(COUNTER));
    let numbers = [VALUE].into_iter().chain(count.sum.as_ref().map(|_| SUM)).map(|name| (name, COUNTED));
    let numbers = numbers.chain([(REVISION, FIRST_REVISION)]);
    item.extend(numbers.map(|(name, number)| (name.to_owned(), AttributeValue::N(number.to_owned()))));
    item.insert(SHOWN.to_owned(), AttributeValue::Bool(true));
    Some(item)
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
}
