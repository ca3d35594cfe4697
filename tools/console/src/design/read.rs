//! A read of an access pattern.

use ::design::cost::bed::read_units;
use derive::{
    access::{Access, AccessRequest},
    query::{Consistency, Query, SortKeys},
    write::Table,
};
use engine::backoff::describe;
use keys::{item::Item, key::Key, size::item_bytes};
use store::Store;

use crate::Console;

/// A read of a pattern, with a placeholder such as `{UserId}` in place of each value that is not given.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternRead {
    Get(Vec<Key>, Consistency),
    Query(Query),
}

impl PatternRead {
    pub(super) fn of(request: AccessRequest, access: &Access) -> Self {
        match request {
            AccessRequest::Get(keys) => Self::Get(keys, access.consistency),
            AccessRequest::Query(query) => Self::Query(query),
        }
    }

    /// The texts with placeholders.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Get(keys, _) => keys.iter().flat_map(|key| [key.pk.as_str(), key.sk.as_str()]).collect(),
            Self::Query(query) => match &query.sk {
                SortKeys::All => vec![&query.pk],
                SortKeys::Prefix(text) | SortKeys::After(text) => vec![&query.pk, text],
                SortKeys::Between(first, last) => vec![&query.pk, first, last],
            },
        }
    }

    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Get(keys, _) if keys.len() == 1 => "GetItem",
            Self::Get(..) => "BatchGetItem",
            Self::Query(_) => "Query",
        }
    }

    pub(super) fn condition(&self) -> String {
        match self {
            Self::Get(keys, consistency) => {
                let keys = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                format!("{keys}, {}", consistent(*consistency))
            }
            Self::Query(query) => {
                let of = query.index.as_ref().map(|index| format!("{index}: ")).unwrap_or_default();
                let sort = match &query.sk {
                    SortKeys::All => String::new(),
                    SortKeys::Prefix(text) => format!(", sort key begins with {text}"),
                    SortKeys::Between(first, last) if first == last => format!(", sort key is {first}"),
                    SortKeys::Between(first, last) => format!(", sort key from {first} to {last}"),
                    SortKeys::After(first) => format!(", sort key behind {first}"),
                };
                format!("{of}{}{sort}, {}", query.pk, consistent(query.consistency))
            }
        }
    }

    /// The items that it finds, and its read units.
    pub(super) async fn send<S: Store>(&self, console: &Console<S>) -> Result<(Vec<Item>, f64), String> {
        let store = &console.opened.store;
        match self {
            Self::Get(keys, consistency) => {
                let read = console.patience().call(|| store.read(Table::Main, keys, *consistency)).await;
                let items: Vec<Item> =
                    read.map_err(|error| describe(&error))?.into_iter().map(|(_, item)| item).collect();
                let n_missing = u32::try_from(keys.len() - items.len()).unwrap_or(u32::MAX);
                let missing = f64::from(n_missing) * read_units(0, *consistency);
                let units = items.iter().map(|item| read_units(item_bytes(item), *consistency)).sum::<f64>();
                Ok((items, units + missing))
            }
            Self::Query(query) => {
                let read = console.patience().call(|| store.query(Table::Main, query, None)).await;
                let items = read.map_err(|error| describe(&error))?.items;
                let units = read_units(items.iter().map(item_bytes).sum(), query.consistency);
                Ok((items, units))
            }
        }
    }
}

fn consistent(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Strong => "strongly consistent",
        Consistency::Eventual => "eventually consistent",
    }
}
