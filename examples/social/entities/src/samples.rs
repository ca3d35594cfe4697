//! A sample item of each entity, for the page of the table's design and its prices.
//!
//! The entity's own `to_item` makes each, so the samples have the keys that a writer makes. They belong together: Ada
//! wrote the post that Grace comments on, and bought the tea that Grace reviewed. Their sizes are typical.

mod content;
mod people;
mod places;
mod trade;

use keys::{error::EntityError, item::Item};
use serde_dynamo::AttributeValue;

/// The time of all events in the samples, ISO 8601 UTC in milliseconds.
const AT: &str = "2024-01-15T10:30:00.000Z";

/// An item of each entity, in the order of the entities' ids.
///
/// # Errors
///
/// [`EntityError`] if one does not fit its declaration; a test shows that all fit.
pub fn samples() -> Result<Vec<Item>, EntityError> {
    let mut items = people::samples()?;
    items.extend(content::samples()?);
    items.extend(places::samples()?);
    items.extend(trade::samples()?);
    let layout = crate::table::layout();
    let place = |item: &Item| {
        let name = keys::item::text(item, layout.entity_type.as_deref()?).map(str::to_owned);
        crate::table::definitions().iter().position(|definition| Some(&definition.name) == name.as_ref())
    };
    items.sort_by_key(place);
    items.into_iter().map(placed).collect()
}

/// Adds the index keys that Ripple makes instead of a writer.
fn placed(mut item: Item) -> Result<Item, EntityError> {
    let layout = crate::table::layout();
    let name =
        keys::item::text(&item, layout.entity_type.as_deref().unwrap_or_default()).unwrap_or_default().to_owned();
    let definition = crate::table::definitions().into_iter().find(|definition| definition.name == name);
    let Some((definition, key)) = definition.zip(layout.key(&item)) else { return Ok(item) };
    let fields = definition.fields(&key, &item).unwrap_or_default();
    for index in definition.indexes.iter().filter(|index| index.derived) {
        if let (Some(names), Some(key)) = (layout.index(&index.index), definition.index_key(index, &fields)?) {
            item.insert(names.pk.clone(), AttributeValue::S(key.pk));
            item.insert(names.sk.clone(), AttributeValue::S(key.sk));
        }
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use keys::item::text;

    use super::*;
    use crate::table::{definitions, layout};

    #[test]
    fn there_is_one_of_each_entity_in_order_and_it_has_all_that_is_declared() {
        let (layout, samples) = (layout(), samples().unwrap());
        let names: Vec<&str> = samples.iter().map(|item| text(item, "EntityType").unwrap()).collect();
        let wanted: Vec<&str> = definitions().iter().map(|definition| definition.name.as_str()).collect();
        assert_eq!(names, wanted);
        for (definition, item) in definitions().into_iter().zip(&samples) {
            let declared = definition.attributes.iter().chain(&definition.derived_attributes);
            for name in declared {
                // An item of an order that is not cancelled lacks this attribute.
                assert!(item.contains_key(name) || name == "Cancelled", "{}.{name}", definition.name);
            }
            assert!(definition.key.parse_key(&layout.key(item).unwrap()).is_some(), "{}", definition.name);
            for index in &definition.indexes {
                let names = layout.index(&index.index).unwrap();
                assert!(item.contains_key(&names.pk), "{} in {}", definition.name, index.index);
            }
        }
    }
}
