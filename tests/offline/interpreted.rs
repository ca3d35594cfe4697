//! One rule about values that cannot be interpreted: they are absent, for derivations and for index keys alike.

use derive::{kind::Shape, schema::Image};
use keys::{item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

/// Values that fit few declarations.
fn unfit() -> [AttributeValue; 6] {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    [
        text(""),
        text("19.90"),
        AttributeValue::N("7".to_owned()),
        AttributeValue::N("-0.5".to_owned()),
        AttributeValue::Bool(true),
        AttributeValue::L(Vec::new()),
    ]
}

/// The index keys that an item's writer makes.
fn index_keys(layout: &Layout, image: &Image<'_>, item: &Item) -> Vec<(String, Option<AttributeValue>)> {
    let fields = image.definition.fields(image.key, item).unwrap();
    image.definition.index_attributes(layout, &fields)
}

#[test]
fn a_value_that_a_derivation_cannot_interpret_is_absent_in_index_keys_and_in_what_is_derived() {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for sample in entities::samples::samples().unwrap() {
        let key: Key = schema.layout.key(&sample).unwrap();
        let names: Vec<String> = sample.iter().map(|(name, _)| name.to_owned()).collect();
        for (name, unfit) in names.iter().flat_map(|name| unfit().map(|unfit| (name, unfit))) {
            let mut item = sample.clone();
            item.insert(name.clone(), unfit.clone());
            let without: Item = item.clone().into_iter().filter(|(other, _)| other != name).collect();
            let Some(image) = schema.image(&key, &item) else { continue };
            for derivation in catalogue.derivations() {
                let kind = &derivation.kind;
                let why = kind.unreadable(&schema, &image).filter(|why| why.attribute == *name);
                if why.is_none() {
                    continue;
                }
                kinds.insert(kind.name());
                let of = format!("{} of {key} with {name} {unfit:?}", derivation.name);
                let keys = index_keys(&schema.layout, &image, &item);
                assert_eq!(keys, index_keys(&schema.layout, &image, &without), "{of}");
                // An additive derivation counts nothing of it.
                if matches!(kind.shape(), Shape::Count(_) | Shape::Rollup(_)) {
                    let items = [(key.clone(), item.clone())].into();
                    let derived = kind.derive(&derivation.name, &schema, &items, &derive::derived::Counts::default());
                    assert!(derived.is_empty(), "{of}: {derived:?}");
                }
            }
        }
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["copy", "count and sum", "display", "index key", "mirror", "path", "roll-up"]
    );
}
