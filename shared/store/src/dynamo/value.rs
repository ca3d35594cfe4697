//! Values between this workspace and the SDK.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use keys::item::Item;

/// An item, or the values of an expression, for the SDK.
pub(super) fn to_sdk(values: &Item) -> HashMap<String, SdkValue> {
    values.iter().map(|(name, value)| (name.to_owned(), value.clone().into())).collect()
}

/// An item of the SDK's.
pub(super) fn from_sdk(item: HashMap<String, SdkValue>) -> Item {
    item.into_iter().map(|(name, value)| (name, value.into())).collect()
}

/// A map for the SDK, which takes none where an empty one would be refused.
pub(super) fn unless_empty<V>(map: impl IntoIterator<Item = (String, V)>) -> Option<HashMap<String, V>> {
    let map: HashMap<String, V> = map.into_iter().collect();
    (!map.is_empty()).then_some(map)
}
