//! Items as this workspace holds them: attributes in order of their names.

use std::collections::BTreeMap;

use serde_dynamo::AttributeValue;

/// An item's attributes by name.
///
/// A `BTreeMap`, so that whatever is computed from an item comes out the same in every run.
pub type Item = BTreeMap<String, AttributeValue>;

/// The text of an attribute of type S, when it is one.
#[must_use]
pub fn text<'a>(item: &'a Item, attribute: &str) -> Option<&'a str> {
    match item.get(attribute) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}
