//! Attributes of the engine's own items: texts, and whole numbers that are not negative.

use derive::{query::Query, write::Table};
use flate2::Crc;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Store, StoreError};

/// A text.
pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A number.
pub(crate) fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The number in an attribute; `None` for anything else.
pub(crate) fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name) {
        Some(AttributeValue::N(text)) => text.parse().ok(),
        _ => None,
    }
}

// ---- Sort keys from texts of any length ----

/// Longest sort key that is used unchanged, in bytes; a longer one is cut and distinguished by its checksum.
const SPELLED_OUT_MAX: usize = 900;

/// Sort key of an item's entry in the list of a derivation.
pub(crate) fn sort_key(derivation: &str, item: &Key) -> String {
    fitted(format!("{derivation}#{}#{}", item.pk, item.sk))
}

/// A text that fits in a sort key: unchanged, or cut and distinguished by its checksum.
pub(crate) fn fitted(text: String) -> String {
    if text.len() <= SPELLED_OUT_MAX {
        return text;
    }
    let end = text.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}#{:08x}", text.get(..end).unwrap_or_default(), checksum(&text))
}

/// CRC-32 of a text.
pub(crate) fn checksum(text: &str) -> u32 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}

// ---- Reading a whole partition of a table ----

/// All items of a partition, page by page.
pub(crate) async fn all<S: Store>(store: &S, table: Table, pk: &str) -> Result<Vec<Item>, StoreError> {
    let query = Query::prefix(None, pk, "");
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = store.query(table, &query, after).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}
