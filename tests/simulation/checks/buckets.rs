//! Buckets of the roll-ups. The table does not hold every value that was counted, so they come from the stream.

use std::collections::BTreeMap;

use derive::{
    derived::Items,
    tally::{Sum, Tally},
};
use keys::{
    item::{Item, text},
    key::Key,
};

use crate::{failure::Failure, items::readings::DAY, platform::stream::Stream, stored::ToRecount};

/// Count and sum, minimum and maximum of a bucket.
type Bucket = (Tally, Option<Sum>, Option<Sum>);

/// Every value counts exactly once in each of its buckets.
pub(crate) fn buckets_are_exact(stream: &Stream, items: &Items, listed: &ToRecount) -> Result<(), Failure> {
    let mut derived: BTreeMap<Key, Bucket> = BTreeMap::new();
    let mut lost: BTreeMap<Key, i64> = BTreeMap::new();
    for (key, value, is_lost) in stream.new_values() {
        let sensor = key.pk.strip_suffix(&format!("#{DAY}")).unwrap();
        for bucket in [format!("HOUR#{}", &key.sk[..13]), format!("DAY#{DAY}")] {
            let bucket = Key::new(sensor, bucket);
            if is_lost {
                *lost.entry(bucket.clone()).or_default() += 1;
            }
            let (tally, min, max) = derived.entry(bucket).or_default();
            tally.add(&Tally { count: 1, sum: value.clone() });
            *min = Some(min.take().map_or(value.clone(), |min| min.min(value.clone())));
            *max = (*max).take().max(Some(value.clone()));
        }
    }
    let stored = items.iter().filter(|(_, item)| text(item, "EntityType") == Some("Rollup"));
    let number = |item: &Item, name| item.get(name).and_then(Sum::of);
    let held = |item: &Item| {
        let count = item.get("Count").and_then(keys::value::whole_number).unwrap_or_default();
        let tally = Tally { count, sum: number(item, "Sum").unwrap_or_default() };
        (tally, number(item, "Min"), number(item, "Max"))
    };
    let mut stored: BTreeMap<Key, Bucket> = stored.map(|(key, item)| (key.clone(), held(item))).collect();
    let is_sure = |key: &Key| !listed.iter().any(|(_, item)| item == key);
    stored.retain(|key, _| is_sure(key));
    derived.retain(|key, _| is_sure(key));
    // An invocation that had a value before it was lost may have counted it.
    for (key, n_lost) in lost {
        let [n_stored, n_derived] =
            [&stored, &derived].map(|buckets| buckets.get(&key).map_or(0, |(tally, ..)| tally.count));
        if (n_derived - n_lost..=n_derived).contains(&n_stored) {
            stored.remove(&key);
            derived.remove(&key);
        }
    }
    if stored == derived {
        return Ok(());
    }
    let count = |buckets: &BTreeMap<Key, Bucket>| buckets.values().map(|(tally, ..)| tally.count).sum::<i64>();
    let category = match count(&derived).cmp(&count(&stored)) {
        std::cmp::Ordering::Less => "duplicate",
        std::cmp::Ordering::Equal => "bucket",
        std::cmp::Ordering::Greater => "lost",
    };
    Err(Failure::new(category, format!("buckets stored {stored:?}, derived {derived:?}")))
}
