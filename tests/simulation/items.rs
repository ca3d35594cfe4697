//! Items that the application makes: of every entity, over a few ids, right and wrong.

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, schema::Schema, tally::Sum};
use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    item::{Item, text},
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;

use crate::chance::Chance;

pub(crate) const USERS: [&str; 4] = ["ann", "b#b", "50%", "d/%23"];
pub(crate) const POSTS: [&str; 3] = ["p1", "p#2", "%"];
pub(crate) const PAIR: [&str; 2] = ["x", "y#%"];
/// Few enough that employees often report to themselves.
pub(crate) const EMPLOYEES: [&str; 5] = ["ceo", "vp", "v/p", "x#", "dev"];
/// Few enough that folders often contain themselves.
const FOLDERS: [&str; 4] = ["top", "f#1", "f/2", "%"];
pub(crate) const TIMES: [&str; 2] = ["2024-01-15T10:30:00.000Z", "2024-01-16"];
const PATHS: [&str; 3] = ["/ceo", "/ceo/vp", "/ceo/v%2Fp"];
pub(crate) const NAMES: [&str; 3] = ["Ann", "Bob", "Cleo"];

/// Attributes that hold numbers, and are summed.
const NUMBERS: [&str; 5] = ["Total", "Quantity", "SizeBytes", "Rating", "Value"];

/// An item of one of these entities, if a derivation uses it: the service does nothing after a write of another.
pub(crate) fn new_item(
    chance: &Chance,
    (schema, catalogue): (&Schema, &Catalogue),
    meant: impl Fn(&Definition) -> bool,
) -> Item {
    let derived: BTreeSet<&str> = catalogue.derivations().flat_map(|derivation| derivation.kind.entities()).collect();
    let meant = |definition: &&Definition| derived.contains(definition.name.as_str()) && meant(definition);
    let entities: Vec<&Definition> = schema.entities().filter(meant).collect();
    let definition = *chance.one_of(&entities).unwrap();
    let key = definition.build(&fields(chance, &definition.key)).unwrap();
    let mut item = schema.layout.key_item(&key);
    item.extend(schema.layout.type_of(&definition.name));
    for name in &definition.attributes {
        if chance.percent(80) {
            item.insert(name.clone(), value(chance, name));
        }
    }
    if chance.percent(10) {
        // An attribute with the name of a key field means nothing.
        let names = definition.key.field_names();
        let name = (*chance.one_of(&names).unwrap()).to_owned();
        item.insert(name.clone(), value(chance, &name));
    }
    if chance.percent(20) {
        let set = AttributeValue::Ns(vec!["2.0".into(), "1".into()]);
        item.insert("Note".to_owned(), if chance.percent(50) { set } else { n("1e2") });
    }
    indexed(schema, definition, &key, item)
}

pub(crate) fn fields(chance: &Chance, template: &KeyTemplate) -> Fields {
    template.field_names().into_iter().map(|name| (name.to_owned(), field(chance, name))).collect()
}

fn field(chance: &Chance, name: &str) -> String {
    let values: &[&str] = match name {
        "UserId" | "AuthorId" | "FollowerId" | "FolloweeId" => &USERS,
        "PostId" => &POSTS,
        "FolderId" => &FOLDERS,
        "CreatedAt" | "ViewedAt" | "UploadedAt" | "PlacedAt" => &TIMES,
        "EmployeeId" => &EMPLOYEES,
        "Path" => &PATHS,
        _ => &PAIR,
    };
    (*chance.one_of(values).unwrap()).to_owned()
}

/// A value for an attribute, in one of twelve cases of the wrong type.
pub(crate) fn value(chance: &Chance, name: &str) -> AttributeValue {
    let is_number = NUMBERS.contains(&name);
    if chance.below(12) == 0 && is_number {
        return s("many");
    }
    if chance.below(12) == 0 {
        let set = AttributeValue::Ss(vec!["z".into(), "a".into()]);
        return if chance.percent(70) { n("1") } else { set };
    }
    let texts: &[&str] = match name {
        "UserId" | "AuthorId" => &USERS,
        "ParentId" | "FolderId" => &FOLDERS,
        "EmployeeId" | "ManagerId" => &EMPLOYEES,
        "Status" => &["draft", "published", "published", "archived", "cancelled"],
        "Cancelled" => return AttributeValue::Bool(chance.percent(50)),
        _ if is_number => return amount(chance),
        "ExpiresAt" | "Version" => return n("1705315200"),
        _ => &NAMES,
    };
    s(chance.one_of(texts).unwrap())
}

/// The definition of an item with a known type.
pub(crate) fn definition<'a>(schema: &'a Schema, item: &Item) -> &'a Definition {
    schema.entity(text(item, schema.layout.entity_type.as_ref().unwrap()).unwrap()).unwrap()
}

/// Counters and buckets hold the authoritative values. The application never writes them.
pub(crate) fn is_authority(definition: &Definition) -> bool {
    ["Counter", "Rollup"].contains(&definition.name.as_str())
}

pub(crate) fn is_mirror(definition: &Definition) -> bool {
    definition.derived && !is_authority(definition)
}

/// The item with the index keys that follow from its attributes.
pub(crate) fn indexed(schema: &Schema, definition: &Definition, key: &Key, mut item: Item) -> Item {
    let fields = definition.fields(key, &item).unwrap();
    for (name, value) in definition.index_attributes(&schema.layout, &fields) {
        match value {
            Some(value) => drop(item.insert(name, value)),
            None => drop(item.remove(&name)),
        }
    }
    item
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

/// Any number, whole or not.
pub(crate) fn amount(chance: &Chance) -> AttributeValue {
    let places = ["", ".5", ".10", "E1"];
    n(&format!("{}{}", chance.between(0, 40).cast_signed() - 20, chance.one_of(&places).unwrap()))
}

/// Does this counter count nothing?
pub(crate) fn is_zero(counter: &Item) -> bool {
    ["Value", "Sum"].iter().all(|name| counter.get(name).is_none_or(|value| whole_number(value) == Some(0)))
}

// ---- Readings of sensors: what the application writes, and which values the roll-ups must count ----

/// The sensors as their keys show them, and the day of all readings.
const SENSORS: [&str; 2] = ["s", "s%23"];
pub(crate) const DAY: &str = "2024-01-15";

/// Times of readings. The last one cannot be parsed.
const READING_TIMES: [&str; 5] = [
    "2024-01-15T10:30:00.000Z",
    "2024-01-15T10:30:00.001Z",
    "2024-01-15T10:59:00.000Z",
    "2024-01-15T11:00:00.000Z",
    "noon",
];

/// A reading with any number, or with a value that is no number.
pub(crate) fn reading(chance: &Chance) -> Item {
    let [sensor, time] = [&SENSORS[..], &READING_TIMES].map(|texts| *chance.one_of(texts).unwrap());
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
