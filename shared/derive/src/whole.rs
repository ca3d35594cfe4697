//! The definition: what all derived data should be, from all items of a table.
//!
//! This is what `verify` and the tests hold the service to. It shares no code with planning and refreshing but the
//! interpretation of single items, and it is as dull as it can be: take the ground, and let each derivation add its
//! part, those that others build on first.
//!
//! A history count cannot be derived from the ground, so its counters are taken as they are stored, where they are not
//! below what the ground shows; a display of it is a display of that. So are the buckets of a roll-up. Whether a counter
//! stands at all is taken as it is stored too: a [display](crate::kinds::display) of zero depends on it.

use crate::{
    catalogue::Catalogue,
    declaration::Way,
    derived::{Counts, Derived, Items},
    flaw::Flaw,
    kind::Shape,
    schema::Schema,
    sources::sums,
    tally::Tally,
};
use keys::{
    item::{Item, text},
    key::Key,
};

/// All that should be derived.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// What each derivation derives, in the catalogue's order.
    pub by_derivation: Vec<(String, Vec<Derived>)>,
    /// What each derivation cannot derive anything of, in the same order.
    pub flaws: Vec<(String, Flaw)>,
}

/// The ground: items without those, and without those attributes, that are derived. Items of no declared entity are the
/// application's too: they stand where nothing else can.
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

/// What should be derived from these items, of which only the ground is read.
#[must_use]
pub fn derive(schema: &Schema, catalogue: &Catalogue, items: &Items) -> Whole {
    let is_history = |name: &str| catalogue.derivations().any(|d| d.name == name && d.kind.is_history());
    let mut counts: Counts = sums(schema, items.values());
    // Any other counter says only that it stands. What it should hold comes from the ground.
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
        // Whatever else is under the key of a derived item stays.
        derived.retain(|part| {
            let Derived::Item { key, .. } = part else { return true };
            let flaw = items.get(key).map(|item| occupied(schema, key, item));
            whole.flaws.extend(flaw.iter().map(|flaw| (derivation.name.clone(), flaw.clone())));
            flaw.is_none()
        });
        for part in &derived {
            match part {
                Derived::Count { target, tally, at_least } => {
                    let counted = counts.entry((target.clone(), derivation.name.clone())).or_default();
                    // Of a history the sum says nothing beside a count that is higher.
                    if !*at_least || counted.count < tally.count {
                        *counted = tally.clone();
                    }
                }
                // Taken as it is stored, where the ground shows that it should be there.
                Derived::Bucket { key, .. } => {
                    items.extend(stored.get_key_value(key).map(|(key, item)| (key.clone(), item.clone())));
                }
                Derived::Item { key, item } => {
                    items.insert(key.clone(), item.clone());
                }
                // Nothing that is derived depends on where the item stands.
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

/// The flaw of an item under the key of a derived item that it is not.
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

/// Does a cascade delete counters of this count? Then what the ground shows is no lower bound: sources that were counted
/// before the target was removed may outlive it, and be there when it exists again.
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
        fixture::{catalogue, item, key_of, schema, totals::rollup},
        plan::plan,
        position::RecordAt,
        tally::Sum,
        write::{Action, Update},
    };

    /// Items of a small domain, right and wrong, some under one key.
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

    /// What becomes of the item under a key: another, or none.
    fn steps() -> impl Strategy<Value = Vec<(String, bool)>> {
        prop::collection::vec((items(), prop::bool::weighted(0.25)), 1..60)
    }

    /// The change that puts an item, or removes what is under its key; `None` where there is nothing to remove.
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

    /// What the engine makes of these changes: chunk by chunk, each with the buckets as they are.
    fn applied(schema: &Schema, changes: &[Counted], n_a_chunk: usize) -> BTreeMap<Key, Item> {
        let mut written: BTreeMap<Key, Item> = BTreeMap::new();
        for chunk in changes.chunks(n_a_chunk) {
            for (write, _) in amount_writes(schema, chunk, &written.clone()) {
                let held = written.get(&write.key);
                assert!(write.guard.is_none_or(|guard| guard.holds(held)));
                let Action::Update(Update { set, add, .. }) = write.action else { unreachable!() };
                let mut item = held.cloned().unwrap_or_default();
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
                    let held = written.get(&key);
                    prop_assert_eq!(number(held, "Sum"), tally.sum.clone(), "{} of {}", name, target);
                    let count = Sum::of(&serde_dynamo::AttributeValue::N(tally.count.to_string())).unwrap();
                    prop_assert_eq!(number(held, "Value"), count, "{} of {}", name, target);
                    targets.insert(key);
                }
            }
            // What the whole does not name has come to nothing.
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
            for (held, came) in written.values().zip(came.values()) {
                for (name, value) in &came.attributes(&rollup().form) {
                    prop_assert_eq!(held.get(name), Some(value), "{}", name);
                }
            }
            // The whole is never above it in count.
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
