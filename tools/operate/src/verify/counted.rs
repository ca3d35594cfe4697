//! Counters and buckets against what the definition counts.
//!
//! Shards are added up, and no counter is as good as one of zero. What is history is held to a lower bound of its count:
//! the rest of it may differ from the ground for good reason, since the platform removes its sources, and later changes
//! of them do not count.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derived::{Derived, Items},
    effect::BucketForm,
    kind::{Kind, Shape},
    schema::Schema,
    tally::{Sum, Tally},
};
use engine::{count::Target, counters::added_up};
use keys::{
    counter::{COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;

use super::{Finding, finding};

/// Counters that differ from what they count.
pub(super) fn counters_compared(
    schema: &Schema,
    kind: Option<&dyn Kind>,
    derivation: &str,
    derived: &[Derived],
    items: &Items,
) -> Vec<Finding> {
    let mut counters: BTreeMap<Key, Items> = BTreeMap::new();
    for (key, item) in items {
        let counter = CounterKey::parse(key).filter(|counter| counter.derivation == derivation);
        if let Some(counter) = counter.filter(|_| schema.image(key, item).is_some_and(|image| image.is(COUNTER))) {
            counters.entry(counter.target).or_default().insert(key.clone(), item.clone());
        }
    }
    let tallies: BTreeMap<&Key, &Tally> = derived
        .iter()
        .filter_map(|part| match part {
            Derived::Count { target, tally, .. } => Some((target, tally)),
            _ => None,
        })
        .collect();
    let (none, no_shards) = (Tally::default(), Items::new());
    let targets: BTreeSet<&Key> = counters.keys().chain(tallies.keys().copied()).collect();
    let compared = |item: &Key| {
        let shards = counters.get(item).unwrap_or(&no_shards);
        let target = Target { derivation: derivation.to_owned(), item: item.clone() };
        counter_compared(schema, kind?, &target, shards, tallies.get(item).copied().unwrap_or(&none))
    };
    targets.into_iter().filter_map(compared).collect()
}

/// The counter of a target, in its shards, if it differs from what it counts.
pub(super) fn counter_compared(
    schema: &Schema,
    kind: &dyn Kind,
    target: &Target,
    shards: &Items,
    derived: &Tally,
) -> Option<Finding> {
    let stored = added_up(schema, shards);
    if stored == *derived || (kind.is_history() && stored.count >= derived.count) {
        return None;
    }
    let has_sum = matches!(kind.shape(), Shape::Count(count) if count.sum.is_some());
    // A counter that cannot be read is shown as it is; otherwise what the shards add up to.
    let (key, stored) = match (shards.iter().find(|(_, item)| is_broken(item)), shards.first_key_value()) {
        (Some((key, item)), _) => (key.clone(), Some(only(item, &[VALUE, SUM]))),
        (None, Some((key, _))) => (key.clone(), Some(attributes(&stored, has_sum))),
        (None, None) => {
            let first = CounterKey { target: target.item.clone(), derivation: target.derivation.clone(), shard: 0 };
            (first.key().ok()?, None)
        }
    };
    Some(finding(&target.derivation, &key, stored, Some(attributes(derived, has_sum))))
}

fn is_broken(counter: &Item) -> bool {
    counter.get(VALUE).and_then(whole_number).is_none() || counter.get(SUM).is_some_and(|sum| Sum::of(sum).is_none())
}

/// A tally as the attributes of a counter.
pub(crate) fn attributes(tally: &Tally, has_sum: bool) -> Item {
    let mut item = Item::from([(VALUE.to_owned(), AttributeValue::N(tally.count.to_string()))]);
    item.extend(has_sum.then(|| (SUM.to_owned(), tally.sum.to_value())));
    item
}

/// These attributes of an item, as far as it has them.
pub(super) fn only(item: &Item, names: &[&str]) -> Item {
    names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone()))).collect()
}

/// Buckets that are below what the ground shows: in count, or without a sum or bounds.
pub(super) fn buckets_compared(derivation: &str, derived: &[Derived], items: &Items) -> Vec<Finding> {
    let compared = |part: &Derived| {
        let Derived::Bucket { key, bucket, form } = part else { return None };
        let finding = bucket_compared(derivation, key, &bucket.tally, form, items.get(key))?;
        Some(Finding { derived: Some(bucket.attributes(form)), ..finding })
    };
    derived.iter().filter_map(compared).collect()
}

/// The finding about a bucket that is below what the ground shows; it names the count.
pub(super) fn bucket_compared(
    derivation: &str,
    key: &Key,
    derived: &Tally,
    form: &BucketForm,
    held: Option<&Item>,
) -> Option<Finding> {
    let count = AttributeValue::N(derived.count.to_string());
    let wanted = Some(Item::from([(form.count.clone(), count)]));
    let Some(held) = held else { return Some(finding(derivation, key, None, wanted)) };
    let is_number = |name: &String| held.get(name).and_then(Sum::of).is_some();
    let count = held.get(&form.count).and_then(whole_number);
    if count.is_some_and(|count| count >= derived.count) && [&form.sum, &form.min, &form.max].into_iter().all(is_number)
    {
        return None;
    }
    let names = [&form.count, &form.sum, &form.min, &form.max].map(String::as_str);
    Some(finding(derivation, key, Some(only(held, &names)), wanted))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derive::{bucket::Bucket, effect::BucketForm};

    use super::*;

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    fn item(pairs: &[(&str, &str)]) -> Item {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), n(text))).collect()
    }

    #[test]
    fn a_bucket_is_held_to_its_count_and_to_having_a_sum_and_bounds() {
        let [count, sum, min, max] = ["Count", "Sum", "Min", "Max"].map(str::to_owned);
        let form = Arc::new(BucketForm { entity: "Rollup".to_owned(), count, sum, min, max });
        let key = Key::new("SENSOR#s", "DAY#2024-01-15");
        let derived = [Derived::Bucket { key: key.clone(), bucket: Bucket::of(&Sum::of(&n("5")).unwrap()), form }];
        let n_findings = |held: Option<Item>| {
            let items: Items = held.map(|held| (key.clone(), held)).into_iter().collect();
            buckets_compared("readings", &derived, &items).len()
        };
        assert_eq!(n_findings(None), 1);
        let whole = [("Count", "1"), ("Sum", "9"), ("Min", "9"), ("Max", "9")];
        assert_eq!(n_findings(Some(item(&whole))), 0, "the reading was changed later");
        assert_eq!(n_findings(Some(item(&[("Count", "0"), ("Sum", "9"), ("Min", "9"), ("Max", "9")]))), 1);
        assert_eq!(n_findings(Some(item(&[("Count", "2"), ("Sum", "9"), ("Min", "4"), ("Max", "5")]))), 0);
        assert_eq!(n_findings(Some(item(&whole[..3]))), 1);
        let mut text = item(&whole);
        text.insert("Min".to_owned(), AttributeValue::S("9".to_owned()));
        assert_eq!(n_findings(Some(text)), 1);
    }
}
