//! What DynamoDB refuses by its own rules, seen before the call.
//!
//! A refusal here names the item; DynamoDB's would name the call, and a call may have a hundred items. Both stores ask
//! here first, so that the model refuses what the real one would.

use std::collections::BTreeSet;

use derive::{
    guard::{Ask, Guard},
    query::{Consistency, Query, SortKeys},
    write::{Action, ITEM_BYTES_MAX, Table, Transaction, Update, Write},
};
use keys::{
    item::Item,
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    layout::Layout,
    number,
    size::item_bytes,
};
use serde_dynamo::AttributeValue;

use crate::{
    expression::{EXPRESSION_BYTES_MAX, OPERATORS_MAX, UpdateExpression},
    refusal::Refusal,
    size::TRANSACT_BYTES_MAX,
};

/// How deep lists and maps may be nested. Source: DynamoDB service quotas.
const DEPTH_MAX: usize = 32;

pub(crate) fn key(layout: &Layout, key: &Key) -> Result<(), Refusal> {
    key_text(&layout.pk, &key.pk, PARTITION_KEY_BYTES_MAX)?;
    key_text(&layout.sk, &key.sk, SORT_KEY_BYTES_MAX)
}

pub(crate) fn query(layout: &Layout, table: Table, query: &Query) -> Result<(), Refusal> {
    let (pk, sk) = match &query.index {
        None => (&layout.pk, &layout.sk),
        Some(name) => match layout.index(name).filter(|_| table == Table::Main) {
            Some(_) if query.consistency == Consistency::Strong => {
                return Err(Refusal::IndexConsistent { index: name.clone() });
            }
            Some(index) => (&index.pk, &index.sk),
            None => return Err(Refusal::UnknownIndex { index: name.clone() }),
        },
    };
    key_text(pk, &query.pk, PARTITION_KEY_BYTES_MAX)?;
    match &query.sk {
        SortKeys::All => Ok(()),
        SortKeys::Prefix(prefix) => key_text(sk, prefix, SORT_KEY_BYTES_MAX),
        SortKeys::Between(first, last) => {
            key_text(sk, first, SORT_KEY_BYTES_MAX)?;
            key_text(sk, last, SORT_KEY_BYTES_MAX)
        }
    }
}

pub(crate) fn write(layout: &Layout, write: &Write) -> Result<(), Refusal> {
    key(layout, &write.key)?;
    match &write.action {
        Action::Put(item) => put(layout, write, item)?,
        Action::Update(Update { set, add, delete, count_from, .. }) => {
            update(layout, &write.action)?;
            attributes(count_from)?;
            attributes(set)?;
            attributes(add)?;
            attributes(delete)?;
            index_keys(layout, write.table, set)?;
            if let Some(attribute) = add
                .keys()
                .chain(delete.keys())
                .chain(count_from.keys())
                .find(|name| write.table == Table::Main && layout.is_key(name))
            {
                return Err(Refusal::KeyType { attribute: attribute.to_owned() });
            }
        }
        Action::Check if write.guard.is_none() => return Err(Refusal::CheckEmpty),
        Action::Delete | Action::Check => {}
    }
    write.guard.iter().try_for_each(|guard| condition(layout, guard))
}

fn condition(layout: &Layout, guard: &Guard) -> Result<(), Refusal> {
    let n_operators = guard.n_operators();
    if n_operators > OPERATORS_MAX {
        return Err(Refusal::ConditionOperators { n_operators });
    }
    let bytes = guard.condition(&layout.pk).expression.len();
    if bytes > EXPRESSION_BYTES_MAX {
        return Err(Refusal::ConditionTooLong { bytes });
    }
    guard.asks.iter().filter_map(Ask::value).try_for_each(|(attribute, value)| value_of(attribute, value, 0))
}

/// A write that stands alone.
pub(crate) fn single(layout: &Layout, one: &Write) -> Result<(), Refusal> {
    if one.action == Action::Check { Err(Refusal::CheckAlone) } else { write(layout, one) }
}

/// The first write that is refused, and why.
pub(crate) fn transaction<'a>(layout: &Layout, transaction: &'a Transaction) -> Result<(), (&'a Key, Refusal)> {
    let mut bytes = 0;
    for one in transaction.writes() {
        write(layout, one).map_err(|refusal| (&one.key, refusal))?;
        bytes += match &one.action {
            Action::Put(item) => item_bytes(item),
            Action::Update(update) => item_bytes(&update.set),
            Action::Delete | Action::Check => 0,
        };
        if bytes > TRANSACT_BYTES_MAX {
            return Err((&one.key, Refusal::TransactionTooLarge { bytes }));
        }
    }
    Ok(())
}

pub(crate) fn item_size(item: &Item) -> Result<(), Refusal> {
    let bytes = item_bytes(item);
    if bytes > ITEM_BYTES_MAX { Err(Refusal::ItemTooLarge { bytes }) } else { Ok(()) }
}

fn put(layout: &Layout, write: &Write, item: &Item) -> Result<(), Refusal> {
    if layout.key(item).as_ref() != Some(&write.key) {
        return Err(Refusal::KeyDiffers);
    }
    item_size(item)?;
    attributes(item)?;
    index_keys(layout, write.table, item)
}

fn update(layout: &Layout, action: &Action) -> Result<(), Refusal> {
    let Action::Update(update) = action else {
        return Ok(());
    };
    let Update { set, remove, add, delete, count_from } = update;
    let are_empty = [set, add, delete, count_from].iter().all(|part| part.is_empty());
    if are_empty && remove.is_empty() {
        return Err(Refusal::UpdateEmpty);
    }
    let mut seen = BTreeSet::new();
    let added = add.keys().chain(delete.keys()).chain(count_from.keys());
    for attribute in set.keys().chain(remove.iter().map(String::as_str)).chain(added) {
        if attribute.is_empty() {
            return Err(Refusal::NameEmpty);
        }
        if attribute == layout.pk || attribute == layout.sk {
            return Err(Refusal::KeyUpdated { attribute: attribute.to_owned() });
        }
        if !seen.insert(attribute) {
            return Err(Refusal::UpdatedTwice { attribute: attribute.to_owned() });
        }
    }
    item_size(set)?;
    let bytes = UpdateExpression::new(update).text.len();
    if bytes > EXPRESSION_BYTES_MAX { Err(Refusal::UpdateTooLong { bytes }) } else { Ok(()) }
}

/// An index key may be missing, but what there is must fit.
fn index_keys(layout: &Layout, table: Table, item: &Item) -> Result<(), Refusal> {
    if table == Table::Ledger {
        return Ok(());
    }
    for index in &layout.indexes {
        for (attribute, bytes_max) in [(&index.pk, PARTITION_KEY_BYTES_MAX), (&index.sk, SORT_KEY_BYTES_MAX)] {
            match item.get(attribute) {
                None => {}
                Some(AttributeValue::S(text)) => key_text(attribute, text, bytes_max)?,
                Some(_) => return Err(Refusal::KeyType { attribute: attribute.clone() }),
            }
        }
    }
    Ok(())
}

fn key_text(attribute: &str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::KeyEmpty { attribute: attribute.to_owned() });
    }
    if text.len() > bytes_max {
        return Err(Refusal::KeyTooLong { attribute: attribute.to_owned(), bytes: text.len(), bytes_max });
    }
    Ok(())
}

fn attributes(item: &Item) -> Result<(), Refusal> {
    item.iter().try_for_each(
        |(attribute, value)| {
            if attribute.is_empty() { Err(Refusal::NameEmpty) } else { value_of(attribute, value, 0) }
        },
    )
}

fn value_of(attribute: &str, value: &AttributeValue, depth: usize) -> Result<(), Refusal> {
    let attribute_owned = || attribute.to_owned();
    if depth > DEPTH_MAX {
        return Err(Refusal::Depth { attribute: attribute_owned() });
    }
    let is_set = |n_values: usize, n_distinct: usize| {
        let fits = n_values > 0 && n_values == n_distinct;
        if fits { Ok(()) } else { Err(Refusal::Set { attribute: attribute_owned() }) }
    };
    let canonical = |text| number::canonical(text).ok_or_else(|| Refusal::Number { attribute: attribute_owned() });
    match value {
        AttributeValue::N(text) => canonical(text).map(|_| ()),
        AttributeValue::Null(false) => Err(Refusal::Null { attribute: attribute_owned() }),
        AttributeValue::Ss(set) => is_set(set.len(), set.iter().collect::<BTreeSet<_>>().len()),
        AttributeValue::Bs(set) => is_set(set.len(), set.iter().collect::<BTreeSet<_>>().len()),
        AttributeValue::Ns(set) => {
            let distinct = set.iter().map(|text| canonical(text)).collect::<Result<BTreeSet<_>, _>>()?;
            is_set(set.len(), distinct.len())
        }
        AttributeValue::L(list) => list.iter().try_for_each(|value| value_of(attribute, value, depth + 1)),
        AttributeValue::M(map) => map.values().try_for_each(|value| value_of(attribute, value, depth + 1)),
        AttributeValue::S(_) | AttributeValue::B(_) | AttributeValue::Bool(_) | AttributeValue::Null(true) => Ok(()),
    }
}
