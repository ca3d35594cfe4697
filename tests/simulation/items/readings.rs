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

/// The sensors as their keys show them, and the day of all readings.
const SENSORS: [&str; 2] = ["s", "s%23"];
pub(crate) const DAY: &str = "2024-01-15";

/// Times of readings. The last one cannot be parsed.
const TIMES: [&str; 5] = [
    "2024-01-15T10:30:00.000Z",
    "2024-01-15T10:30:00.001Z",
    "2024-01-15T10:59:00.000Z",
    "2024-01-15T11:00:00.000Z",
    "noon",
];

/// A reading with any number, or with a value that is no number.
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

/// The value of a reading that has one now and had none before.
pub(crate) fn new_value(key: &Key, old: Option<&Item>, new: Option<&Item>) -> Option<Sum> {
    let value = |item: &Item| {
        let is_reading = text(item, "EntityType") == Some("Reading") && key.sk.starts_with(DAY);
        item.get("Value").and_then(Sum::of).filter(|_| is_reading)
    };
    if old.and_then(value).is_some() { None } else { value(new?) }
}
