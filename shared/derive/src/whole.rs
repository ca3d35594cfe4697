//! The definition: all derived data that should exist, computed from all items of a table.
//!
//! `verify` and the tests compare the service with this. It shares only the interpretation of single items with
//! planning and refreshing, and it is as simple as possible: take the application's items, and let each derivation add
//! its part, in the order of the catalogue.
//!
//! A history count cannot be derived from the application's items, so its counters are taken as they are stored, unless
//! they are below the derived lower bound; its displays are derived from them. So are the buckets of a roll-up. Whether
//! a counter exists is also taken as stored: a [display](crate::kinds::display) of zero depends on it.

use crate::{
    catalogue::Catalogue,
    declaration::Way,
    derived::{Counts, Derived, Flaw, Items},
    kind::Shape,
    schema::Schema,
    sources::sums,
    tally::Tally,
};
use keys::{
    item::{Item, text},
    key::Key,
};

/// All derived data.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// The data of each derivation, in the catalogue's order.
    pub by_derivation: Vec<(String, Vec<Derived>)>,
    /// The invalid data of each derivation, in this order.
    pub flaws: Vec<(String, Flaw)>,
}

/// The application's data: all items without derived items and derived attributes. Items of undeclared entities belong
/// to the application too: no other item can have their keys.
#[must_use]
pub fn ground(schema: &Schema, items: &Items) -> Items {
    let mut ground = Items::new();
    for (key, item) in items {
        let Some(image) = schema.image(key, item) else {
            ground.insert(key.clone(), item.clone());
            continue;
        };
        if image.definition.derived {
            continue;
        }
        let kept = item.iter().filter(|(name, _)| !image.definition.derives(name));
        ground.insert(key.clone(), kept.map(|(name, value)| (name, value.clone())).collect());
    }
    ground
}

/// The derived data for these items; only the application's data among them is read.
#[must_use]
pub fn derive(schema: &Schema, catalogue: &Catalogue, items: &Items) -> Whole {
    let is_history = |name: &str| catalogue.derivations().any(|d| d.name == name && d.kind.is_history());
    let mut counts: Counts = sums(schema, items.values());
    // Any other counter only shows that it exists. Its content is derived.
    for (_, tally) in counts.iter_mut().filter(|((_, derivation), _)| !is_history(derivation)) {
        *tally = Tally::default();
    }
    let stored = items;
    let mut items = ground(schema, stored);
    let mut whole = Whole::default();
    for derivation in catalogue.derivations() {
        let flaws = derivation.kind.refresh().map(|refresh| refresh.flaws(schema, &items)).unwrap_or_default();
        whole.flaws.extend(flaws.into_iter().map(|flaw| (derivation.name.clone(), flaw)));
        let mut derived = derivation.derive(schema, &items, &counts);
        if starts_anew(catalogue, &derivation.name) {
            derived.retain(|part| !matches!(part, Derived::Count { at_least: true, .. }));
        }
        // A foreign item under the key of a derived item stays.
        derived.retain(|part| {
            let Derived::Item { key, .. } = part else { return true };
            let flaw = items.get(key).map(|item| occupied(schema, key, item));
            whole.flaws.extend(flaw.iter().map(|flaw| (derivation.name.clone(), flaw.clone())));
            flaw.is_none()
        });
        if let Shape::Rollup(rollup) = derivation.kind.shape() {
            // Buckets are taken as they are stored: what was added to one may be gone.
            let is_bucket = |key, item| schema.image(key, item).is_some_and(|image| image.is(&rollup.form.entity));
            let buckets = stored.iter().filter(|(key, item)| is_bucket(key, item));
            items.extend(buckets.map(|(key, item)| (key.clone(), item.clone())));
        }
        for part in &derived {
            match part {
                Derived::Count { target, tally, at_least } => {
                    let counted = counts.entry((target.clone(), derivation.name.clone())).or_default();
                    // The derived sum of a history count means nothing if the stored count is higher.
                    if !*at_least || counted.count < tally.count {
                        *counted = tally.clone();
                    }
                }
                Derived::Bucket { .. } => {}
                Derived::Item { key, item } => {
                    items.insert(key.clone(), item.clone());
                }
                // No derived value depends on the item's position in an index.
                Derived::Attributes { key, attributes } => {
                    let Some(item) = items.get_mut(key) else { continue };
                    for wanted in attributes {
                        wanted.apply(item, stored.get(key));
                    }
                }
            }
        }
        whole.by_derivation.push((derivation.name.clone(), derived));
    }
    whole
}

/// The invalid data report about a foreign item under the key of a derived item.
#[must_use]
pub fn occupied(schema: &Schema, key: &Key, item: &Item) -> Flaw {
    let attribute = schema.layout.type_name();
    let what = match text(item, attribute) {
        Some(entity) => format!("{attribute} is {entity}"),
        None => format!("{attribute} is missing"),
    };
    Flaw {
        key: key.clone(),
        attribute: attribute.to_owned(),
        why: format!(
            "the item is not Ripple's ({what}), so it stays, and the derived item waits for its key: delete the item, or give \
             it another key"
        ),
    }
}

/// True if a cascade deletes counters of this count. Then the existing sources give no lower bound: sources that were
/// counted before the target was removed may outlive it, and be there when the target exists again.
#[must_use]
pub fn starts_anew(catalogue: &Catalogue, count: &str) -> bool {
    let mut derivations = catalogue.derivations();
    derivations.any(|derivation| match derivation.kind.shape() {
        Shape::Cascade(cascade) => {
            cascade.hanging.iter().any(|hanging| matches!(&hanging.found, Way::Counters(name) if name == count))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        bucket::Bucket,
        change::{Change, Images},
        coalesce::{Adds, Amount, Counted, amount_writes},
        effect::Effect,
        family::Family,
        fixture::{catalogue, item, key_of, rollup, schema},
        plan::plan,
        position::RecordAt,
        tally::Sum,
        write::{Action, Update},
    };

    /// Items of a small domain, valid and invalid, some under one key.
    fn items() -> impl Strategy<Value = String> {
        let line = (1..=3, prop::sample::select(vec!["", " ProductId=p", " ProductId=q", " ProductId=N:1"]));
        let quantity =
            prop::sample::select(vec!["", " Quantity=N:0.1", " Quantity=N:2E1", " Quantity=N:-3", " Quantity=x"]);
        let status = prop::sample::select(vec!["", " Status=paid", " Status=cancelled", " Status=N:1"]);
        let cancelled =
            prop::sample::select(vec!["", " Cancelled=BOOL:true", " Cancelled=BOOL:false", " Cancelled=no"]);
        let line = (line, quantity, status, cancelled).prop_map(|((id, product), quantity, status, cancelled)| {
            format!("ORDER#o / LINE#{id} Line{product}{quantity}{status}{cancelled}")
        });
        let at = prop::sample::select(vec!["2024-01-15T10:30:00.000Z", "2024-01-15T10:31:00.000Z", "2024-01-15"]);
        let value = prop::sample::select(vec!["", " Value=N:1.50", " Value=N:-2", " Value=N:1E20", " Value=hot"]);
        let reading = (at, value).prop_map(|(at, value)| format!("SENSOR#s#2024-01-15 / {at} Reading{value}"));
        prop_oneof![line, reading]
    }

    /// A new item for a key, or its removal.
    fn steps() -> impl Strategy<Value = Vec<(String, bool)>> {
        prop::collection::vec((items(), prop::bool::weighted(0.25)), 1..60)
    }

    /// The change that puts an item, or removes the item under its key; `None` if there is nothing to remove.
    fn change(at: usize, table: &mut Items, text: &str, is_removal: bool) -> Option<Change> {
        let new = item(text);
        let key = key_of(&new);
        let old = table.remove(&key);
        let images = match (old, is_removal) {
            (Some(old), true) => Images::Removed(old),
            (None, true) => return None,
            (old, false) => {
                table.insert(key.clone(), new.clone());
                old.map_or(Images::Inserted(new.clone()), |old| Images::Modified { old, new })
            }
        };
        Some(Change { id: at.to_string(), sequence_number: at.to_string(), created_ms: None, key, images })
    }

    /// What a change adds, under the target's own key for a counter.
    fn counted(schema: &Schema, catalogue: &Catalogue, change: &Change) -> Counted {
        let planned = plan(schema, catalogue, &[Family::Additive], change).effects.into_iter();
        let amounts = planned.filter_map(|(derivation, effect)| {
            let (item, adds) = match effect {
                Effect::Add(add) => (add.target, Adds::Tally(Tally { count: add.count, sum: add.sum })),
                Effect::Measure(measure) => (measure.bucket, Adds::Value(measure.form, measure.value)),
                _ => return None,
            };
            let item = Key::new(item.pk, format!("{}#{}", item.sk, catalogue.name(derivation)));
            Some(Amount { item, derivation, adds })
        });
        Counted { position: RecordAt(0), id: String::new(), sequence_number: String::new(), amounts: amounts.collect() }
    }

    /// The items after the engine applied these changes: transaction by transaction, based on the current buckets.
    fn applied(schema: &Schema, changes: &[Counted], n_a_chunk: usize) -> BTreeMap<Key, Item> {
        let mut written: BTreeMap<Key, Item> = BTreeMap::new();
        for chunk in changes.chunks(n_a_chunk) {
            for (write, _) in amount_writes(schema, chunk, &written.clone()) {
                let stored = written.get(&write.key);
                assert!(write.guard.is_none_or(|guard| guard.holds(stored)));
                let Action::Update(Update { set, add, .. }) = write.action else { unreachable!() };
                let mut item = stored.cloned().unwrap_or_default();
                item.extend(set);
                for (name, value) in &add {
                    let mut sum = item.get(name).and_then(Sum::of).unwrap_or_default();
                    sum.add(&Sum::of(value).unwrap());
                    item.insert(name.to_owned(), sum.to_value());
                }
                written.insert(write.key, item);
            }
        }
        written
    }

    proptest! {
        #[test]
        fn what_is_added_change_by_change_is_what_the_whole_gives(steps in steps(), n_a_chunk in 1usize..8) {
            let schema = schema();
            let catalogue = catalogue(&schema);
            let mut table = Items::new();
            let mut changes = Vec::new();
            for (at, (text, is_removal)) in steps.iter().enumerate() {
                changes.extend(change(at, &mut table, text, *is_removal).map(|it| counted(&schema, &catalogue, &it)));
            }
            let written = applied(&schema, &changes, n_a_chunk);
            let whole = derive(&schema, &catalogue, &table);
            let number = |item: Option<&Item>, name| item.and_then(|it| it.get(name)).and_then(Sum::of).unwrap_or_default();
            let mut targets = BTreeSet::new();
            for (name, derived) in &whole.by_derivation {
                for part in derived {
                    let Derived::Count { target, tally, .. } = part else { continue };
                    let key = Key::new(&target.pk, format!("{}#{name}", target.sk));
                    let stored = written.get(&key);
                    prop_assert_eq!(number(stored, "Sum"), tally.sum.clone(), "{} of {}", name, target);
                    let count = Sum::of(&serde_dynamo::AttributeValue::N(tally.count.to_string())).unwrap();
                    prop_assert_eq!(number(stored, "Value"), count, "{} of {}", name, target);
                    targets.insert(key);
                }
            }
            // A counter that the definition does not contain is zero.
            for (key, item) in written.iter().filter(|(key, _)| key.pk.starts_with("WARE") && !targets.contains(*key)) {
                prop_assert!(number(Some(item), "Value").is_zero() && number(Some(item), "Sum").is_zero(), "{}", key);
            }
        }

        #[test]
        fn a_bucket_holds_all_values_that_came_whatever_became_of_them(steps in steps(), n_a_chunk in 1usize..8) {
            let schema = schema();
            let catalogue = catalogue(&schema);
            let mut table = Items::new();
            let (mut changes, mut came) = (Vec::new(), BTreeMap::<Key, Bucket>::new());
            for (at, (text, is_removal)) in steps.iter().enumerate() {
                let value = |item: Option<&Item>| item.and_then(|item| item.get("Value")).and_then(Sum::of);
                let before = value(table.get(&key_of(&item(text))));
                let Some(change) = change(at, &mut table, text, *is_removal) else { continue };
                let counted = counted(&schema, &catalogue, &change);
                let is_time = change.key.sk.contains('T') && change.key.pk.starts_with("SENSOR");
                if let (None, Some(value), true) = (before, value(table.get(&change.key)), is_time) {
                    for bucket in ["HOUR#2024-01-15T10", "DAY#2024-01-15"] {
                        let one = Bucket::of(&value);
                        let key = Key::new("SENSOR#s", format!("{bucket}#readings"));
                        came.entry(key).and_modify(|bucket| bucket.add(&one)).or_insert(one);
                    }
                }
                changes.push(counted);
            }
            let mut written = applied(&schema, &changes, n_a_chunk);
            written.retain(|key, _| key.pk.starts_with("SENSOR"));
            prop_assert!(written.keys().eq(came.keys()));
            for (stored, came) in written.values().zip(came.values()) {
                for (name, value) in &came.attributes(&rollup().form) {
                    prop_assert_eq!(stored.get(name), Some(value), "{}", name);
                }
            }
            // The defined count is never higher.
            for (name, derived) in derive(&schema, &catalogue, &table).by_derivation {
                for part in derived {
                    let Derived::Bucket { key, bucket, .. } = part else { continue };
                    let key = Key::new(key.pk, format!("{}#{name}", key.sk));
                    prop_assert!(came.get(&key).is_some_and(|came| came.tally.count >= bucket.tally.count), "{}", key);
                }
            }
        }
    }
}
