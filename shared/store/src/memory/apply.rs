//! Applies a write to an item.

use std::collections::BTreeSet;

use derive::write::{Action, Update, Write};
use keys::{item::Item, layout::Layout, number};
use serde_dynamo::AttributeValue;

use crate::memory::canonical;
use crate::{check, refusal::Refusal};

/// The item after the write; `None` if none is left.
pub(super) fn apply(layout: &Layout, write: &Write, old: Option<&Item>) -> Result<Option<Item>, Refusal> {
    match &write.action {
        Action::Put(item) => Ok(Some(canonical_item(item))),
        Action::Delete => Ok(None),
        Action::Check => Ok(old.cloned()),
        Action::Update(Update { set, remove, add, delete, count_from }) => {
            if old.is_none() && set.is_empty() && add.is_empty() && count_from.is_empty() {
                // Removing from a missing item creates none, as seen on AWS with the older parameters
                // (https://github.com/scylladb/scylladb/issues/5862); the emulators create one with only the key. The
                // service sends no such update without a guard.
                return Ok(None);
            }
            let mut item = old.cloned().unwrap_or_else(|| layout.key_item(&write.key));
            item.extend(canonical_item(set));
            item.retain(|name, _| !remove.contains(name));
            for (name, amount) in add {
                let value = added(name, item.get(name), amount)?;
                item.insert(name.to_owned(), value);
            }
            for (name, from) in count_from {
                let value = added(name, item.get(name).or(Some(from)), &AttributeValue::N("1".to_owned()))?;
                item.insert(name.to_owned(), value);
            }
            for (name, elements) in delete {
                match taken(name, item.get(name), elements)? {
                    Some(value) => drop(item.insert(name.to_owned(), value)),
                    None => drop(item.remove(name)),
                }
            }
            check::stored_size(layout, write.target(), &item)?;
            Ok(Some(item))
        }
    }
}

fn added(name: &str, value: Option<&AttributeValue>, amount: &AttributeValue) -> Result<AttributeValue, Refusal> {
    let refused = || Refusal::AddType { attribute: name.to_owned() };
    match (value, amount) {
        (value, AttributeValue::N(amount)) => {
            let text = match value {
                None => number::canonical(amount),
                Some(AttributeValue::N(text)) => number::sum(text, amount),
                Some(_) => return Err(refused()),
            };
            text.map(AttributeValue::N).ok_or_else(|| Refusal::Number { attribute: name.to_owned() })
        }
        (None, AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_)) => Ok(canonical(amount)),
        (Some(AttributeValue::Ss(held)), AttributeValue::Ss(more)) => Ok(AttributeValue::Ss(union(held, more))),
        (Some(AttributeValue::Ns(held)), AttributeValue::Ns(more)) => {
            let AttributeValue::Ns(more) = canonical(&AttributeValue::Ns(more.clone())) else { return Err(refused()) };
            Ok(AttributeValue::Ns(union(held, &more)))
        }
        (Some(AttributeValue::Bs(held)), AttributeValue::Bs(more)) => Ok(AttributeValue::Bs(union(held, more))),
        _ => Err(refused()),
    }
}

fn union<T: Ord + Clone>(held: &[T], more: &[T]) -> Vec<T> {
    held.iter().chain(more).collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// A set without these elements; `None` if none is left, since a set cannot be empty.
fn taken(
    name: &str,
    value: Option<&AttributeValue>,
    elements: &AttributeValue,
) -> Result<Option<AttributeValue>, Refusal> {
    let left = match (value, canonical(elements)) {
        (None, _) => None,
        (Some(AttributeValue::Ss(held)), AttributeValue::Ss(less)) => without(held, &less).map(AttributeValue::Ss),
        (Some(AttributeValue::Ns(held)), AttributeValue::Ns(less)) => without(held, &less).map(AttributeValue::Ns),
        (Some(AttributeValue::Bs(held)), AttributeValue::Bs(less)) => without(held, &less).map(AttributeValue::Bs),
        _ => return Err(Refusal::AddType { attribute: name.to_owned() }),
    };
    Ok(left)
}

fn without<T: PartialEq + Clone>(held: &[T], less: &[T]) -> Option<Vec<T>> {
    let left: Vec<T> = held.iter().filter(|element| !less.contains(element)).cloned().collect();
    (!left.is_empty()).then_some(left)
}

fn canonical_item(item: &Item) -> Item {
    item.iter().map(|(name, value)| (name, canonical(value))).collect()
}
