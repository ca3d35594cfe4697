//! A call, as a decider and a trace see it.

use std::fmt;

use derive::{
    guard::Ask,
    query::Query,
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

/// A call of a store.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Items by key.
    Get(Table, &'a [Key]),
    /// A page of a query.
    Query(Table, &'a Query),
    /// A page of a table.
    Scan(Table),
    /// One write.
    Write(&'a Write),
    /// A transaction.
    Transact(&'a Transaction),
}

impl Call<'_> {
    /// The operation, as DynamoDB names it.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Get(..) => "BatchGetItem",
            Self::Query(..) => "Query",
            Self::Scan(_) => "Scan",
            Self::Write(write) => crate::operation(&write.action),
            Self::Transact(_) => "TransactWriteItems",
        }
    }

    /// True if it only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Get(..) | Self::Query(..) | Self::Scan(_))
    }

    /// Number of writes of the call; 0 if it only reads.
    #[must_use]
    pub fn n_writes(&self) -> usize {
        match self {
            Self::Write(_) => 1,
            Self::Transact(transaction) => transaction.writes().len(),
            Self::Get(..) | Self::Query(..) | Self::Scan(_) => 0,
        }
    }

    /// The item, for a message.
    pub(super) fn item(&self) -> String {
        match self {
            Self::Get(_, keys) => keys.first().map(ToString::to_string).unwrap_or_default(),
            Self::Query(_, query) => query.pk.clone(),
            Self::Scan(table) => format!("{table:?}"),
            Self::Write(write) => write.key.to_string(),
            Self::Transact(transaction) => {
                transaction.writes().first().map(|write| write.key.to_string()).unwrap_or_default()
            }
        }
    }
}

impl fmt::Display for Call<'_> {
    /// For a reader of a trace: every item, and what is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(table, keys) => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                write!(f, "gets {table:?} [{}]", keys.join(", "))
            }
            Self::Query(table, query) => {
                let index = query.index.as_deref().unwrap_or_default();
                write!(f, "queries {table:?} {index} for {} / {}…", query.pk, query.sk.first())
            }
            Self::Scan(table) => write!(f, "scans {table:?}"),
            Self::Write(one) => write!(f, "writes [{}]", described(one)),
            Self::Transact(transaction) => {
                let writes: Vec<String> = transaction.writes().iter().map(described).collect();
                write!(f, "transacts [{}]", writes.join(", "))
            }
        }
    }
}

/// A short description of a write.
fn described(write: &Write) -> String {
    let (key, mut parts) = (&write.key, Vec::new());
    match &write.action {
        Action::Put(_) if write.table == Table::Ledger => parts.push(format!("put {key}")),
        Action::Put(item) => {
            let mut rest = item.clone();
            rest.retain(|_, value| !matches!(value, AttributeValue::S(text) if *text == key.pk || *text == key.sk));
            parts.extend([format!("put {key}"), attributes(&rest)]);
        }
        Action::Delete => parts.push(format!("delete {key}")),
        Action::Check => parts.push(format!("check {key}")),
        Action::Update(Update { set, remove, add, delete, count_from }) => {
            parts.extend([format!("update {key}"), attributes(set)]);
            parts.extend(add.iter().map(|(name, amount)| format!("{name}+{}", shown(amount))));
            parts.extend(count_from.iter().map(|(name, from)| format!("{name}++ from {}", shown(from))));
            parts.extend(delete.iter().map(|(name, elements)| format!("{name}-{}", shown(elements))));
            parts.extend(remove.iter().map(|name| format!("-{name}")));
        }
    }
    parts.extend(write.guard.iter().flat_map(|guard| &guard.asks).map(|ask| match &ask {
        Ask::Absent => "if absent".to_owned(),
        Ask::Present => "if present".to_owned(),
        Ask::Lacks(attribute) => format!("if without {attribute}"),
        Ask::Equal(attribute, value) => format!("if {attribute}={}", shown(value)),
        Ask::Differs(attribute, value) => format!("if {attribute}<>{}", shown(value)),
        Ask::AtLeast(attribute, value) => format!("if {attribute}>={}", shown(value)),
        Ask::LacksOrEqual(attribute, value) => format!("if without {attribute} or {attribute}={}", shown(value)),
        Ask::BelowOrLacksBoth(attribute, value, other) => {
            format!("if without {attribute} and {other} or {attribute}<{}", shown(value))
        }
        Ask::LacksOrBelow(attribute, value) => format!("if without {attribute} or {attribute}<{}", shown(value)),
    }));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn attributes(item: &Item) -> String {
    item.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(" ")
}

/// A value, formatted the same in every run: the attributes of a map in order of their names.
fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("{text:?}"),
        AttributeValue::N(text) => text.clone(),
        AttributeValue::L(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
        AttributeValue::M(map) => {
            let map: Item = map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            format!("{{{}}}", attributes(&map))
        }
        other => format!("{other:?}"),
    }
}
