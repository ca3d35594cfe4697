//! A read of an access pattern: a recorded request, with values in place of its placeholders.

use ::design::{asked::PatternRequests, cost::bed::read_units};
use derive::{
    query::{Consistency, Query, SortKeys},
    write::Table,
};
use engine::backoff::describe;
use keys::{item::Item, key::Key, size::item_bytes};
use store::{Store, recording::Request};

use super::filled::{PlaceholderValues, in_key};
use crate::Console;

/// A read of a pattern. A recorded request has a placeholder such as `{UserId}` in place of each value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternRead {
    Get(Vec<Key>, Consistency),
    Query(Query),
}

/// The reads of a pattern, without duplicates.
pub(super) fn reads(pattern: &PatternRequests) -> Vec<PatternRead> {
    let mut reads: Vec<PatternRead> = Vec::new();
    for request in &pattern.requests {
        let read = match request {
            Request::Read(Table::Main, keys, consistency) => PatternRead::Get(keys.clone(), *consistency),
            Request::Query(Table::Main, query, _) => PatternRead::Query(query.clone()),
            _ => continue,
        };
        if !reads.contains(&read) {
            reads.push(read);
        }
    }
    reads
}

impl PatternRead {
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

    /// The read with values in place of the placeholders.
    pub(super) fn with(&self, values: &PlaceholderValues) -> Self {
        let filled = |text: &String| in_key(text, values);
        match self {
            Self::Get(keys, consistency) => {
                let keys = keys.iter().map(|key| Key::new(filled(&key.pk), filled(&key.sk))).collect();
                Self::Get(keys, *consistency)
            }
            Self::Query(query) => {
                let sk = match &query.sk {
                    SortKeys::All => SortKeys::All,
                    SortKeys::Prefix(text) => SortKeys::Prefix(filled(text)),
                    SortKeys::Between(first, last) => SortKeys::Between(filled(first), filled(last)),
                    SortKeys::After(first) => SortKeys::After(filled(first)),
                };
                Self::Query(Query { pk: filled(&query.pk), sk, ..query.clone() })
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::filled::placeholders, *};

    #[test]
    fn a_request_with_placeholders_is_sent_with_values() {
        let query = Query::prefix(None, "USER#{UserId}", "POST#{CreatedAt}#{PostId}");
        let read = PatternRead::Query(query);
        let names: Vec<String> = read.texts().iter().flat_map(|text| placeholders(text)).collect();
        assert_eq!(names, ["UserId", "CreatedAt", "PostId"]);
        let values = BTreeMap::from([("UserId", "ann"), ("CreatedAt", "2024"), ("PostId", "p{1}")]);
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let sent = read.with(&values);
        assert_eq!(sent.condition(), "USER#ann, sort key begins with POST#2024#p{1}, strongly consistent");
        let get = PatternRead::Get(vec![Key::new("USER#{UserId}", "PROFILE")], Consistency::Eventual);
        let values = BTreeMap::from([("UserId".to_owned(), "b#%".to_owned())]);
        assert_eq!(get.with(&values).condition(), "USER#b%23%25 / PROFILE, eventually consistent");
    }
}
