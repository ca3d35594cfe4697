//! Readings of sensors: what the application writes, and which values the roll-ups must count.

use derive::tally::Sum;
use keys::{
    item::{Item, text},
    key::Key,
};

use crate::{
    chance::Chance,
    items::{amount, s},
};

/// The sensors, as they stand in a key, and the day of all readings.
const SENSORS: [&str; 2] = ["s", "s%23"];
pub(crate) const DAY: &str = "2024-01-15";

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

/// What came to stand in the table with a change of an item: the value of a reading, where there was none before.
pub(crate) fn came(key: &Key, old: Option<&Item>, new: Option<&Item>) -> Option<Sum> {
    let value = |item: &Item| {
        let is_reading = text(item, "EntityType") == Some("Reading") && key.sk.starts_with(DAY);
        item.get("Value").and_then(Sum::of).filter(|_| is_reading)
    };
    if old.and_then(value).is_some() { None } else { value(new?) }
}
