//! Short forms for items and writes.

use std::collections::{BTreeSet, HashMap};

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key, size::item_bytes, value::same_item};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::contract::bed::{self, Bed, layout};

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

// ---- Values are read as they were written ----

pub(crate) async fn every_type_comes_back<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut nested = s("deep");
    for _ in 0..15 {
        nested = AttributeValue::L(vec![AttributeValue::M([("k".to_owned(), nested)].into()), n("1")]);
    }
    let attributes = [
        ("s", s("ä€😀\n\"\\")),
        ("s-empty", s("")),
        ("n", n("-12.5")),
        ("b", AttributeValue::B(vec![0, 1, 254, 255])),
        ("b-empty", AttributeValue::B(vec![])),
        ("bool-true", AttributeValue::Bool(true)),
        ("bool-false", AttributeValue::Bool(false)),
        ("null", AttributeValue::Null(true)),
        ("ss", AttributeValue::Ss(texts(&["b", "a", ""]))),
        ("ns", AttributeValue::Ns(texts(&["3", "-1", "2.5"]))),
        ("bs", AttributeValue::Bs(vec![vec![2], vec![1, 1]])),
        ("l", AttributeValue::L(vec![n("1"), s("a"), AttributeValue::Null(true)])),
        ("l-empty", AttributeValue::L(vec![])),
        ("m", AttributeValue::M([("a.b".to_owned(), n("1")), ("#".to_owned(), s("x"))].into())),
        ("m-empty", AttributeValue::M(HashMap::new())),
        ("nested", nested),
    ];
    let stored = item(&key, attributes.clone());
    bed.done(&put(&key, stored.clone())).await;
    let found = bed.item(&key).await.unwrap();
    assert!(same_item(&found, &stored), "in the {} store: {found:?}", bed.name);
    bed.done(&set(&key, attributes)).await;
    let found = bed.item(&key).await.unwrap();
    assert!(same_item(&found, &stored), "in the {} store, by an update: {found:?}", bed.name);
}

pub(crate) async fn numbers_come_back_in_full<S: Store>(bed: Bed<S>) {
    for (position, (stored, form)) in [
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("-12345678901234567890123456789012345678", "-12345678901234567890123456789012345678"),
        ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
        ("1234567890123456789.0123456789012345678", "1234567890123456789.0123456789012345678"),
        ("007", "7"),
        ("1.500", "1.5"),
        ("1E3", "1000"),
        ("25e-1", "2.5"),
        ("-0", "0"),
        ("0.0", "0"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        bed.done(&put(&key, item(&key, [("Value", n(stored))]))).await;
        bed.same(&bed.item(&key).await, &Some(item(&key, [("Value", n(form))])), stored);
    }
}

pub(crate) async fn every_entity_from_e_01_to_e_29_comes_back<S: Store>(bed: Bed<S>) {
    let (schema, samples) = (catalogue::schema(), table_design::samples().unwrap());
    assert_eq!(samples.len(), schema.entities().count(), "a sample of each");
    for sample in samples {
        let key = bed::layout().key(&sample).unwrap();
        bed.done(&put(&key, sample.clone())).await;
        let found = bed.item(&key).await.unwrap();
        assert!(same_item(&found, &sample), "{}: {key} comes back as {found:?}", bed.name);
        let entity = keys::item::text(&sample, "EntityType").unwrap();
        let definition = schema.entity(entity).unwrap();
        for name in definition.attributes.iter().chain(&definition.derived_attributes) {
            // An item of an order that is not cancelled lacks this attribute.
            assert!(found.contains_key(name) || name == "Cancelled", "{entity}.{name}");
        }
        assert!(definition.key.parse_key(&key).is_some(), "{}: {key} is of its form", definition.id);
        for index in &definition.indexes {
            let fields = definition.fields(&key, &found).unwrap();
            let wanted = definition.index_key(index, &fields).ok().flatten();
            let held = keys::item::text(&found, &format!("{}PK", index.index)).map(str::to_owned);
            bed.same(&held, &wanted.map(|key| key.pk), (&definition.id, &index.index));
        }
    }
}

// ---- The price of writes: the model counts as DynamoDB does ----

pub(crate) async fn a_put_costs_its_kilobytes<S: Store>(bed: Bed<S>) {
    for (bytes, units) in [(512, 1.0), (1_024, 1.0), (1_025, 2.0), (1_536, 2.0), (10_240, 10.0), (409_600, 400.0)] {
        let key = key(&bytes.to_string());
        bed.same(&bed.done(&put(&key, item_of_bytes(&key, bytes))).await, &units, bytes);
        bed.same(&bed.done(&in_ledger(put(&key, item_of_bytes(&key, bytes)))).await, &units, (Table::Ledger, bytes));
    }
    let key = key("1536");
    bed.same(&bed.done(&put(&key, item_of_bytes(&key, 300))).await, &2.0, "a smaller one over it");
    bed.same(&bed.done(&put(&key, item_of_bytes(&key, 300))).await, &1.0, "the same again");
}

pub(crate) async fn an_update_costs_the_larger_image<S: Store>(bed: Bed<S>) {
    let key = key("a");
    bed.same(&bed.done(&set(&key, [("Text", s(&"x".repeat(500)))])).await, &1.0, "a new item");
    bed.same(&bed.done(&set(&key, [("Text", s(&"x".repeat(2_500)))])).await, &3.0, "growing");
    bed.same(&bed.done(&add(&key, "Value", 1)).await, &3.0, "a small change");
    bed.same(&bed.done(&set(&key, [("Text", s("x"))])).await, &3.0, "shrinking");
    bed.same(&bed.done(&set(&key, [("Text", s("x"))])).await, &1.0, "no change");
    bed.same(&bed.done(&update(&key, Item::new(), &["Never"], &[])).await, &1.0, "a removal of nothing");
}

pub(crate) async fn a_delete_costs_what_was_there<S: Store>(bed: Bed<S>) {
    let key = key("a");
    bed.done(&put(&key, item_of_bytes(&key, 2_500))).await;
    bed.same(&bed.done(&delete(&key)).await, &3.0, "an item");
    bed.same(&bed.done(&delete(&key)).await, &1.0, "none");
}

pub(crate) async fn a_transaction_costs_twice<S: Store>(bed: Bed<S>) {
    let (a, b, c) = (key("a"), key("b"), key("c"));
    bed.done(&put(&c, item_of_bytes(&c, 2_500))).await;
    let receipt = guarded(in_ledger(put(&a, item_of_bytes(&a, 1_500))), Guard::absent(Purpose::Receipt));
    let units = bed.all_done(vec![receipt, add(&b, "Value", 1), delete(&c)]).await;
    bed.same_units(&units, &[(Table::Main, 8.0), (Table::Ledger, 4.0)], "a put, an addition and a delete");
    let units = bed.all_done(vec![add(&b, "Value", 1), delete(&c)]).await;
    bed.same_units(&units, &[(Table::Main, 4.0)], "an addition, and a delete of nothing");
}

pub(crate) async fn an_index_costs_what_changes_in_it<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let indexed = |sk: &str, more: usize| {
        let attributes =
            [("GSI1PK", s("G")), ("GSI1SK", s(sk)), ("Name", s(&"n".repeat(1_500))), ("Bio", s(&"b".repeat(more)))];
        put(&key, item(&key, attributes))
    };
    bed.same(&bed.done(&indexed("1", 0)).await, &4.0, "table 2, index 2");
    bed.same(&bed.done(&indexed("1", 1_000)).await, &3.0, "what is not projected: table 3");
    bed.same(&bed.done(&indexed("2", 1_000)).await, &7.0, "a move: table 3, index 2 and 2");
    let units = bed.all_done(vec![indexed("3", 1_000)]).await;
    bed.same_units(&units, &[(Table::Main, 10.0)], "a move in a transaction: table twice 3, index 2 and 2");
    bed.same(&bed.done(&set(&key, [("Name", s("n"))])).await, &5.0, "projected: table 3, index the larger");
    bed.same(&bed.done(&set(&key, [("Value", n("1"))])).await, &3.0, "projected: table 2, index 1");
    bed.same(&bed.done(&set(&key, [("Value", n("1.0"))])).await, &2.0, "the same: table 2");
    bed.same(&bed.done(&update(&key, Item::new(), &["GSI1SK"], &[])).await, &3.0, "leaving: table 2, index 1");
    bed.same(&bed.done(&delete(&key)).await, &2.0, "not in the index: table 2");
}

pub(crate) async fn every_type_is_as_large_as_it_counts<S: Store>(bed: Bed<S>) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let list = AttributeValue::L(vec![s("ab"), AttributeValue::L(vec![]), n("1")]);
    for (position, value) in [
        s("ä€😀"),
        n("7"),
        n("12345678901234567890123456789012345678"),
        n("-12.345"),
        n("1000"),
        n("0.001"),
        n("0"),
        AttributeValue::B(vec![0; 7]),
        AttributeValue::Bool(false),
        AttributeValue::Null(true),
        AttributeValue::Ss(texts(&["a", "bc"])),
        AttributeValue::Ns(texts(&["1", "-2.5", "300"])),
        AttributeValue::Bs(vec![vec![1], vec![1, 2]]),
        AttributeValue::M([("key".to_owned(), list.clone())].into()),
        list,
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        let padded = |bytes: usize| {
            let empty = item_bytes(&item(&key, [("Value", value.clone()), ("Text", s(""))]));
            item(&key, [("Value", value.clone()), ("Text", s(&"x".repeat(bytes - empty)))])
        };
        bed.same(&bed.done(&put(&key, padded(1_024))).await, &1.0, (1_024, &value));
        bed.same(&bed.done(&put(&key, padded(1_025))).await, &2.0, (1_025, &value));
    }
}
