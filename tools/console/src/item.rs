//! The page of an item: the application's attributes, and the derived ones with their explanation.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use derive::clock;
use engine::{backoff::describe, fan_out::again::DueItem, look::listing::ALL_DERIVATIONS};
use keys::{item::Item, key::Key};
use maud::{Markup, html};
use operate::{
    OperateError,
    objects::explanation,
    why::{
        Explanation, Pending, StreamChange, StreamChanges, ValueState, WhyRequest,
        value::{CounterItem, CounterSources, ExplainedCounter, ExplainedSource, ExplainedValue, SourceRole},
        why,
    },
    words::{counted, time},
};
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    Console,
    frame::{self, ConsolePage},
    json,
};

/// Number of sources, and of changes, that a page lists.
const LISTED: usize = 20;

/// Limit on the sources of a counter that a page reads.
const SOURCES_MAX: usize = 10_000;

/// The parameters of the page's address.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemAddress {
    pk: String,
    sk: String,
    /// True if the stream is read too.
    #[serde(default)]
    changes: bool,
}

/// The form of the header.
#[derive(Debug, Deserialize)]
pub(crate) struct KeyText {
    key: String,
}

/// Leads to the page of an item, or to the items under a partition key.
pub(crate) async fn find<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(KeyText { key }): Query<KeyText>,
) -> Response {
    let item = |pk: &str, sk: Option<&str>| console.opened.schema.layout.address(pk, sk);
    match key.trim().split(" / ").collect::<Vec<_>>().as_slice() {
        [pk, sk] => {
            let key = item(pk, Some(sk)).unwrap_or_else(|| Key::new(*pk, *sk));
            Redirect::to(&frame::of_item(&key)).into_response()
        }
        [pk] if let Some(key) = item(pk, None) => Redirect::to(&frame::of_item(&key)).into_response(),
        [pk] if !pk.is_empty() => Redirect::to(&frame::of_collection(None, pk)).into_response(),
        _ => {
            let why = "Give a key such as USER#ada / PROFILE, or a partition key alone to list its items.";
            frame::failed(StatusCode::BAD_REQUEST, why).into_response()
        }
    }
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ItemAddress { pk, sk, changes }): Query<ItemAddress>,
) -> ConsolePage {
    let key = Key::new(pk, sk);
    match why(&console.opened, &request(&key, changes)).await {
        Ok(explanation) => frame::page(&key.to_string(), &whole(&console, &explanation, &key)),
        // Nothing is derived for the item, but the page can still display the item itself.
        Err(OperateError::Usage(nothing)) => match console.engine.stored(vec![key.clone()], console.patience()).await {
            Ok(stored) => frame::page(
                &key.to_string(),
                &html! {
                    p.empty { (nothing) }
                    @if let Some(item) = stored.get(&key).and_then(Option::as_ref) {
                        (ground(&console, &key, item))
                        (typed("Show every attribute with its type, as JSON", item))
                    }
                },
            ),
            Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
        },
        Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

/// The content of the page, as `ripple why --json` prints it.
pub(crate) async fn object<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ItemAddress { pk, sk, changes }): Query<ItemAddress>,
) -> Response {
    match why(&console.opened, &request(&Key::new(pk, sk), changes)).await {
        Ok(explained) => json::object(explanation(&explained)),
        Err(OperateError::Usage(nothing)) => json::failed(StatusCode::NOT_FOUND, &nothing),
        Err(error) => json::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

fn request(key: &Key, reads_stream: bool) -> WhyRequest {
    WhyRequest { key: key.clone(), attribute: None, n_listed: LISTED, n_read_max: SOURCES_MAX, reads_stream }
}

fn whole<S: Store>(console: &Console<S>, explanation: &Explanation, key: &Key) -> Markup {
    let Explanation { entities, item, unreadable, pending, changes, read_units, .. } = explanation;
    html! {
        p {
            (entities.join(" or "))
            @if item.is_none() { " – the item is not there" }
            " · " a href=(frame::of_collection(None, &key.pk)) { "all items under this partition key" }
        }
        @for (derivation, why) in unreadable {
            p.empty { @if derivation == ALL_DERIVATIONS { "Every derivation" } @else { (derivation) } " skips this item: " (why.to_string()) }
        }
        (derived_values(explanation))
        @if let Some(item) = item { (ground(console, key, item)) }
        (pending_work(pending))
        h2 { "Changes" }
        @match changes {
            Some(changes) => (last_changes(changes)),
            None => p { a href=(format!("{}&changes=true", frame::of_item(key))) { "Read the stream" } " for the changes that moved these values." },
        }
        @if let Some(item) = item {
            h2 { "The item as DynamoDB has it" }
            (typed("Show every attribute with its type, as JSON", item))
        }
        p { small { "This page took " (read_units_text(*read_units)) "." } }
        (json::link(&frame::of_item_object(key, changes.is_some())))
    }
}

/// The application's attributes of an item; for an undeclared item, all attributes.
fn ground<S: Store>(console: &Console<S>, key: &Key, item: &Item) -> Markup {
    let schema = console.engine.schema();
    let definition = schema.image(key, item).map(|image| image.definition);
    let layout = &schema.layout;
    let is_key = |name: &str| [&layout.pk, &layout.sk].into_iter().chain(&layout.entity_type).any(|key| key == name);
    let is_ground = |name: &&str| !is_key(name) && definition.is_none_or(|it| !it.derived && !it.derives(name));
    let names: Vec<&str> = item.keys().filter(is_ground).collect();
    let rows = names.iter().filter_map(|name| Some((*name, item.get(name)?)));
    html! {
        h2 { "What the application wrote" }
        @if names.is_empty() { p.empty { "Nothing: Ripple alone writes this item." } } @else {
            div.wide tabindex="0" { table.pairs { tbody {
                @for (name, value) in rows { tr { th scope="row" { (name) } td { code { (text(value)) } } } }
            } } }
        }
    }
}

// ---- The explanation ----

/// A value in DynamoDB's form.
pub(crate) fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        AttributeValue::Bool(is) => is.to_string(),
        other => serde_json::to_string(other).unwrap_or_else(|error| error.to_string()),
    }
}

/// An item in the form of DynamoDB's API, each value with its type, collapsed under a summary.
pub(crate) fn typed(switch: &str, item: &Item) -> Markup {
    html! {
        details {
            summary { (switch) }
            pre tabindex="0" { code { (serde_json::to_string_pretty(item).unwrap_or_else(|error| error.to_string())) } }
        }
    }
}

pub(crate) fn read_units_text(units: f64) -> String {
    if (units - 1.0).abs() < f64::EPSILON { "1 read unit".to_owned() } else { format!("{units} read units") }
}

/// The derived values of an item: how many there are and whether they are right, and a line for each that unfolds. A
/// count is one value with its displays.
fn derived_values(explanation: &Explanation) -> Markup {
    let Explanation { item, values, counters, changes, .. } = explanation;
    let is_display = |value: &&ExplainedValue, counter: &ExplainedCounter| {
        let of =
            |source: &ExplainedSource| matches!(&source.role, SourceRole::Counter(name) if *name == counter.derivation);
        value.sources.iter().any(of)
    };
    let displays: Vec<Vec<&ExplainedValue>> =
        counters.iter().map(|counter| values.iter().filter(|value| is_display(value, counter)).collect()).collect();
    let others: Vec<&ExplainedValue> =
        values.iter().filter(|value| !counters.iter().any(|counter| is_display(value, counter))).collect();
    let states = counters.iter().zip(&displays).map(|(counter, displays)| worst(&counter.state, displays));
    let states: Vec<&ValueState> = states.chain(others.iter().map(|value| &value.state)).collect();
    let n_right = states.iter().filter(|state| matches!(state, ValueState::Right)).count();
    html! {
        h2 {
            (counted(states.len(), "derived value")) ", "
            @if n_right == states.len() { span.right { "all right" } }
            @else if let Some(first) = states.iter().find(|state| ***state != ValueState::Right) {
                (n_right) " right, " span class=(class(first)) { (states.len() - n_right) " not right" }
            }
        }
        @for (counter, displays) in counters.iter().zip(displays) { (counter_fold(counter, &displays, changes.as_ref())) }
        @for it in others {
            @let is_stored = item.is_some();
            @let what = html! {
                b { (it.derivation) }
                @if it.attributes.is_empty() { @if is_stored { ": the item" } @else { ": no item" } }
                (attributes_stored(std::slice::from_ref(it)))
            };
            (fold(&it.state, &what, (it.kind, &it.terms), &value(it, is_stored)))
        }
    }
}

/// The first state that is not right.
fn worst<'a>(state: &'a ValueState, displays: &[&'a ExplainedValue]) -> &'a ValueState {
    let mut all = std::iter::once(state).chain(displays.iter().map(|value| &value.state));
    all.find(|state| **state != ValueState::Right).unwrap_or(state)
}

/// The attributes that derivations have written.
fn attributes_stored<'a>(values: impl IntoIterator<Item = &'a ExplainedValue>) -> Markup {
    let attributes = values.into_iter().flat_map(|value| &value.attributes).filter(|it| !it.name.ends_with(":rev"));
    html! { @for it in attributes { ", " (it.name) " = " (cell(it.stored.as_ref())) } }
}

/// A value in one line, which unfolds; unfolded at first if it is not right.
fn fold(state: &ValueState, what: &Markup, (kind, terms): (&str, &[String]), explained: &Markup) -> Markup {
    let is_right = *state == ValueState::Right;
    html! {
        details.fold open[!is_right] {
            summary {
                span class=(class(state)) { @if is_right { "right" } @else { (state) } } " "
                span { (what) } " " small { (kind) @for term in terms { ", " (term) } }
            }
            (explained)
        }
    }
}

/// A derivation's values in an item, with their explanation.
fn value(value: &ExplainedValue, is_there: bool) -> Markup {
    html! {
        @if value.should_exist == Some(true) && !is_there { p.differs { "The item should be there." } }
        @if value.should_exist == Some(false) && is_there { p.differs { "The item should not be there." } }
        @if value.attributes.iter().any(|it| !it.is_right) {
            div.wide tabindex="0" { table {
                thead { tr { th { "attribute" } th { "stored" } th { "by its definition" } } }
                tbody { @for it in &value.attributes { tr {
                    th scope="row" { (it.name) }
                    td { (cell(it.stored.as_ref())) }
                    td { @if it.is_right { "the same" } @else { span.differs { (cell(it.derived.as_ref())) } } }
                } } }
            } }
        }
        @if !value.own.is_empty() { p { "It reads of the item " (attributes(&value.own)) } }
        @if !value.sources.is_empty() {
            p { "It is derived from" }
            ul { @for source in &value.sources { li { (source_of(source, value.kind)) } } }
        }
    }
}

fn cell(value: Option<&AttributeValue>) -> Markup {
    html! { @match value { Some(value) => code { (text(value)) }, None => span { "–" } } }
}

fn attributes(item: &Item) -> Markup {
    html! {
        @for (at, (name, value)) in item.iter().enumerate() {
            @if at > 0 { ", " }
            code { (name) " = " (text(value)) }
        }
    }
}

fn source_of(source: &ExplainedSource, kind: &str) -> Markup {
    if let Some(hour) = source.key.as_ref().filter(|key| **key == clock::key()).and_then(|_| clock::hour(&source.gives))
    {
        return html! { "the clock, which shows " (time(hour.saturating_mul(clock::HOUR_MS))) };
    }
    html! {
        @match &source.role {
            SourceRole::Counter(derivation) => { "the counter of " (derivation) },
            SourceRole::First(of) if source.key.is_none() => { "no " (of.entity) " under " code { (of.query.pk) } },
            SourceRole::First(_) if kind == "window" => { "of the buckets of the window, " },
            SourceRole::First(of) if of.length() > 1 => { "of the first " (of.length()) " " (of.entity) ", " },
            SourceRole::First(of) => { "the first " (of.entity) ", " },
            SourceRole::Item => {},
        }
        @if let (Some(key), false) = (&source.key, matches!(source.role, SourceRole::Counter(_))) { (frame::key(key)) }
        @if !source.is_there && source.key.is_some() { " is not there" }
        @if !source.gives.is_empty() { " has " (attributes(&source.gives)) }
    }
}

/// A derivation's count with its displays.
fn counter_fold(counter: &ExplainedCounter, displays: &[&ExplainedValue], changes: Option<&StreamChanges>) -> Markup {
    let CounterSources { query, listed, n_sources, n_unreadable, tally, is_whole } = &counter.sources;
    let what = html! {
        b { (counter.derivation) " = " (counter.stored) }
        (attributes_stored(displays.iter().copied()))
    };
    let explained = html! {
        @if counter.is_history { p { "Its sources may be gone." } }
        @for item in &counter.items { (counter_item(item, changes)) }
        @if let Some(query) = query {
            p {
                @if !is_whole { "At least " }
                (counted(*n_sources, "source")) ", " (tally) " in all: "
                a href=(frame::of_collection(query.index.as_deref(), &query.pk)) {
                    (query.index.as_deref().unwrap_or("the table")) " under " (query.pk)
                }
                @if *n_unreadable > 0 { ", and " (n_unreadable) " that cannot be read and add nothing" }
            }
            ul { @for (key, tally) in listed { li { (frame::key(key)) " adds " (format!("{tally:+}")) } } }
            @if listed.len() < *n_sources { p { "… and " (n_sources - listed.len()) " more" } }
        }
        @for it in displays.iter().filter(|it| it.state != ValueState::Right) { (value(it, true)) }
    };
    fold(worst(&counter.state, displays), &what, (counter.kind, &counter.terms), &explained)
}

fn counter_item(item: &CounterItem, changes: Option<&StreamChanges>) -> Markup {
    let shard =
        |name: &str| changes.and_then(|changes| changes.shards.get(name)).map_or(name, String::as_str).to_owned();
    html! {
        p {
            (frame::key(&item.key)) " has " (item.tally)
            @if let Some(n) = item.satellites { ", and has spread over " (counted(n as usize, "satellite")) }
        }
        @if !item.watermarks.is_empty() {
            ul { @for mark in &item.watermarks {
                li { "counted up to " code { (mark.sequence_number) } " of the stream shard " code { (shard(&mark.name)) } }
            } }
        }
    }
}

/// The parked changes and jobs of an item.
fn pending_work(pending: &Pending) -> Markup {
    let Pending { parked, n_undecodable, jobs, searches } = pending;
    html! {
        @if !parked.is_empty() || !jobs.is_empty() || !searches.is_empty() || *n_undecodable > 0 { h2 { "Pending" } }
        @for change in parked {
            p { "The change " code { (change.id) } " of " (frame::key(&change.item)) " is parked: " (change.cause) }
        }
        @if *n_undecodable > 0 { p { "What cannot be decoded of what is parked may concern it: " (counted(*n_undecodable, "change")) "." } }
        @for job in jobs { p { "The job " code { (job.key) } " is under way." } }
        @for DueItem { item, due_ms, .. } in searches {
            p { "The items that depend on " (frame::key(item)) " are searched again at " (time(*due_ms)) "." }
        }
    }
}

/// The changes of an item's values.
fn last_changes(changes: &StreamChanges) -> Markup {
    html! {
        @if changes.n_concerning == 0 {
            p.empty { "None of the " (changes.n_records) " records that the stream still has concerns these values." }
        } @else {
            p { "The last " (changes.last.len()) " of " (changes.n_concerning) " changes that the stream still has:" }
            div.wide tabindex="0" { table {
                thead { tr { th { "time" } th { "event" } th { "item" } th { "asks" } } }
                tbody { @for change in &changes.last { (row(change)) } }
            } }
        }
    }
}

fn row(change: &StreamChange) -> Markup {
    html! {
        tr {
            td { (change.created_ms.map(time).unwrap_or_default()) }
            td { (change.event) }
            td { (frame::key(&change.item)) }
            td { @for (derivation, effect) in &change.effects { div { (derivation) " " (effect) } } }
        }
    }
}

/// The class of a state's text.
fn class(state: &ValueState) -> &'static str {
    match state {
        ValueState::Right => "right",
        ValueState::Waits => "waits",
        ValueState::Differs | ValueState::Flawed(_) => "differs",
        ValueState::Undecided(_) => "undecided",
    }
}
