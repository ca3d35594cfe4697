//! What the pages say of amounts that are missing, attributes that nobody declared, and ids that are not escaped.

use derive::{
    derived::{Derived, Items},
    schema::Seen,
    whole::derive,
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

/// What is derived of one item of the shipped table, without an attribute if one is named, by one derivation.
fn derived_of(derivation: &str, entity: &str, edit: impl Fn(&mut Item)) -> Vec<Derived> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    let is_it = |sample: &&Item| keys::item::text(sample, "EntityType") == Some(entity);
    let samples = entities::samples::samples().unwrap();
    let mut item = samples.iter().find(is_it).unwrap().clone();
    edit(&mut item);
    let key: Key = schema.layout.key(&item).unwrap();
    let items: Items = [(key, item)].into();
    let whole = derive(&schema, &catalogue, &items);
    whole.by_derivation.into_iter().filter(|(name, _)| name == derivation).flat_map(|(_, derived)| derived).collect()
}

/// Count and sum of the only target.
fn tally(derived: &[Derived]) -> (i64, bool) {
    match derived {
        [Derived::Count { tally, .. }] => (tally.count, tally.sum.is_zero()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_item_without_the_summed_attribute_counts_and_adds_nothing_and_a_reading_without_a_value_takes_no_part() {
    for (derivation, entity, amount) in [
        ("folder-totals", "File", "SizeBytes"),
        ("product-rating", "Review", "Rating"),
        ("order-totals", "Order", "Total"),
        ("units-sold", "OrderItem", "Quantity"),
    ] {
        assert_eq!(tally(&derived_of(derivation, entity, |_| ())), (1, false), "{derivation}");
        let without = derived_of(derivation, entity, |item| drop(item.remove(amount)));
        assert_eq!(tally(&without), (1, true), "{derivation} without {amount}");
        let unreadable = AttributeValue::S("7".to_owned());
        let unreadable =
            derived_of(derivation, entity, |item| drop(item.insert(amount.to_owned(), unreadable.clone())));
        assert!(unreadable.is_empty(), "{derivation} with {amount} of type S: {unreadable:?}");
    }
    assert_eq!(derived_of("readings-rollup", "Reading", |_| ()).len(), 2, "the hour and the day");
    assert!(derived_of("readings-rollup", "Reading", |item| drop(item.remove("Value"))).is_empty());
}

#[test]
fn a_mirror_takes_what_nobody_declared() {
    let note = AttributeValue::S("x".to_owned());
    let mirrors = derived_of("follower-mirror", "Follow", |item| drop(item.insert("Note".to_owned(), note.clone())));
    let [Derived::Item { item, .. }] = &mirrors[..] else { panic!("{mirrors:?}") };
    assert_eq!(item.get("Note"), Some(&note));
}

#[test]
fn an_item_whose_id_is_not_escaped_is_named_as_unreadable_and_nothing_is_derived_of_it() {
    let follow = |sk: &str| {
        let sk = AttributeValue::S(sk.to_owned());
        derived_of("follower-mirror", "Follow", |item| drop(item.insert("SK".to_owned(), sk.clone())))
    };
    let mirrors = follow("FOLLOWS#50%25");
    let [Derived::Item { key, .. }] = &mirrors[..] else { panic!("{mirrors:?}") };
    assert_eq!(key.pk, "USER#50%25");
    let schema = catalogue::schema();
    for sk in ["FOLLOWS#50%", "FOLLOWS#5#0"] {
        assert!(follow(sk).is_empty(), "{sk}");
        let key = Key::new("USER#ann", sk);
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of("Follow"));
        let Seen::Misfit(unreadable) = schema.see(&key, &item) else { panic!("{sk}") };
        let hint = unreadable.why.contains("% is written %25");
        assert_eq!(hint, sk.contains('%'), "{unreadable}");
    }
}
