//! The page of an access pattern: a form for the values in its keys, and what its reads find.
//!
//! A recorded request has a placeholder such as `{UserId}` in the place of each value. The form asks for these, and the
//! request is sent with them.

use std::{collections::BTreeMap, sync::Arc};

use ::design::{asked::PatternRequests, cost::bed::read_units};
use axum::{
    extract::{Query as Asked, State},
    http::StatusCode,
};
use derive::{
    query::{Consistency, Query, SortKeys},
    write::Table,
};
use engine::backoff::describe;
use keys::{item::Item, key::Key, size::item_bytes};
use maud::{Markup, html};
use operate::words::counted;
use store::{Store, recording::Request};

use super::filled::{in_key, placeholders};
use crate::{
    Console,
    explained::{read_units_text, typed},
    frame::{self, ConsolePage},
    overview::item_row,
};

/// The name of the pattern's id in the address; no placeholder has it.
const ID: &str = "id";

/// A read of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum PatternRead {
    Get(Vec<Key>, Consistency),
    Query(Query),
}

/// The page of a pattern.
pub(crate) fn address(id: &str) -> String {
    format!("/pattern?{ID}={id}")
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(mut values): Asked<BTreeMap<String, String>>,
) -> ConsolePage {
    let id = values.remove(ID).unwrap_or_default();
    let Some(pattern) = console.design.patterns.iter().find(|pattern| pattern.id == id) else {
        return frame::failed(StatusCode::NOT_FOUND, &format!("There is no access pattern {id}."));
    };
    values.retain(|_, value| !value.is_empty());
    let reads = reads(pattern);
    let mut asked: Vec<String> = Vec::new();
    for read in &reads {
        let texts = read.texts();
        let new = texts.iter().flat_map(|text| placeholders(text)).filter(|name| !asked.contains(name));
        let new: Vec<String> = new.collect();
        asked.extend(new);
    }
    asked.dedup();
    let mut parts = Vec::new();
    for read in &reads {
        parts.push(ran(&console, read, &values).await);
    }
    let content = html! {
        p { "From " (pattern.input) " to " (pattern.result) @if !pattern.order.is_empty() { ", in the order " (pattern.order) } "." }
        form action="/pattern" method="get" aria-label="Values" {
            input type="hidden" name=(ID) value=(id);
            @for name in &asked {
                label { (name) " " input name=(name) value=(values.get(name).map_or("", String::as_str)); }
            }
            button { "Run" }
        }
        @if reads.is_empty() { p.empty { "This pattern reads nothing by a key." } }
        @for part in &parts { (part) }
    };
    frame::page(&format!("{id}: {}", pattern.title), &content)
}

/// The reads of a pattern, each form once.
fn reads(pattern: &PatternRequests) -> Vec<PatternRead> {
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

/// A read with its condition; what it finds, if all its values are given.
async fn ran<S: Store>(console: &Console<S>, read: &PatternRead, values: &BTreeMap<String, String>) -> Markup {
    let is_given = read.texts().iter().flat_map(|text| placeholders(text)).all(|name| values.contains_key(&name));
    let found = if is_given { Some(read.with(values).send(console).await) } else { None };
    html! {
        section aria-label=(read.condition()) {
            h2 { (read.operation()) " " code { (read.condition()) } }
            @match found {
                None => p { small { "It runs when all its values are given." } },
                Some(Err(why)) => p.differs { (why) },
                Some(Ok((items, units))) => {
                    p { (counted(items.len(), "item")) ", " (read_units_text(units)) }
                    (listed(console, &items))
                },
            }
        }
    }
}

fn listed<S: Store>(console: &Console<S>, items: &[Item]) -> Markup {
    let schema = console.engine.schema();
    let items: Vec<(Key, &Item)> = items.iter().filter_map(|item| Some((schema.layout.key(item)?, item))).collect();
    html! {
        @if !items.is_empty() {
            div.wide tabindex="0" { table {
                thead { tr { th { "item" } th { "type" } th { "all of it" } } }
                tbody { @for (key, item) in &items { (item_row(schema, key, item, Some(&typed("JSON", item)))) } }
            } }
        }
    }
}

impl PatternRead {
    /// The texts that have placeholders.
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Get(keys, _) => keys.iter().flat_map(|key| [key.pk.as_str(), key.sk.as_str()]).collect(),
            Self::Query(query) => match &query.sk {
                SortKeys::All => vec![&query.pk],
                SortKeys::Prefix(text) => vec![&query.pk, text],
                SortKeys::Between(first, last) => vec![&query.pk, first, last],
            },
        }
    }

    fn operation(&self) -> &'static str {
        match self {
            Self::Get(keys, _) if keys.len() == 1 => "GetItem",
            Self::Get(..) => "BatchGetItem",
            Self::Query(_) => "Query",
        }
    }

    fn condition(&self) -> String {
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
                };
                format!("{of}{}{sort}, {}", query.pk, consistent(query.consistency))
            }
        }
    }

    /// The same with values in the place of the placeholders.
    fn with(&self, values: &BTreeMap<String, String>) -> Self {
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
                };
                Self::Query(Query { pk: filled(&query.pk), sk, ..query.clone() })
            }
        }
    }

    /// The items that it finds, and its read units.
    async fn send<S: Store>(&self, console: &Console<S>) -> Result<(Vec<Item>, f64), String> {
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
            Self::Query(query) if query.is_too_long() => Err("No item has a key as long as this.".to_owned()),
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
    use super::*;

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
