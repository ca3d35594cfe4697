//! The ledger: the record of which changes are already in.

pub mod receipts;

use keys::{item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

/// Attribute of the ledger's items that holds their time to live, in epoch seconds. Stored, so it is stable.
pub const EXPIRES_AT: &str = "ExpiresAt";

/// An item of the ledger's table with these further attributes.
#[must_use]
pub fn ledger_item<const N: usize>(layout: &Layout, key: &Key, attributes: [(&str, AttributeValue); N]) -> Item {
    let mut item = layout.key_item(key);
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}
