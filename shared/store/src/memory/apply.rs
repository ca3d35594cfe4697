//! What a write makes of an item.

use derive::{
    guard::{Asks, Guard},
    value::same,
    write::{Action, Write},
};
use keys::{item::Item, layout::Layout};
use serde_dynamo::AttributeValue;

use super::form::canonical;
use crate::{check, number, refusal::Refusal};

/// Does the guard hold on this item?
pub(super) fn holds(guard: Option<&Guard>, item: Option<&Item>) -> bool {
    match guard.map(Guard::asks) {
        None => true,
        Some(Asks::Absent) => item.is_none(),
        Some(Asks::Present) => item.is_some(),
        Some(Asks::Equal(attribute, value)) => same(value, item.and_then(|item| item.get(attribute))),
    }
}

/// The item after the write; `None` when there is none.
pub(super) fn apply(layout: &Layout, write: &Write, old: Option<&Item>) -> Result<Option<Item>, Refusal> {
    match &write.action {
        Action::Put(item) => Ok(Some(canonical_item(item))),
        Action::Delete => Ok(None),
        Action::Update { set, remove, add } => {
            if old.is_none() && set.is_empty() && add.is_empty() {
                // Removing from nothing makes no item, as seen on AWS by the older parameters
                // (https://github.com/scylladb/scylladb/issues/5862); the emulators make one of the key alone. The
                // service sends no such update without a guard.
                return Ok(None);
            }
            let mut item = old.cloned().unwrap_or_else(|| layout.key_item(&write.key));
            item.extend(canonical_item(set));
            item.retain(|name, _| !remove.contains(name));
            for (name, amount) in add {
                let value = added(name, item.get(name), *amount)?;
                item.insert(name.clone(), value);
            }
            check::item_size(&item)?;
            Ok(Some(item))
        }
    }
}

fn added(name: &str, value: Option<&AttributeValue>, amount: i64) -> Result<AttributeValue, Refusal> {
    let text = match value {
        None => Some(amount.to_string()),
        Some(AttributeValue::N(text)) => number::sum(text, amount),
        Some(_) => return Err(Refusal::AddType { attribute: name.to_owned() }),
    };
    text.map(AttributeValue::N).ok_or_else(|| Refusal::Number { attribute: name.to_owned() })
}

fn canonical_item(item: &Item) -> Item {
    item.iter().map(|(name, value)| (name, canonical(value))).collect()
}
