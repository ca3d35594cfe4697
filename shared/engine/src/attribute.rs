//! Attributes of the items that the engine keeps for itself: texts, and numbers that are whole and not negative.

use keys::item::Item;
use serde_dynamo::AttributeValue;

/// A text.
pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A number.
pub(crate) fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The number that an attribute holds; `None` for anything else.
pub(crate) fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name) {
        Some(AttributeValue::N(text)) => text.parse().ok(),
        _ => None,
    }
}
