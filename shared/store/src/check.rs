//! Checks calls against DynamoDB's rules before they are sent, and says why one is refused.
//!
//! A refusal here names the item; DynamoDB's would only name the call, which may have a hundred items. Both stores
//! check first, so that the model refuses what DynamoDB would.

use std::collections::BTreeSet;

use derive::{
    guard::{Ask, Guard},
    query::{Consistency, Query},
    write::{Action, ITEM_BYTES_MAX, Table, Transaction, Update, Write},
};
use keys::{
    item::Item,
    key::{Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX},
    layout::Layout,
    number,
    size::item_bytes,
    tables::{IndexForm, KeyAttribute, KeyMisfit, KeyRange, KeyType, TableForm},
};
use serde_dynamo::AttributeValue;

use crate::{
    StoreError, TRANSACT_BYTES_MAX,
    expression::{EXPRESSION_BYTES_MAX, OPERATORS_MAX, UpdateExpression},
    outward::{form, outward, ranges},
};

/// How deep lists and maps may be nested. Source: DynamoDB service quotas.
const DEPTH_MAX: usize = 32;

/// Longest text of one test of a guard, with the `AND` behind it, in bytes: `(attribute_not_exists(#g999) OR #g999 <
/// :g999) AND ` has 55.
const ASK_BYTES_MAX: usize = 64;

/// Checks that an item can have this key. Reads treat the item of any other key as missing.
pub(crate) fn key(layout: &Layout, table: Table, key: &Key) -> Result<(), Refusal> {
    let Some(form) = form(layout, table, key) else {
        key_text(&layout.pk, &key.pk, PARTITION_KEY_BYTES_MAX)?;
        return key_text(&layout.sk, &key.sk, SORT_KEY_BYTES_MAX);
    };
    let stored = form.key_item(key).ok_or_else(|| Refusal::KeyType { attribute: form.pk.name.clone() })?;
    let sk = form.sk.iter().map(|sk| (sk, SORT_KEY_BYTES_MAX));
    let mut parts = std::iter::once((&form.pk, PARTITION_KEY_BYTES_MAX)).chain(sk);
    parts.try_for_each(|(part, bytes_max)| stored.get(&part.name).map_or(Ok(()), |it| key_value(part, it, bytes_max)))
}

/// The query's conditions on its key attributes; `None` if no item can match.
pub(crate) fn query(layout: &Layout, table: Table, query: &Query) -> Result<Option<(KeyRange, KeyRange)>, Refusal> {
    if let Some(name) = &query.index {
        if layout.index(name).is_none() || table != Table::Main {
            return Err(Refusal::UnknownIndex { index: name.clone() });
        }
        if query.consistency == Consistency::Strong {
            return Err(Refusal::IndexConsistent { index: name.clone() });
        }
    }
    let Some((pk, sk)) = ranges(layout, table, query) else { return Ok(None) };
    let between = sk.between.iter().flat_map(|(name, bounds)| bounds.iter().map(move |bound| (name, bound)));
    for (name, bound) in between.chain(sk.after.iter().map(|(name, bound)| (name, bound))) {
        fitting(name, KeyMisfit::of_size(bound, SORT_KEY_BYTES_MAX), SORT_KEY_BYTES_MAX)?;
    }
    let can_be = |value, bytes_max| KeyMisfit::of_size(value, bytes_max).is_none();
    let pk_can_be = pk.equal.iter().all(|(_, value)| can_be(value, PARTITION_KEY_BYTES_MAX));
    let sk_can_be = sk.equal.iter().chain(&sk.begins_with).all(|(_, value)| can_be(value, SORT_KEY_BYTES_MAX));
    Ok((pk_can_be && sk_can_be).then_some((pk, sk)))
}

pub(crate) fn write(layout: &Layout, write: &Write) -> Result<(), Refusal> {
    key(layout, write.table, &write.key)?;
    if matches!(&write.action, Action::Put(item) if layout.key(item).as_ref() != Some(&write.key)) {
        return Err(Refusal::KeyDiffers);
    }
    // Checks the stored form, which may be smaller than the inner one.
    match form(layout, write.table, &write.key) {
        None => action(&Keys::Texts(layout, write.table), write),
        Some(form) => {
            let stored = outward(form, write).ok_or_else(|| Refusal::KeyType { attribute: form.pk.name.clone() })?;
            action(&Keys::Values(form), &stored)
        }
    }
}

/// The key attributes of a table and its indexes.
enum Keys<'a> {
    /// Texts, under the layout's names.
    Texts(&'a Layout, Table),
    /// Values of their types.
    Values(&'a TableForm),
}

impl Keys<'_> {
    fn pk(&self) -> &str {
        match self {
            Self::Texts(layout, _) => &layout.pk,
            Self::Values(form) => &form.pk.name,
        }
    }

    fn is_of_primary(&self, name: &str) -> bool {
        match self {
            Self::Texts(layout, _) => name == layout.pk || name == layout.sk,
            Self::Values(form) => form.is_of_key(name),
        }
    }

    /// Checks an item's attributes of index keys. They may be missing, but present ones must fit.
    fn of_indexes(&self, item: &Item) -> Result<(), Refusal> {
        let text = |attribute: &str, bytes_max| match item.get(attribute) {
            None => Ok(()),
            Some(AttributeValue::S(text)) => key_text(attribute, text, bytes_max),
            Some(_) => Err(Refusal::KeyType { attribute: attribute.to_owned() }),
        };
        let stored = |part: &KeyAttribute, bytes_max| {
            item.get(&part.name).map_or(Ok(()), |value| key_value(part, value, bytes_max))
        };
        match self {
            Self::Texts(_, Table::Ledger) => Ok(()),
            // With table forms, these are Ripple's own items, which have no index attributes.
            Self::Texts(layout, Table::Main) => layout.indexes.iter().try_for_each(|index| {
                text(&index.pk, PARTITION_KEY_BYTES_MAX)?;
                text(&index.sk, SORT_KEY_BYTES_MAX)
            }),
            Self::Values(form) => form.indexes.iter().try_for_each(|index| {
                index.pk.iter().try_for_each(|part| stored(part, PARTITION_KEY_BYTES_MAX))?;
                index.sk.iter().try_for_each(|part| stored(part, SORT_KEY_BYTES_MAX))
            }),
        }
    }

    /// True for an attribute of an index key of type S or B, to which nothing can be added.
    fn takes_no_amount(&self, name: &str) -> bool {
        match self {
            Self::Texts(_, Table::Ledger) => false,
            Self::Texts(layout, Table::Main) => layout.is_key(name),
            Self::Values(form) => {
                form.indexes.iter().flat_map(IndexForm::parts).any(|part| part.name == name && part.of != KeyType::N)
            }
        }
    }
}

fn action(keys: &Keys<'_>, write: &Write) -> Result<(), Refusal> {
    match &write.action {
        Action::Put(item) => {
            item_size(item)?;
            attributes(item)?;
            keys.of_indexes(item)?;
        }
        Action::Update(Update { set, add, delete, count_from, .. }) => {
            update(keys, &write.action)?;
            attributes(count_from)?;
            attributes(set)?;
            attributes(add)?;
            attributes(delete)?;
            keys.of_indexes(set)?;
            let mut amounts = add.keys().chain(delete.keys()).chain(count_from.keys());
            if let Some(attribute) = amounts.find(|name| keys.takes_no_amount(name)) {
                return Err(Refusal::KeyType { attribute: attribute.to_owned() });
            }
        }
        Action::Check if write.guard.is_none() => return Err(Refusal::CheckEmpty),
        Action::Delete | Action::Check => {}
    }
    write.guard.iter().try_for_each(|guard| condition(keys.pk(), guard))
}

fn condition(pk: &str, guard: &Guard) -> Result<(), Refusal> {
    let n_operators = guard.n_operators();
    if n_operators > OPERATORS_MAX {
        return Err(Refusal::ConditionOperators { n_operators });
    }
    if guard.asks.len() * ASK_BYTES_MAX > EXPRESSION_BYTES_MAX {
        let bytes = guard.condition(pk).expression.len();
        if bytes > EXPRESSION_BYTES_MAX {
            return Err(Refusal::ConditionTooLong { bytes });
        }
    }
    guard.asks.iter().filter_map(Ask::value).try_for_each(|(attribute, value)| value_of(attribute, value, 0))
}

/// Checks a single write.
pub(crate) fn single(layout: &Layout, one: &Write) -> Result<(), Refusal> {
    if one.action == Action::Check { Err(Refusal::CheckAlone) } else { write(layout, one) }
}

/// The first write that would be refused, with the reason.
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

/// Checks the size of an item with this key in its stored form.
pub(crate) fn stored_size(layout: &Layout, (table, key): (Table, &Key), item: &Item) -> Result<(), Refusal> {
    match form(layout, table, key).and_then(|form| form.outward(item)) {
        Some(stored) => item_size(&stored),
        None => item_size(item),
    }
}

fn item_size(item: &Item) -> Result<(), Refusal> {
    let bytes = item_bytes(item);
    if bytes > ITEM_BYTES_MAX { Err(Refusal::ItemTooLarge { bytes }) } else { Ok(()) }
}

fn update(keys: &Keys<'_>, action: &Action) -> Result<(), Refusal> {
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
        if keys.is_of_primary(attribute) {
            return Err(Refusal::KeyUpdated { attribute: attribute.to_owned() });
        }
        if !seen.insert(attribute) {
            return Err(Refusal::UpdatedTwice { attribute: attribute.to_owned() });
        }
    }
    item_size(set)?;
    if UpdateExpression::bytes_max(update) <= EXPRESSION_BYTES_MAX {
        return Ok(());
    }
    let bytes = UpdateExpression::new(update).text.len();
    if bytes > EXPRESSION_BYTES_MAX { Err(Refusal::UpdateTooLong { bytes }) } else { Ok(()) }
}

fn key_value(part: &KeyAttribute, value: &AttributeValue, bytes_max: usize) -> Result<(), Refusal> {
    fitting(&part.name, part.misfit(value, bytes_max), bytes_max)
}

fn fitting(attribute: &str, misfit: Option<KeyMisfit>, bytes_max: usize) -> Result<(), Refusal> {
    let attribute = attribute.to_owned();
    match misfit {
        None => Ok(()),
        Some(KeyMisfit::Type) => Err(Refusal::KeyType { attribute }),
        Some(KeyMisfit::Empty) => Err(Refusal::KeyEmpty { attribute }),
        Some(KeyMisfit::TooLong { bytes }) => Err(Refusal::KeyTooLong { attribute, bytes, bytes_max }),
    }
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
    // Nearly all numbers; the others need arithmetic.
    let is_short_integer = |text: &str| (1..=18).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    match value {
        AttributeValue::N(text) if is_short_integer(text) => Ok(()),
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

// ---- Why a call is refused ----

/// A rule of DynamoDB that a call breaks at any time.
///
/// It is the source of [`StoreError::Reject`], which names the item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key attribute is empty.
    #[error("the key attribute {attribute} is empty")]
    KeyEmpty {
        /// The attribute.
        attribute: String,
    },
    /// A key attribute is too long.
    #[error("the key attribute {attribute} has {bytes} bytes; the limit is {bytes_max}")]
    KeyTooLong {
        /// The attribute.
        attribute: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// A key attribute, of the table or of an index, does not have the type of the key.
    #[error("the key attribute {attribute} is not of the type of its key")]
    KeyType {
        /// The attribute.
        attribute: String,
    },
    /// A put's item has another key than the put.
    #[error("the attributes hold another key")]
    KeyDiffers,
    /// An update would change the item's key.
    #[error("the key attribute {attribute} cannot be updated")]
    KeyUpdated {
        /// The attribute.
        attribute: String,
    },
    /// An update changes an attribute twice.
    #[error("the attribute {attribute} is updated twice")]
    UpdatedTwice {
        /// The attribute.
        attribute: String,
    },
    /// A check that is not part of a transaction.
    #[error("a check of an item stands in a transaction only")]
    CheckAlone,
    /// A check without any test.
    #[error("a check of an item asks for nothing")]
    CheckEmpty,
    /// A consistent read of an index.
    #[error("the index {index} cannot be read consistently")]
    IndexConsistent {
        /// The index.
        index: String,
    },
    /// An update without any change.
    #[error("the update changes no attribute")]
    UpdateEmpty,
    /// An update changes too many attributes.
    #[error("the update expression has {bytes} bytes; the limit is {EXPRESSION_BYTES_MAX}")]
    UpdateTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A condition is too long.
    #[error("the condition has {bytes} bytes; the limit is {EXPRESSION_BYTES_MAX}")]
    ConditionTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A condition has too many operators.
    #[error("the condition has {n_operators} operators; the limit is {OPERATORS_MAX}")]
    ConditionOperators {
        /// How many it has.
        n_operators: usize,
    },
    /// An amount is added to an attribute that is not a number.
    #[error("the attribute {attribute} is not of type N, nothing can be added to it")]
    AddType {
        /// The attribute.
        attribute: String,
    },
    /// A number has too many digits, is too large or too small, or is not a number.
    #[error("the attribute {attribute} holds a number that DynamoDB cannot hold")]
    Number {
        /// The attribute.
        attribute: String,
    },
    /// A set is empty, or contains a value twice.
    #[error("the attribute {attribute} holds a set that is empty or has a value twice")]
    Set {
        /// The attribute.
        attribute: String,
    },
    /// A null is false.
    #[error("the attribute {attribute} holds a null that is false")]
    Null {
        /// The attribute.
        attribute: String,
    },
    /// A value is nested too deeply.
    #[error("the attribute {attribute} is nested too deep")]
    Depth {
        /// The attribute.
        attribute: String,
    },
    /// An attribute has no name.
    #[error("an attribute has no name")]
    NameEmpty,
    /// The item is too large.
    #[error("the item has {bytes} bytes; the limit is {ITEM_BYTES_MAX}")]
    ItemTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// The transaction is too large.
    #[error("the transaction has {bytes} bytes; the limit is {TRANSACT_BYTES_MAX}")]
    TransactionTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// There is no such index.
    #[error("the layout has no index {index}")]
    UnknownIndex {
        /// The index.
        index: String,
    },
}

impl Refusal {
    /// The refusal of an operation on an item, named as logs may name it.
    pub(crate) fn of(self, operation: &'static str, item: &str) -> StoreError {
        StoreError::Reject { operation, item: item.to_owned(), source: Box::new(self) }
    }
}
