//! The page of an access pattern, also as JSON: a form for the values in its keys, and the results of its reads.

use std::{collections::BTreeMap, sync::Arc};

use ::design::PatternRequests;
use axum::{
    extract::{Query as Asked, State},
    http::StatusCode,
    response::Response,
};
use derive::{
    access::{Access, AccessFilter, AccessReads},
    schema::Schema,
};
use keys::{fields::Fields, item::Item, key::Key, number::Decimal};
use maud::{Markup, html};
use operate::words::counted;
use serde_dynamo::AttributeValue;
use serde_json::json;
use store::Store;

use super::{
    filled::{PlaceholderValues, placeholders},
    read::PatternRead,
};
use crate::{
    Console,
    explained::{read_units_text, typed},
    frame::{self, ConsolePage},
    json,
    overview::item_row,
};

/// The name of the pattern's name in the address; no placeholder has it.
const NAME: &str = "pattern";

/// The address of a pattern's page.
pub(crate) fn address(name: &str) -> String {
    format!("/pattern?{NAME}={name}")
}

/// A pattern with the reads that ran.
struct RunPattern<'a> {
    pattern: &'a PatternRequests,
    /// The given values, by placeholder.
    values: PlaceholderValues,
    /// The names of all placeholders, in order.
    asked: Vec<String>,
    reads: Vec<RunRead>,
}

/// A read, and its result.
struct RunRead {
    read: PatternRead,
    /// The items and the read units, or the error; `None` while a value is missing.
    found: Option<Result<(Vec<Item>, f64), String>>,
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(values): Asked<BTreeMap<String, String>>,
) -> ConsolePage {
    let RunPattern { pattern, values, asked, reads } = match run(&console, &values).await {
        Ok(run) => run,
        Err(why) => return frame::failed(StatusCode::NOT_FOUND, &why),
    };
    let given = [(NAME, pattern.name.as_str())]
        .into_iter()
        .chain(values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let object = serde_urlencoded::to_string(given.collect::<Vec<_>>()).unwrap_or_default();
    let content = html! {
        p { "From " (pattern.input) " to " (pattern.result) @if !pattern.order.is_empty() { ", in the order " (pattern.order) } "." }
        form action="/pattern" method="get" aria-label="Values" {
            input type="hidden" name=(NAME) value=(pattern.name);
            @for name in &asked {
                label { (name) " " input name=(name) value=(values.get(name).map_or("", String::as_str)); }
            }
            button { "Run" }
        }
        @if reads.is_empty() { p.empty { "This pattern reads nothing by a key." } }
        @for read in &reads { (ran(&console, read)) }
        (json::link(&format!("/pattern.json?{object}")))
    };
    frame::page(&format!("{}: {}", pattern.id, pattern.title), &content)
}

/// The content of the page, as JSON.
pub(crate) async fn object<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(values): Asked<BTreeMap<String, String>>,
) -> Response {
    let RunPattern { pattern, asked, reads, .. } = match run(&console, &values).await {
        Ok(run) => run,
        Err(why) => return json::failed(StatusCode::NOT_FOUND, &why),
    };
    let read = |RunRead { read, found }: &RunRead| {
        let (items, units, error) = match found {
            None => (None, None, None),
            Some(Ok((items, units))) => (Some(items), Some(units), None),
            Some(Err(why)) => (None, None, Some(why)),
        };
        let (operation, condition) = (read.operation(), read.condition());
        json!({ "operation": operation, "condition": condition, "items": items, "read_units": units, "error": error })
    };
    let reads: Vec<_> = reads.iter().map(read).collect();
    json::object(json!({ "id": pattern.id, "title": pattern.title, "values": asked, "reads": reads }))
}

/// Runs the reads of a pattern if all its values are given. Bounds of a range are optional.
async fn run<'a, S: Store + 'static>(
    console: &'a Console<S>,
    values: &BTreeMap<String, String>,
) -> Result<RunPattern<'a>, String> {
    let (schema, name) = (&console.design.schema, values.get(NAME).map_or("", String::as_str));
    let found = (
        console.design.patterns.iter().find(|pattern| pattern.name == name),
        schema.accesses.iter().find(|access| access.name == name),
    );
    let (Some(pattern), Some(access)) = found else { return Err(format!("There is no access pattern {name}.")) };
    let mut values = values.clone();
    values.retain(|name, value| name != NAME && !value.is_empty());
    let mut asked: Vec<String> = pattern.filter.iter().flat_map(AccessFilter::inputs).map(str::to_owned).collect();
    let reads: Vec<PatternRead> =
        access.requests(schema).into_iter().map(|request| PatternRead::of(request, access)).collect();
    for name in reads.iter().flat_map(PatternRead::texts).flat_map(placeholders) {
        // The page asks for one key of a batch.
        if !asked.contains(&name) && !name.ends_with(" 2") {
            asked.push(name);
        }
    }
    let is_bound = |name: &str| ["low", "high"].contains(&name);
    if !asked.iter().all(|name| is_bound(name) || values.contains_key(name)) {
        let reads = reads.into_iter().map(|read| RunRead { read, found: None }).collect();
        return Ok(RunPattern { pattern, values, asked, reads });
    }
    let fields: Fields = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let requests = access.requests_of(schema, &fields).map_err(|error| error.to_string())?;
    let mut ran = Vec::new();
    for request in requests {
        let read = PatternRead::of(request, access);
        let mut found = Some(read.send(console).await);
        if let Some(Ok((items, _))) = &mut found {
            items.retain(|item| {
                let passes = pattern.filter.as_ref().is_none_or(|filter| passes(filter, item, &values));
                passes && is_of(schema, access, item)
            });
        }
        ran.push(RunRead { read, found });
    }
    Ok(RunPattern { pattern, values, asked, reads: ran })
}

/// True if an item is of an entity that the pattern reads. A page of an index, or of counters, is shown whole.
fn is_of(schema: &Schema, access: &Access, item: &Item) -> bool {
    let in_table = matches!(&access.reads, AccessReads::Query(query) if query.index.is_none());
    let key = schema.layout.key(item);
    let image = key.as_ref().and_then(|key| schema.image(key, item));
    !in_table || image.is_some_and(|image| access.entities().iter().any(|entity| image.is(entity)))
}

/// True if a filter returns an item. A value that reads as a number is compared as one too.
fn passes(filter: &AccessFilter, item: &Item, values: &PlaceholderValues) -> bool {
    let with = |number: bool| {
        let mut item = item.clone();
        for input in filter.inputs() {
            let Some(text) = values.get(input) else { continue };
            let value = match Decimal::parse(text).filter(|_| number) {
                Some(_) => AttributeValue::N(text.clone()),
                None => AttributeValue::S(text.clone()),
            };
            item.insert(format!(":{input}"), value);
        }
        filter.condition.holds(&item) == Ok(true)
    };
    with(false) || with(true)
}

/// A read with its condition, and its result if all its values are given.
fn ran<S: Store>(console: &Console<S>, RunRead { read, found }: &RunRead) -> Markup {
    html! {
        section aria-label=(read.condition()) {
            h2 { (read.operation()) " " code { (read.condition()) } }
            @match found {
                None => p { small { "It runs when all its values are given; low and high may be left out." } },
                Some(Err(why)) => p.differs { (why) },
                Some(Ok((items, units))) => {
                    p { (counted(items.len(), "item")) ", " (read_units_text(*units)) }
                    (listed(console, items))
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
                tbody { @for (key, item) in &items { (item_row(schema, key, item, &typed("JSON", item))) } }
            } }
        }
    }
}
