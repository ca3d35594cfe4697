//! The store refuses before the call what DynamoDB would refuse, and nothing else.

use derive::{
    guard::{Guard, Purpose},
    query::Query,
    write::{Table, Transaction, UPDATE_ATTRIBUTES_MAX, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Store, StoreError};

use crate::contract::{
    bed::Bed,
    items::{add, guarded, item, item_of_bytes, key, n, put, s, set, unchanged, update},
};

fn with(value: AttributeValue) -> Write {
    put(&key("a"), item(&key("a"), [("Attribute", value)]))
}

fn nested(depth: usize) -> AttributeValue {
    (0..depth).fold(s("x"), |value, _| AttributeValue::L(vec![value]))
}

fn bare(key: &Key) -> Write {
    put(key, item(key, []))
}

/// So many attributes.
fn counted(n_attributes: usize) -> Item {
    (0..n_attributes).map(|position| (format!("Attribute{position}"), n("1"))).collect()
}

fn refused() -> Vec<(&'static str, Write)> {
    let a = key("a");
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    vec![
        ("400 KB and a byte", put(&a, item_of_bytes(&a, 409_601))),
        ("an empty partition key", bare(&Key::new("", "a"))),
        ("an empty sort key", bare(&Key::new("a", ""))),
        ("a long partition key", bare(&Key::new("p".repeat(2_049), "a"))),
        ("a long sort key", bare(&Key::new("a", "s".repeat(1_025)))),
        ("a long partition key of an index", set(&a, [("GSI1PK", s(&"p".repeat(2_049)))])),
        ("a long sort key of an index", set(&a, [("GSI1SK", s(&"s".repeat(1_025)))])),
        ("an update expression of more than 4 KB", update(&a, counted(300), &[], &[])),
        ("another item's key", put(&a, item(&key("b"), []))),
        ("an index key that is a number", put(&a, item(&a, [("GSI1PK", n("1"))]))),
        ("an empty index key", set(&a, [("GSI1SK", s(""))])),
        ("a sum as index key", add(&a, "GSI1SK", 1)),
        ("an update of the key", set(&a, [("SK", s("b"))])),
        ("an update of nothing", update(&a, Item::new(), &[], &[])),
        ("an attribute twice", update(&a, Item::new(), &["Value"], &[("Value", 1)])),
        ("39 digits", with(n("123456789012345678901234567890123456789"))),
        ("a huge number", with(n("1e126"))),
        ("a tiny number", with(n("1e-131"))),
        ("no number", with(n("12a"))),
        ("an empty set", with(AttributeValue::Ss(vec![]))),
        ("a number twice in a set", with(AttributeValue::Ns(texts(&["1", "1.0"])))),
        ("a bad number deep down", with(AttributeValue::L(vec![AttributeValue::M([("k".into(), n("x"))].into())]))),
        ("a bad number in a guard", guarded(add(&a, "Value", 1), unchanged("Value", Some(n("x"))))),
        ("33 levels", with(nested(33))),
        ("a condition of 301 operators", guarded(add(&a, "Value", 1), asks_for(151, "Attribute"))),
        ("a condition of more than 4 KB", guarded(add(&a, "Value", 1), lacks(150))),
    ]
}

/// So many attributes are as they were read: an operator for each, and an `AND` between two.
fn asks_for(n_attributes: usize, prefix: &str) -> Guard {
    let as_read = (0..n_attributes).map(|position| (format!("{prefix}{position}"), Some(n("1"))));
    Guard::as_read(Purpose::Application, as_read)
}

/// So many attributes are not there. A function is longer than a comparison.
fn lacks(n_attributes: usize) -> Guard {
    let as_read = (0..n_attributes).map(|position| (format!("Attribute{position}"), None));
    Guard::as_read(Purpose::Application, as_read)
}

pub(crate) async fn what_breaks_a_limit_is_refused_by_name<S: Store>(bed: Bed<S>) {
    for (about, write) in refused() {
        for error in [
            bed.store.write(&write).await.map(|_| ()).unwrap_err(),
            bed.store.transact(&Transaction::new(vec![write.clone()]).unwrap()).await.map(|_| ()).unwrap_err(),
        ] {
            let StoreError::Reject { item, .. } = &error else {
                panic!("{}: {about}: {error:?}", bed.name);
            };
            bed.same(item, &write.key.to_string(), about);
        }
    }
    bed.same(&bed.scan_all(Table::Main).await.0, &vec![], "nothing is written");
}

pub(crate) async fn what_is_just_within_the_limits_is_taken<S: Store>(bed: Bed<S>) {
    let a = key("a");
    for write in [
        put(&a, item_of_bytes(&a, 409_600)),
        bare(&Key::new("p".repeat(2_048), "s".repeat(1_024))),
        with(n("99999999999999999999999999999999999999")),
        with(n("9.9999999999999999999999999999999999999E+125")),
        with(n("1E-130")),
        with(n("-1E-130")),
        with(nested(31)),
        set(&a, [("GSI1PK", s(&"p".repeat(2_048))), ("GSI1SK", s(&"s".repeat(1_024)))]),
        update(&a, counted(280), &[], &[]),
        update(&a, counted(UPDATE_ATTRIBUTES_MAX), &[], &[]),
    ] {
        bed.done(&write).await;
    }
    // 150 comparisons and 149 `AND`. The names stand behind placeholders, so they may be long.
    for prefix in ["Attribute", &"Attribute".repeat(20)] {
        let many = (0..150).map(|position| (format!("{prefix}{position}"), n("1"))).collect();
        bed.done(&put(&a, item(&a, []))).await;
        bed.done(&update(&a, many, &[], &[])).await;
        bed.done(&guarded(add(&a, "Value", 1), asks_for(150, prefix))).await;
    }
}

pub(crate) async fn a_refused_write_in_a_transaction_is_named<S: Store>(bed: Bed<S>) {
    let (a, b) = (key("a"), key("b"));
    let transaction = Transaction::new(vec![bare(&a), put(&b, item_of_bytes(&b, 500_000))]).unwrap();
    let error = bed.store.transact(&transaction).await.unwrap_err();
    bed.same(&error.to_string(), &format!("TransactWriteItems on {b}: refused"), &error);
    bed.same(&bed.item(&a).await, &None, "nothing is done");
}

pub(crate) async fn an_unknown_index_is_refused<S: Store>(bed: Bed<S>) {
    let query = Query::prefix(Some("GSI9"), "a", "");
    let error = bed.store.query(Table::Main, &query, None).await.unwrap_err();
    bed.same(&error.is_retry(), &false, &error);
}
