//! Items of drawn entities: over a few keys, right and wrong.

use std::collections::BTreeMap;

use keys::item::Item;
use serde_dynamo::AttributeValue;

use crate::{
    chance::Chance,
    drawn::{
        description::{Description, FieldOf, Holds, KeyOf, Piece},
        generator::WORDS,
        values::{hexadecimal, written},
    },
    items::{amount, n, s},
};

/// Numbers, bytes and times that keys are made of.
const PADDED: [&str; 3] = ["7", "42", "999"];
const NUMBERS: [&str; 6] = ["1", "10", "-3", "0.5", "-20", "12345678901234567890"];
const BYTES: [&[u8]; 3] = [&[0], &[0xff, 0x01], b"abc"];
const TIMES: [&str; 5] =
    ["2024-01-15T10:30:00.000Z", "2024-01-15T11:00:00Z", "2024-01-16T00:00:00Z", "2024-01-15T10:59:59+02:00", "noon"];

/// Of a hundred attributes, how many are missing, and how many are of another type than they should be.
const MISSING_PERCENT: usize = 15;
const WRONG_PERCENT: usize = 8;

/// An item with a key and attributes.
pub(in crate::drawn) fn new_item(chance: &Chance, of: &Description, entity: usize) -> Item {
    let definition = &of.entities[entity];
    let table = &of.tables[definition.table];
    let fields: BTreeMap<String, AttributeValue> = definition
        .fields()
        .into_iter()
        .map(|(name, form)| {
            // Digits of a fixed width are nothing but a number.
            let is_fixed = matches!(form, FieldOf::Padded(_) | FieldOf::Inverted(_));
            let meant = meant(of, entity, name).filter(|_| !is_fixed);
            (name.to_owned(), field(chance, of, meant.unwrap_or(form)))
        })
        .collect();
    let mut item = Item::new();
    for (part, pieces) in [(Some(&table.pk), &definition.pk), (table.sk.as_ref(), &definition.sk)] {
        let Some(part) = part else { continue };
        let value = match pieces.as_slice() {
            [Piece::Field(name, _)] if !table.has_forms => typed(&fields[name], part.of),
            pieces => s(&written(pieces, true, |name| Some(text(&fields[name]))).unwrap()),
        };
        item.insert(part.name.clone(), value);
    }
    if let Some(name) = &table.type_attribute {
        item.insert(name.clone(), s(&definition.name));
    }
    for attribute in &definition.attributes {
        if !chance.percent(MISSING_PERCENT) {
            item.insert(attribute.name.clone(), value(chance, of, attribute.holds));
        }
    }
    if table.expires && chance.percent(15) {
        item.insert("ExpiresAt", n("1705315200"));
    }
    if chance.percent(15) {
        item.insert(
            "Note",
            if chance.percent(50) { AttributeValue::Ns(vec!["2.0".into(), "1".into()]) } else { n("1e2") },
        );
    }
    item
}

/// What a field should be so that it leads somewhere: of the type of the key to which it leads.
fn meant(of: &Description, entity: usize, name: &str) -> Option<FieldOf> {
    of.entities[entity].refs.iter().find_map(|by| {
        let (field, _) = by.pairs.iter().find(|(_, from)| from == name)?;
        of.entities[by.to].field(field)
    })
}

fn field(chance: &Chance, of: &Description, form: FieldOf) -> AttributeValue {
    match form {
        FieldOf::Text => s(chance.one_of(&of.texts).unwrap()),
        FieldOf::Padded(_) | FieldOf::Inverted(_) => s(chance.one_of(&PADDED).unwrap()),
        FieldOf::Number => n(chance.one_of(&NUMBERS).unwrap()),
        FieldOf::Bytes => AttributeValue::B(chance.one_of(&BYTES).unwrap().to_vec()),
        FieldOf::Time => s(chance.one_of(&TIMES).unwrap()),
    }
}

/// A field as a text of a form holds it.
fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        AttributeValue::B(bytes) => hexadecimal(bytes),
        _ => unreachable!(),
    }
}

/// A field as a key of this type is.
fn typed(value: &AttributeValue, of: KeyOf) -> AttributeValue {
    match (of, value) {
        (KeyOf::S, value) => s(&text(value)),
        (_, value) => value.clone(),
    }
}

/// A value of an attribute, in some cases of the wrong type.
pub(super) fn value(chance: &Chance, of: &Description, holds: Holds) -> AttributeValue {
    let is_wrong = chance.percent(WRONG_PERCENT);
    match holds {
        _ if is_wrong && chance.percent(30) => AttributeValue::Ss(vec!["z".into(), "a".into()]),
        Holds::Word if is_wrong => n("1"),
        Holds::Number if is_wrong => s("many"),
        Holds::Time if is_wrong => n("1705315200"),
        Holds::Members if is_wrong => s("a"),
        Holds::Members => members(chance, of),
        Holds::Id(FieldOf::Number) if is_wrong => s("1"),
        Holds::Id(_) if is_wrong => *chance.one_of(&[n("7"), s(""), s("x")].map(Box::new)).cloned().unwrap(),
        Holds::Word => s(chance.one_of(&WORDS).unwrap()),
        Holds::Number if chance.percent(10) => n("98765432109876543210"),
        Holds::Number => amount(chance),
        Holds::Time => s(chance.one_of(&TIMES).unwrap()),
        Holds::Id(form) => field(chance, of, form),
    }
}

/// A list or a set of texts, in some cases with a member of another type.
fn members(chance: &Chance, of: &Description) -> AttributeValue {
    let texts: Vec<String> = of.texts.iter().filter(|_| chance.percent(45)).cloned().collect();
    if !texts.is_empty() && chance.percent(50) {
        return AttributeValue::Ss(texts);
    }
    let mut members: Vec<AttributeValue> = texts.iter().map(|text| s(text)).collect();
    members.extend(texts.first().filter(|_| chance.percent(30)).map(|text| s(text)));
    if chance.percent(5) {
        members.push(n("7"));
    }
    AttributeValue::L(members)
}

/// The item with the keys in indexes over texts of forms that follow from it, as its application writes them; and without
/// an attribute that cannot be in an index over values as they are, since DynamoDB refuses such an item.
pub(super) fn indexed(of: &Description, entity: usize, mut item: Item) -> Item {
    let definition = &of.entities[entity];
    let table = &of.tables[definition.table];
    let Some(row) = crate::drawn::values::row(of, definition.table, &crate::checks::plain_item(&item)) else {
        return item;
    };
    for index in table.indexes.iter().filter(|index| !index.has_forms) {
        for part in index.pk.iter().chain(&index.sk) {
            let fits = item.get(&part.name).is_none_or(|value| match value {
                AttributeValue::S(text) => part.of == KeyOf::S && !text.is_empty(),
                AttributeValue::N(_) => part.of == KeyOf::N,
                AttributeValue::B(bytes) => part.of == KeyOf::B && !bytes.is_empty(),
                _ => false,
            });
            if !fits {
                item.remove(&part.name);
            }
        }
    }
    for key in definition.index_keys.iter().filter(|key| !key.is_derived) {
        let index = &table.indexes[key.index];
        let value = |name: &str| crate::drawn::values::filling(&row, name, FieldOf::Text).ok().flatten();
        let texts = [&key.pk, &key.sk].map(|pieces| written(pieces, true, value));
        for part in index.pk.iter().chain(&index.sk) {
            item.remove(&part.name);
        }
        if let [Some(pk), Some(sk)] = texts {
            item.insert(index.pk[0].name.clone(), s(&pk));
            item.insert(index.sk[0].name.clone(), s(&sk));
        }
    }
    item
}
