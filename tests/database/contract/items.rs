//! Short forms for items and writes.

use std::collections::BTreeSet;

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::contract::bed::layout;

pub(crate) fn key(sk: &str) -> Key {
    Key::new("P#1", sk)
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

/// An item with these attributes beside its key.
pub(crate) fn item<const N: usize>(key: &Key, attributes: [(&str, AttributeValue); N]) -> Item {
    let mut item = layout().key_item(key);
    item.extend(map(attributes));
    item
}

pub(crate) fn map<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An item of exactly this many bytes.
pub(crate) fn item_of_bytes(key: &Key, bytes: usize) -> Item {
    let empty = keys::size::item_bytes(&item(key, [("Text", s(""))]));
    item(key, [("Text", s(&"x".repeat(bytes - empty)))])
}

pub(crate) fn put(key: &Key, item: Item) -> Write {
    write(key, Action::Put(item))
}

pub(crate) fn delete(key: &Key) -> Write {
    write(key, Action::Delete)
}

pub(crate) fn set<const N: usize>(key: &Key, attributes: [(&str, AttributeValue); N]) -> Write {
    update(key, map(attributes), &[], &[])
}

pub(crate) fn add(key: &Key, attribute: &str, amount: i64) -> Write {
    update(key, Item::new(), &[], &[(attribute, amount)])
}

pub(crate) fn update(key: &Key, set: Item, remove: &[&str], add: &[(&str, i64)]) -> Write {
    let remove: BTreeSet<String> = remove.iter().map(|&name| name.to_owned()).collect();
    let add: Item = add.iter().map(|&(name, amount)| (name.to_owned(), n(&amount.to_string()))).collect();
    write(key, Action::Update(Update { set, remove, add, ..Update::default() }))
}

pub(crate) fn guarded(write: Write, guard: Guard) -> Write {
    Write { guard: Some(guard), ..write }
}

pub(crate) fn in_ledger(write: Write) -> Write {
    Write { table: Table::Ledger, ..write }
}

pub(crate) fn unchanged(attribute: &str, value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::LossMark, [(attribute, value)])
}

pub(crate) fn write(key: &Key, action: Action) -> Write {
    Write { table: Table::Main, key: key.clone(), action, guard: None }
}
