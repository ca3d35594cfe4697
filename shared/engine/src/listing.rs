//! The list of items that cannot be interpreted: absent for a derivation, until somebody mends them.
//!
//! The list is for a person. It is written from the images, once an item and derivation, and an item comes off it with
//! the change that makes it readable or removes it. `verify` tells the same from the items themselves.

use derive::{
    schema::Unreadable,
    write::{Action, Table, Write},
};
use flate2::Crc;
use keys::{key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

use crate::ledger::ledger_item;

/// Name under which an item is listed that no derivation can read.
pub const ALL_DERIVATIONS: &str = "*";

/// Longest sort key of the list that is spelled out, in bytes; a longer one is cut and told apart by its checksum.
const SPELLED_OUT_MAX: usize = 900;

/// The write that puts an item on the list of a derivation, or takes it off.
#[must_use]
pub fn listed(layout: &Layout, derivation: &str, item: &Key, unreadable: Option<&Unreadable>, now_ms: u64) -> Write {
    let key = Key::new("UNREADABLE", sort_key(derivation, item));
    let action = match unreadable {
        None => Action::Delete,
        Some(unreadable) => Action::Put(ledger_item(
            layout,
            &key,
            [
                ("Derivation", AttributeValue::S(derivation.to_owned())),
                ("ItemPK", AttributeValue::S(item.pk.clone())),
                ("ItemSK", AttributeValue::S(item.sk.clone())),
                ("Attribute", AttributeValue::S(unreadable.attribute.clone())),
                ("Why", AttributeValue::S(unreadable.why.clone())),
                ("ListedAt", AttributeValue::N(now_ms.to_string())),
            ],
        )),
    };
    Write { table: Table::Ledger, key, action, guard: None }
}

fn sort_key(derivation: &str, item: &Key) -> String {
    let spelled_out = format!("{derivation}#{}#{}", item.pk, item.sk);
    if spelled_out.len() <= SPELLED_OUT_MAX {
        return spelled_out;
    }
    let mut crc = Crc::new();
    crc.update(spelled_out.as_bytes());
    let end = spelled_out.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}#{:08x}", spelled_out.get(..end).unwrap_or_default(), crc.sum())
}
