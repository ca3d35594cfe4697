//! Values are read as they were written.

use keys::value::same_item;
use std::collections::HashMap;

use entities::{samples::samples, table::definitions};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::contract::{
    bed::{self, Bed},
    items::{item, key, n, put, s, set},
};

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
    let (definitions, samples) = (definitions(), samples().unwrap());
    assert_eq!(samples.len(), definitions.len(), "a sample of each");
    for sample in samples {
        let key = bed::layout().key(&sample).unwrap();
        bed.done(&put(&key, sample.clone())).await;
        let found = bed.item(&key).await.unwrap();
        assert!(same_item(&found, &sample), "{}: {key} comes back as {found:?}", bed.name);
        let entity = keys::item::text(&sample, "EntityType").unwrap();
        let definition = definitions.iter().find(|definition| definition.name == entity).unwrap();
        assert!(definition.key.parse_key(&key).is_some(), "{}: {key} is of its form", definition.id);
        for index in &definition.indexes {
            let fields = definition.fields(&key, &found).unwrap();
            let wanted = definition.index_key(index, &fields).ok().flatten();
            let held = keys::item::text(&found, &format!("{}PK", index.index)).map(str::to_owned);
            bed.same(&held, &wanted.map(|key| key.pk), (&definition.id, &index.index));
        }
    }
}
