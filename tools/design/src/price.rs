//! The price of writes in write units, by DynamoDB's rules as the store's model implements them.
//!
//! This module calculates nothing. It applies a write to a sample item in the model, and the model's response is the
//! price, with the indexes separate. So a price is valid for items of the sample's size.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::sum_of,
    change::{Change, Images},
    declaration::{Cascade, Hanging},
    derivation::Derivation,
    effect::Effect,
    family::Family,
    guard::{Guard, Purpose},
    kind::{Refresh, Shape},
    part::{Part, PartOf},
    plan::plan,
    position::DerivationAt,
    write::{Action, Table, Transaction, Update, Write},
};
use futures::FutureExt as _;
use keys::{
    counter::{COUNTER, CounterKey},
    entity::Definition,
    item::Item,
    key::Key,
    layout::{Index, Layout},
    size::item_bytes,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store as _, TransactOutcome, Units, memory::MemoryStore, write_units};

use crate::Design;

/// The price of a derivation's write to one item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Write units of the application's table.
    pub table: Units,
    /// Write units of its indexes.
    pub indexes: Units,
    /// Write units of the ledger's table, under receipts.
    pub ledger: Units,
}

impl Price {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> Units {
        self.table + self.indexes + self.ledger
    }
}

/// The price of a derivation for each item that it writes, if every value that it writes changes. `None` if there is no
/// sample.
#[must_use]
pub fn price(design: &Design, derivation: &Derivation) -> Option<Price> {
    let (layout, kind) = (&design.schema.layout, &derivation.kind);
    let refresh: &dyn Refresh = match kind.shape() {
        Shape::Count(_) | Shape::Rollup(_) => return additive(design, derivation),
        Shape::Cascade(declared) => return cascade(design, declared),
        Shape::Mirror(mirror) => mirror,
        Shape::Attributes(refresh) => refresh,
    };
    let new = design.samples.item(refresh.target())?;
    let old = (!refresh.makes_item()).then(|| rewritten(design, derivation, new));
    changed(layout, old.as_ref(), Some(new))
}

/// The price of a change of one item. Without an old item, the change is a creation; without a new one, a deletion.
#[must_use]
pub fn changed(layout: &Layout, old: Option<&Item>, new: Option<&Item>) -> Option<Price> {
    let key = layout.key(new.or(old)?)?;
    let store = MemoryStore::new(layout.clone());
    if let Some(old) = old {
        store.put_raw(Table::Main, old.clone()).ok()?;
    }
    let action = new.map_or(Action::Delete, |new| Action::Put(new.clone()));
    let write = Write { table: Table::Main, key, action, guard: None };
    let Ok(Outcome::Done { units }) = store.write(&write).now_or_never()? else { return None };
    let bytes = |item: Option<&Item>| item.map_or(0, item_bytes);
    let table = write_units(bytes(old).max(bytes(new)));
    Some(Price { table, indexes: units - table, ledger: 0.0 })
}

/// The price of the change in one index.
#[must_use]
pub fn changed_in(layout: &Layout, index: &Index, old: Option<&Item>, new: Option<&Item>) -> Option<Units> {
    let layout = Layout { indexes: vec![index.clone()], ..layout.clone() };
    changed(&layout, old, new).map(|price| price.indexes)
}

/// The item before a derivation's write: every attribute that the derivation writes has another value of the same size.
#[must_use]
pub fn rewritten(design: &Design, derivation: &Derivation, new: &Item) -> Item {
    let layout = &design.schema.layout;
    let writes = derivation.kind.reach(&design.schema).map(|reach| reach.writes).unwrap_or_default();
    let is_own = |name: &&str| !layout.is_key(name) && layout.entity_type.as_deref() != Some(*name);
    let is_written = |name: &str, own: bool| {
        writes.iter().any(|part| match &part.of {
            PartOf::Existence => false,
            PartOf::Attribute(attribute) | PartOf::Inside { attribute, .. } => attribute == name,
            PartOf::AllBut(but) => own && !but.contains(name),
        })
    };
    let names = new.keys().filter(|name| is_written(name, is_own(name)));
    let mut old = new.clone();
    for name in names {
        if let Some(value) = old.get_mut(name) {
            alter(value);
        }
    }
    old
}

/// Replaces a value by another one of the same size.
fn alter(value: &mut AttributeValue) {
    match value {
        AttributeValue::S(text) => {
            let other = if text.ends_with('0') { '1' } else { '0' };
            let ascii = text.pop().is_none_or(|last| last.is_ascii());
            text.push(if ascii { other } else { 'é' });
        }
        AttributeValue::N(text) => {
            let other = if text.ends_with('1') { '2' } else { '1' };
            let _last = text.pop();
            text.push(other);
        }
        AttributeValue::Bool(is) => *is = !*is,
        _ => {}
    }
}

/// The price of a transaction with the receipt of one change and all items that the insert of a source adds to.
fn additive(design: &Design, derivation: &Derivation) -> Option<Price> {
    let layout = &design.schema.layout;
    let mut writes = vec![engine::ledger::receipt(layout, &"0".repeat(EVENT_ID_BYTES), 0)];
    let mut stored = Vec::new();
    for (key, mut item) in added_to(design, derivation)? {
        item.extend(layout.key_item(&key));
        stored.push(item.clone());
        let set = item.into_iter().filter(|(name, _)| *name != layout.pk && *name != layout.sk);
        let action = Action::Update(Update::set(set.collect()));
        writes.push(Write { table: Table::Main, key, action, guard: None });
    }
    transacted(layout, &stored, &writes)
}

/// The price of a transaction on a table with these items.
fn transacted(layout: &Layout, stored: &[Item], writes: &[Write]) -> Option<Price> {
    let of_indexes = |layout: &Layout| -> Option<Units> {
        let store = MemoryStore::new(layout.clone());
        for item in stored {
            store.put_raw(Table::Main, item.clone()).ok()?;
        }
        let transaction = Transaction::new(writes.to_vec()).ok()?;
        let Ok(TransactOutcome::Done { units }) = store.transact(&transaction).now_or_never()? else { return None };
        Some(units.iter().map(|(_, units)| units).sum())
    };
    let without = Layout { indexes: Vec::new(), ..layout.clone() };
    let (all, both) = (of_indexes(layout)?, of_indexes(&without)?);
    let of_ledger: Vec<Write> = writes.iter().filter(|write| write.table == Table::Ledger).cloned().collect();
    let ledger = if of_ledger.is_empty() { 0.0 } else { ledger_units(layout, of_ledger)? };
    Some(Price { table: both - ledger, indexes: all - both, ledger })
}

fn ledger_units(layout: &Layout, writes: Vec<Write>) -> Option<Units> {
    let store = MemoryStore::new(layout.clone());
    let transaction = Transaction::new(writes).ok()?;
    let Ok(TransactOutcome::Done { units }) = store.transact(&transaction).now_or_never()? else { return None };
    Some(units.iter().map(|(_, units)| units).sum())
}

/// Length of an event's id, in bytes. Source: `DynamoDB` Streams records.
const EVENT_ID_BYTES: usize = 32;

/// The items that the insert of a source adds to, counters or buckets, each with a sample.
fn added_to(design: &Design, derivation: &Derivation) -> Option<Vec<(Key, Item)>> {
    let (schema, catalogue) = (&design.schema, &design.catalogue);
    let item = design.samples.source_of(derivation)?;
    let change = Change {
        id: String::new(),
        sequence_number: String::new(),
        created_ms: None,
        key: schema.layout.key(&item)?,
        images: Images::Inserted(item),
    };
    let planned = plan(schema, catalogue, &[Family::Additive], &change);
    let ours = planned.effects.into_iter().filter(|(at, _)| catalogue.name(*at) == derivation.name);
    let added = |effect| match effect {
        Effect::Add(add) => {
            let counter = CounterKey::home(add.target, &derivation.name);
            Some((counter.key().ok()?, design.samples.item(COUNTER)?.clone()))
        }
        Effect::Measure(measure) => Some((measure.bucket, design.samples.item(&measure.form.entity)?.clone())),
        _ => None,
    };
    let added: Vec<(Key, Item)> = ours.filter_map(|(_, effect)| added(effect)).collect();
    (!added.is_empty()).then_some(added)
}

/// The most expensive deletion of a cascade: a transaction that checks every key of the owner.
fn cascade(design: &Design, cascade: &Cascade) -> Option<Price> {
    let layout = &design.schema.layout;
    let starts = cascade.starts.iter().map(|(name, _)| name).chain([&cascade.owner]);
    let owners: BTreeSet<Key> = starts.filter_map(|name| layout.key(design.samples.item(name)?)).collect();
    let check = |key: &Key| {
        let (key, guard) = (key.clone(), Some(Guard::absent(Purpose::OwnerAbsent)));
        Write { table: Table::Main, key, action: Action::Check, guard }
    };
    let deleted = |hanging: &Hanging| {
        let item = design.samples.item(&hanging.entity)?.clone();
        let key = layout.key(&item)?;
        let delete = Write { table: Table::Main, key, action: Action::Delete, guard: None };
        let writes: Vec<Write> = owners.iter().map(check).chain([delete]).collect();
        transacted(layout, &[item], &writes)
    };
    let prices = cascade.hanging.iter().filter_map(deleted);
    prices.max_by(|a, b| a.total().total_cmp(&b.total()))
}

// ---- the derived writes of creating an item, and their price ----
//
// Every derivation plans the item's sample as an insert. The counts form one transaction with one receipt. Each counter's
// display is written. Each refreshed item is written once, however many derivations write to it. Items that only a query
// finds are left out, because their number is unknown.

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
    let stored = written.entry(item).or_default();
    if price.total() > stored.total() {
        *stored = price;
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
