//! The page of an access pattern that writes: a form for its values, the write, its write units, and a link to its
//! effects.
//!
//! A request was recorded when the design was built; a person's values replace the recorded ones. A field of the form
//! is a placeholder such as `{UserId}`, or an attribute that was recorded with another value, such as a time. If the
//! whole item is written, the entity's own templates build its keys from the values, so that they are escaped and index
//! keys are included.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::design::PatternRequests;
use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use derive::{
    guard::{Ask, Guard},
    schema::Schema,
    write::{Action, Transaction, Update, Write},
};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
};
use keys::{entity::Definition, fields::Fields, item::Item, key::Key};
use maud::{Markup, html};
use operate::words::time;
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome, Units, recording::Request};

use crate::{
    Console, ConsoleWrites,
    design::pattern::{PlaceholderValues, in_key, in_text, placeholders},
    flow::shown,
    frame::{self, ConsolePage},
};

/// The name of the pattern's position in the address and the form; no field has this name.
const AT: &str = "pattern";

#[derive(Debug, Deserialize)]
pub(crate) struct WritingAddress {
    /// Position among the patterns of the design: several patterns may have the same id.
    pattern: usize,
}

/// The address of a pattern's page.
pub(super) fn address(at: usize) -> String {
    format!("/pattern/write?{AT}={at}")
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(WritingAddress { pattern: at }): Query<WritingAddress>,
) -> ConsolePage {
    match console.writing(at) {
        Some(pattern) => whole(&console, at, pattern, None),
        None => none(),
    }
}

/// Runs a pattern with the values of the form.
pub(crate) async fn run<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let mut values: PlaceholderValues = match console.ordered(&form) {
        Ok(values) => values,
        Err(refused) => return refused.into_response(),
    };
    let at = values.remove(AT).and_then(|at| at.parse().ok());
    let Some((at, pattern)) = at.and_then(|at| Some((at, console.writing(at)?))) else { return none().into_response() };
    let fields = console.fields(pattern);
    let missing = fields.keys().find(|name| values.get(*name).is_none_or(String::is_empty));
    if let Some(name) = missing {
        return frame::failed(StatusCode::BAD_REQUEST, &format!("Give a value for {name}.")).into_response();
    }
    let schema = console.engine.schema();
    let writing = pattern.requests.iter().filter(|request| !writes(request).is_empty());
    let filled: Result<Vec<Request>, String> = writing.map(|request| filled(schema, request, &values)).collect();
    let filled = match filled {
        Ok(filled) => filled,
        Err(why) => return frame::failed(StatusCode::BAD_REQUEST, &why).into_response(),
    };
    let ran = console.sent(&filled).await;
    whole(&console, at, pattern, Some((&values, &ran))).into_response()
}

fn none() -> ConsolePage {
    frame::failed(StatusCode::NOT_FOUND, "There is no access pattern here that writes: choose one on the page Design.")
}

/// Result of the writes of a pattern.
struct Ran {
    /// The written items, with their total write units.
    written: Vec<Key>,
    units: Units,
    /// Why the rest was not written.
    refused: Option<String>,
}

impl<S: Store + 'static> Console<S> {
    /// A pattern that writes.
    fn writing(&self, at: usize) -> Option<&PatternRequests> {
        self.design.patterns.get(at).filter(|pattern| pattern.is_write())
    }

    fn fields(&self, pattern: &PatternRequests) -> FormFields {
        fields(self.engine.schema(), &pattern.requests, &time(SystemClock.now_ms()))
    }

    /// Sends requests in their order, until one is refused.
    async fn sent(&self, requests: &[Request]) -> Ran {
        let mut ran = Ran { written: Vec::new(), units: 0.0, refused: None };
        for request in requests {
            let sent = match request {
                Request::Write(write) => self.write(write).await,
                Request::Transact(transaction) => self.transact(transaction).await,
                _ => continue,
            };
            match sent {
                Ok(units) => {
                    let writes = writes(request).iter().filter(|write| write.action != Action::Check);
                    ran.written.extend(writes.map(|write| write.key.clone()));
                    ran.units += units;
                }
                Err(why) => {
                    ran.refused = Some(why);
                    return ran;
                }
            }
        }
        ran
    }

    async fn write(&self, write: &Write) -> Result<Units, String> {
        match self.patience().call(|| self.opened.store.write(write)).await {
            Ok(Outcome::Done { units }) => Ok(units),
            Ok(Outcome::GuardFailed) => Err(unmet(write)),
            Err(error) => Err(describe(&error)),
        }
    }

    async fn transact(&self, transaction: &Transaction) -> Result<Units, String> {
        match self.patience().call(|| self.opened.store.transact(transaction)).await {
            Ok(TransactOutcome::Done { units }) => Ok(units.iter().map(|(_, units)| units).sum()),
            Ok(TransactOutcome::Cancelled { reasons }) => {
                let why = |(write, reason): (&Write, &Reason)| match reason {
                    Reason::None => None,
                    Reason::GuardFailed => Some(unmet(write)),
                    Reason::Busy(_) => Some(format!("{} is written by another just now: run it again.", write.key)),
                    Reason::Rejected(why) => Some(format!("{}: {why}", write.key)),
                };
                let whys: Vec<String> = transaction.writes().iter().zip(&reasons).filter_map(why).collect();
                Err(whys.join(" "))
            }
            Err(error) => Err(describe(&error)),
        }
    }
}

/// The message that an item does not meet a write's condition.
fn unmet(write: &Write) -> String {
    format!("{} is not as this write asks: see the condition on the page Design.", write.key)
}

fn whole<S: Store + 'static>(
    console: &Console<S>,
    at: usize,
    pattern: &PatternRequests,
    ran: Option<(&PlaceholderValues, &Ran)>,
) -> ConsolePage {
    let fields = console.fields(pattern);
    let value = |name: &str, first: &str| {
        let given = ran.and_then(|(values, _)| values.get(name)).map(String::as_str);
        given.unwrap_or(first).to_owned()
    };
    // Fields that a person must fill in come first.
    let (empty, given): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, first)| first.is_empty());
    let form = html! {
        div.fields {
            @for (name, first) in empty.into_iter().chain(given) { label { (name) " " input name=(name) value=(value(name, first)) required; } }
        }
        button { "Write" }
    };
    let position = at.to_string();
    let content = html! {
        p { "It takes " (pattern.input) ", and gives " (pattern.result) "." }
        @if let Some((_, ran)) = ran { (outcome(console, ran)) }
        @match &console.writes {
            ConsoleWrites::Allowed { .. } => (console.form_of("/pattern/write", &[(AT, &position)], &form)),
            ConsoleWrites::Refused { allowed_by } => p.empty { "This console only reads: " (allowed_by) ", and the form appears here." },
        }
        h2 { "What it writes" }
        ul {
            @for write in pattern.requests.iter().flat_map(writes) {
                li { (store::operation(&write.action)) " " code { (write.key) } }
            }
        }
        p { a href="/design" { "The table's design" } " has the conditions." }
    };
    frame::page(&format!("{}: {}", pattern.id, pattern.title), &content)
}

fn outcome<S: Store>(console: &Console<S>, ran: &Ran) -> Markup {
    html! {
        section role="status" {
            @if let Some(why) = &ran.refused { p.differs { "Refused: " (why) } }
            @if !ran.written.is_empty() {
                p.right { "Written, with " (shown::units(ran.units)) "." }
                ul {
                    @for key in &ran.written {
                        li {
                            (frame::key(key))
                            @if console.flow.is_some() { " – " a href=(frame::of_item_flow(key)) { "what followed" } }
                        }
                    }
                }
            }
        }
    }
}

// ---- A recorded request with a person's values ----

/// Fields of a form, each with its initial value.
type FormFields = BTreeMap<String, String>;

/// A recorded write, with the schema of its entity.
struct RecordedWrite<'a> {
    schema: &'a Schema,
    write: &'a Write,
}

fn writes(request: &Request) -> &[Write] {
    match request {
        Request::Write(write) => std::slice::from_ref(write),
        Request::Transact(transaction) => transaction.writes(),
        _ => &[],
    }
}

/// The fields of a form for these requests; the initial value of times is `now`.
fn fields(schema: &Schema, requests: &[Request], now: &str) -> FormFields {
    let mut fields = FormFields::new();
    for write in requests.iter().flat_map(writes) {
        for (name, text) in (RecordedWrite { schema, write }).texts() {
            let names = placeholders(&text);
            if names.is_empty() {
                let is_time = text.len() == now.len() && text.ends_with('Z') && text.contains('T');
                fields.entry(name).or_insert(if is_time { now.to_owned() } else { text });
            }
            fields.extend(names.into_iter().map(|name| (name, String::new())));
        }
    }
    // The value of `{email}` comes from `{Email}`.
    let names: BTreeSet<String> = fields.keys().cloned().collect();
    let is_other = |name: &String| names.iter().any(|other| other != name && other.to_lowercase() == *name);
    fields.retain(|name, _| !is_other(name));
    fields
}

/// A request with these values.
///
/// # Errors
///
/// A sentence with the invalid value and the reason.
fn filled(schema: &Schema, request: &Request, values: &PlaceholderValues) -> Result<Request, String> {
    let write = |write: &Write| (RecordedWrite { schema, write }).filled(values);
    match request {
        Request::Write(one) => write(one).map(Request::Write),
        Request::Transact(transaction) => {
            let writes: Vec<Write> = transaction.writes().iter().map(write).collect::<Result<_, _>>()?;
            Transaction::new(writes)
                .map(Request::Transact)
                .map_err(|error| format!("These values do not work: {error}."))
        }
        read => Ok(read.clone()),
    }
}

/// The name of a field for the value that an attribute must have before the write.
fn stored_name(attribute: &str) -> String {
    format!("{attribute} as stored")
}

/// The texts of a value that become fields: a text or a number, and the texts of a set with a placeholder.
fn asked_of(value: &AttributeValue) -> impl Iterator<Item = &str> {
    let set = if let AttributeValue::Ss(texts) = value { texts.as_slice() } else { &[] };
    let set = set.iter().map(String::as_str).filter(|text| !placeholders(text).is_empty());
    text_of(value).into_iter().chain(set)
}

/// A text or a number.
fn text_of(value: &AttributeValue) -> Option<&str> {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text),
        _ => None,
    }
}

impl RecordedWrite<'_> {
    /// The item that the write puts.
    fn put(&self) -> Option<(&Item, &Definition)> {
        let Action::Put(item) = &self.write.action else { return None };
        Some((item, self.schema.image(&self.write.key, item)?.definition))
    }

    /// The attributes that it writes or tests, whose values a person may choose.
    fn attributes(&self) -> Vec<(&str, &AttributeValue)> {
        let written = match &self.write.action {
            Action::Put(item) => item.iter().collect(),
            Action::Update(Update { set, add, delete, count_from, .. }) => {
                set.iter().chain(add).chain(delete).chain(count_from).collect()
            }
            Action::Delete | Action::Check => Vec::new(),
        };
        written.into_iter().filter(|(name, _)| !self.is_made(name)).collect()
    }

    /// True if the attribute is built from others.
    fn is_made(&self, name: &str) -> bool {
        let layout = &self.schema.layout;
        layout.is_key(name) || layout.entity_type.as_deref() == Some(name)
    }

    /// The recorded texts, each with its field name in case it has no placeholder.
    fn texts(&self) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        if let Some(fields) = self.put().and_then(|(item, definition)| definition.fields(&self.write.key, item)) {
            let free = fields.iter().filter(|(name, _)| !self.is_made(name));
            texts.extend(free.map(|(name, text)| (name.to_owned(), text.to_owned())));
        } else {
            // The fixed parts of a key stay.
            let Key { pk, sk } = &self.write.key;
            let names = placeholders(pk).into_iter().chain(placeholders(sk));
            texts.extend(names.map(|name| (name.clone(), format!("{{{name}}}"))));
        }
        let attributes = self.attributes().into_iter();
        texts.extend(
            attributes.flat_map(|(name, value)| asked_of(value).map(|text| (name.to_owned(), text.to_owned()))),
        );
        let asks = self.write.guard.iter().flat_map(|guard| &guard.asks).filter_map(Ask::value);
        let asks = asks.filter(|(name, _)| !self.is_made(name));
        texts.extend(asks.flat_map(|(name, value)| asked_of(value).map(|text| (stored_name(name), text.to_owned()))));
        texts
    }

    fn filled(&self, values: &PlaceholderValues) -> Result<Write, String> {
        let Write { table, key, action, guard } = self.write;
        let guard = match guard {
            Some(Guard { purpose, asks }) => {
                let asks = asks.iter().map(|ask| self.asked(ask, values)).collect::<Result<_, _>>()?;
                Some(Guard { purpose: *purpose, asks })
            }
            None => None,
        };
        let (key, action) = if let Some((item, definition)) = self.put() {
            let (key, item) = self.item(item, definition, values)?;
            (key, Action::Put(item))
        } else {
            let key = Key::new(in_key(&key.pk, values), in_key(&key.sk, values));
            (key, self.updated(action, values)?)
        };
        Ok(Write { table: *table, key, action, guard })
    }

    /// The whole item, with its keys built from its fields.
    fn item(&self, item: &Item, definition: &Definition, values: &PlaceholderValues) -> Result<(Key, Item), String> {
        let layout = &self.schema.layout;
        let recorded = definition.fields(&self.write.key, item).unwrap_or_default();
        let mut fields = Fields::new();
        for (name, text) in recorded.iter().filter(|(name, _)| !self.is_made(name)) {
            fields.insert(name, chosen(name, text, values));
        }
        let key = definition.build(&fields).map_err(|error| format!("There is no such key: {error}."))?;
        let mut filled = layout.key_item(&key);
        for (name, value) in item.iter().filter(|(name, _)| *name != layout.pk && *name != layout.sk) {
            if !self.is_made(name) {
                filled.insert(name, typed(name, name, value, values)?);
            } else if layout.entity_type.as_deref() == Some(name) {
                filled.insert(name, value.clone());
            }
        }
        for (name, value) in definition.index_attributes(layout, &fields) {
            filled.extend(value.map(|value| (name, value)));
        }
        Ok((key, filled))
    }

    fn updated(&self, action: &Action, values: &PlaceholderValues) -> Result<Action, String> {
        let Action::Update(update) = action else { return Ok(action.clone()) };
        let attribute = |(name, value): (&str, &AttributeValue)| {
            let filled = match value {
                AttributeValue::S(text) if self.is_made(name) => AttributeValue::S(in_key(text, values)),
                _ => typed(name, name, value, values)?,
            };
            Ok((name.to_owned(), filled))
        };
        let part = |item: &Item| item.iter().map(attribute).collect::<Result<Item, String>>();
        let Update { set, remove, add, delete, count_from } = update;
        let [set, add, delete, count_from] = [part(set)?, part(add)?, part(delete)?, part(count_from)?];
        Ok(Action::Update(Update { set, remove: remove.clone(), add, delete, count_from }))
    }

    fn asked(&self, ask: &Ask, values: &PlaceholderValues) -> Result<Ask, String> {
        let Some((name, _)) = ask.value().filter(|(name, _)| !self.is_made(name)) else { return Ok(ask.clone()) };
        let field = stored_name(name);
        let mut filled = ask.clone();
        if let Ask::Equal(name, value)
        | Ask::Differs(name, value)
        | Ask::AtLeast(name, value)
        | Ask::LacksOrEqual(name, value)
        | Ask::LacksOrBelow(name, value)
        | Ask::BelowOrLacksBoth(name, value, _) = &mut filled
        {
            *value = typed(name, &field, value, values)?;
        }
        Ok(filled)
    }
}

/// The text that replaces a recorded one.
fn chosen(field: &str, recorded: &str, values: &PlaceholderValues) -> String {
    if placeholders(recorded).is_empty() {
        return values.get(field).cloned().unwrap_or_else(|| recorded.to_owned());
    }
    in_text(recorded, values)
}

/// A value of the recorded type.
fn typed(
    name: &str,
    field: &str,
    recorded: &AttributeValue,
    values: &PlaceholderValues,
) -> Result<AttributeValue, String> {
    match recorded {
        AttributeValue::S(text) => Ok(AttributeValue::S(chosen(field, text, values))),
        AttributeValue::N(text) => {
            let number = chosen(field, text, values);
            let is_number = number.parse::<f64>().is_ok_and(f64::is_finite);
            if is_number { Ok(AttributeValue::N(number)) } else { Err(format!("{name} must be a number.")) }
        }
        AttributeValue::Ss(texts) => {
            let filled: BTreeSet<String> = texts.iter().map(|text| in_text(text, values)).collect();
            Ok(AttributeValue::Ss(filled.into_iter().collect()))
        }
        other => Ok(other.clone()),
    }
}
