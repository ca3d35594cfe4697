//! Claims: a mirror's list of the keys of its sources.
//!
//! A mirror has this list if its own key does not give its source's key, for example because a post's date can change.

use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::schema::Schema;

/// Attribute of a mirror that lists the keys of the sources that claim it. Stored, so it is stable.
pub const CLAIMS: &str = "Claims";

/// The claims that a mirror lists; entries that cannot be read as a key are left out.
#[must_use]
pub fn claims(schema: &Schema, item: &Item) -> Vec<Key> {
    let Some(AttributeValue::L(claims)) = item.get(CLAIMS) else { return Vec::new() };
    let claim = |value: &AttributeValue| {
        let AttributeValue::M(map) = value else { return None };
        let text = |name: &str| match map.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        Some(Key { pk: text(&schema.layout.pk)?, sk: text(&schema.layout.sk)? })
    };
    claims.iter().filter_map(claim).collect()
}

/// The value of [`CLAIMS`] that lists these keys.
pub(crate) fn claims_value(schema: &Schema, claims: &[Key]) -> AttributeValue {
    let map = |key: &Key| AttributeValue::M(schema.layout.key_item(key).into_iter().collect());
    AttributeValue::L(claims.iter().map(map).collect())
}
