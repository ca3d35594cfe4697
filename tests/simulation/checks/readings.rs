//! Readings: what the ground does not tell of the roll-ups is told of every record of the stream.

use std::collections::BTreeMap;

use derive::{
    derived::Items,
    tally::{Sum, Tally},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{chance::Chance, failure::Failure, items::n, stream::Stream};

/// The sensors, as they stand in a key, and the day of all readings.
const SENSORS: [&str; 2] = ["s", "s%23"];
const DAY: &str = "2024-01-15";

/// Times of readings. Of the last nothing can be made.
const TIMES: [&str; 5] = [
    "2024-01-15T10:30:00.000Z",
    "2024-01-15T10:30:00.001Z",
    "2024-01-15T10:59:00.000Z",
    "2024-01-15T11:00:00.000Z",
    "noon",
];

/// A reading, of any value that can be read and some that cannot.
pub(crate) fn reading(chance: &Chance) -> Item {
    let [sensor, time] = [&SENSORS[..], &TIMES].map(|texts| *chance.one_of(texts).unwrap());
    let s = |text: &str| AttributeValue::S(text.to_owned());
    let mut item = Item::from([
        ("PK".to_owned(), s(&format!("SENSOR#{sensor}#{DAY}"))),
        ("SK".to_owned(), s(time)),
        ("EntityType".to_owned(), s("Reading")),
    ]);
    match chance.below(12) {
        0 => drop(item.insert("Value".to_owned(), s("hot"))),
        1 => {}
        _ => drop(item.insert("Value".to_owned(), amount(chance))),
    }
    item
}

/// Any number, whole or not.
pub(crate) fn amount(chance: &Chance) -> AttributeValue {
    let places = ["", ".5", ".10", "E1"];
    n(&format!("{}{}", chance.between(0, 40).cast_signed() - 20, chance.one_of(&places).unwrap()))
}

/// What came to stand in the table with a change of an item: the value of a reading, where there was none before.
pub(crate) fn came(key: &Key, old: Option<&Item>, new: Option<&Item>) -> Option<Sum> {
    let value = |item: &Item| {
        let is_reading = text(item, "EntityType") == Some("Reading") && key.sk.starts_with(DAY);
        item.get("Value").and_then(Sum::of).filter(|_| is_reading)
    };
    if old.and_then(value).is_some() { None } else { value(new?) }
}

/// What the values of a bucket come to.
type Bucket = (Tally, Option<Sum>, Option<Sum>);

/// Every value that came counts once in each of its buckets, and nothing else does.
pub(crate) fn buckets_are_exact(stream: &Stream, items: &Items) -> Result<(), Failure> {
    let mut derived: BTreeMap<Key, Bucket> = BTreeMap::new();
    for (key, value) in stream.came() {
        let sensor = key.pk.strip_suffix(&format!("#{DAY}")).unwrap();
        for bucket in [format!("HOUR#{}", &key.sk[..13]), format!("DAY#{DAY}")] {
            let (tally, min, max) = derived.entry(Key::new(sensor, bucket)).or_default();
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
    let stored: BTreeMap<Key, Bucket> = stored.map(|(key, item)| (key.clone(), held(item))).collect();
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
