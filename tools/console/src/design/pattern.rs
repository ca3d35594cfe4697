//! The page of an access pattern, also as JSON: a form for the values in its keys, and the results of its reads.
//!
//! The texts of a request have placeholders such as `{UserId}`, which the values replace. A value in a key is escaped
//! with [`keys::escape`], as a template would do: `#` and `%`, and in a segment of a path also `/`.

use std::{collections::BTreeMap, sync::Arc};

use ::design::{PatternRequests, cost::bed::read_units};
use axum::{
    extract::{Query as Asked, State},
    http::StatusCode,
    response::Response,
};
use derive::{
    access::{Access, AccessFilter, AccessReads, AccessRequest},
    query::{Consistency, Query, SortKeys},
    schema::Schema,
    write::Table,
};
use engine::backoff::describe;
use keys::{
    escape::{segment, value},
    fields::Fields,
    item::Item,
    key::Key,
    number::Decimal,
    size::item_bytes,
};
use maud::{Markup, html};
use operate::words::counted;
use serde_dynamo::AttributeValue;
use serde_json::json;
use store::Store;

use crate::{
    Console,
    frame::{self, ConsolePage},
    item::read_units_text,
    json,
    overview::items_table,
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
                    @if !items.is_empty() { (items_table(console.engine.schema(), items)) }
                },
            }
        }
    }
}

// ---- A read ----

/// A read of a pattern, with a placeholder such as `{UserId}` in place of each value that is not given.
#[derive(Clone, Debug, PartialEq)]
enum PatternRead {
    Get(Vec<Key>, Consistency),
    Query(Query),
}

impl PatternRead {
    fn of(request: AccessRequest, access: &Access) -> Self {
        match request {
            AccessRequest::Get(keys) => Self::Get(keys, access.consistency),
            AccessRequest::Query(query) => Self::Query(query),
        }
    }

    /// The texts with placeholders.
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Get(keys, _) => keys.iter().flat_map(|key| [key.pk.as_str(), key.sk.as_str()]).collect(),
            Self::Query(query) => match &query.sk {
                SortKeys::All => vec![&query.pk],
                SortKeys::Prefix(text) | SortKeys::After(text) => vec![&query.pk, text],
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
                    SortKeys::After(first) => format!(", sort key behind {first}"),
                };
                format!("{of}{}{sort}, {}", query.pk, consistent(query.consistency))
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

// ---- Values in place of placeholders ----

/// Values by the names of the placeholders.
pub(super) type PlaceholderValues = BTreeMap<String, String>;

enum TextPart<'a> {
    Fixed(&'a str),
    Placeholder(&'a str),
}

fn parts(text: &str) -> Vec<TextPart<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, (name, after))) = rest
        .split_once('{')
        .and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
        .filter(|(_, (name, _))| !name.is_empty())
    {
        parts.extend([TextPart::Fixed(before), TextPart::Placeholder(name)]);
        rest = after;
    }
    parts.push(TextPart::Fixed(rest));
    parts
}

/// The names of the placeholders in a text, in order.
pub(super) fn placeholders(text: &str) -> Vec<String> {
    let name = |part: TextPart<'_>| match part {
        TextPart::Placeholder(name) => Some(name.to_owned()),
        TextPart::Fixed(_) => None,
    };
    parts(text).into_iter().filter_map(name).collect()
}

/// The value of a placeholder. The queries put an email into lower case, and its placeholder `{email}` is in lower case
/// too.
fn of(values: &PlaceholderValues, name: &str) -> Option<String> {
    if name != name.to_lowercase() {
        return values.get(name).cloned();
    }
    let same = || values.iter().find(|(other, _)| other.to_lowercase() == name).map(|(_, value)| value);
    values.get(name).or_else(same).map(|value| value.to_lowercase())
}

/// Fills a text that is not a key.
pub(super) fn in_text(text: &str, values: &PlaceholderValues) -> String {
    filled(text, values, |_, value| value.to_owned())
}

/// Fills a key, or the beginning of one.
pub(super) fn in_key(text: &str, values: &PlaceholderValues) -> String {
    filled(text, values, |before, it| if before.ends_with('/') { segment(it) } else { value(it) })
}

/// `escaped` receives the text before the value, and the value.
fn filled(text: &str, values: &PlaceholderValues, escaped: impl Fn(&str, &str) -> String) -> String {
    let mut filled = String::new();
    for part in parts(text) {
        match part {
            TextPart::Fixed(fixed) => filled.push_str(fixed),
            TextPart::Placeholder(name) => match of(values, name) {
                Some(value) => {
                    let value = escaped(&filled, &value);
                    filled.push_str(&value);
                }
                None => filled.extend(["{", name, "}"]),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_a_key_is_escaped_as_the_template_does_it() {
        let values = [("UserId", "a#b%c/d"), ("Manager", "x/y"), ("Email", "Ann@Example.org"), ("PostId", "p{UserId}")];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(in_key("USER#{UserId}", &values), "USER#a%23b%25c/d");
        assert_eq!(in_key("EMP#/{Manager}/", &values), "EMP#/x%2Fy/");
        assert_eq!(in_key("EMAIL#{email}", &values), "EMAIL#ann@example.org");
        assert_eq!(in_key("POST#{PostId}#{Other}", &values), "POST#p{UserId}#{Other}");
        assert_eq!(in_text("{UserId}", &values), "a#b%c/d");
        let template = keys::template::Template::parse("USER#{UserId}").unwrap();
        let of = |name: &str| (name == "UserId").then_some("a#b%c/d");
        assert_eq!(template.build_of(of).unwrap(), in_key("USER#{UserId}", &values));
        assert_eq!(placeholders("POST#{CreatedAt}#{PostId} {} {a"), ["CreatedAt", "PostId"]);
    }
}
