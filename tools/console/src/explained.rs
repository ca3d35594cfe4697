//! Renders an explanation.

use std::collections::BTreeMap;

use derive::{catalogue::Catalogue, schema::Schema};
use keys::item::Item;
use maud::{Markup, html};
use operate::{
    why::{
        Pending, StreamChange, StreamChanges, ValueState,
        counter::{CounterItem, CounterSources, ExplainedCounter},
        value::{ExplainedSource, ExplainedValue, SourceRole},
    },
    words::{counted, time},
};
use serde_dynamo::AttributeValue;

use crate::{flow::shown::DerivationFigures, frame};

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

/// Read units, in words.
pub(crate) fn read_units_text(units: f64) -> String {
    if (units - 1.0).abs() < f64::EPSILON { "1 read unit".to_owned() } else { format!("{units} read units") }
}

/// A derivation's values in an item, with their explanation.
pub(crate) fn value(value: &ExplainedValue, is_there: bool) -> Markup {
    let is_needed = value.should_exist != Some(false);
    html! {
        section aria-label=(value.derivation) {
            h3 { (value.derivation) " " (state(&value.state)) }
            p { (value.kind) @for term in &value.terms { ", " (term) } }
            @if value.should_exist == Some(true) && !is_there { p.differs { "The item should be there." } }
            @if !is_needed && is_there { p.differs { "The item should not be there." } }
            @if !value.attributes.is_empty() {
                div.wide tabindex="0" { table {
                    thead { tr { th { "attribute" } th { "stored" } th { "by its definition" } } }
                    tbody {
                        @for attribute in &value.attributes {
                            tr {
                                th scope="row" { (attribute.name) }
                                td { (held(attribute.stored.as_ref())) }
                                td class=(if attribute.is_right { "" } else { "differs" }) {
                                    @if attribute.is_right { "the same" } @else { (held(attribute.derived.as_ref())) }
                                }
                            }
                        }
                    }
                } }
            }
            @if !value.own.is_empty() { p { "It reads of the item " (attributes(&value.own)) } }
            @if !value.sources.is_empty() {
                p { "It is derived from" }
                ul { @for source in &value.sources { li { (source_of(source)) } } }
            }
        }
    }
}

fn held(value: Option<&AttributeValue>) -> Markup {
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

fn source_of(source: &ExplainedSource) -> Markup {
    html! {
        @match &source.role {
            SourceRole::Counter(derivation) => { "the counter of " (derivation) },
            SourceRole::First(of) if source.key.is_none() => { "no " (of.entity) " under " code { (of.query.pk) } },
            SourceRole::First(of) if of.length() > 1 => { "of the first " (of.length()) " " (of.entity) ", " },
            SourceRole::First(of) => { "the first " (of.entity) ", " },
            SourceRole::Item => {},
        }
        @if let (Some(key), false) = (&source.key, matches!(source.role, SourceRole::Counter(_))) { (frame::key(key)) }
        @if !source.is_there && source.key.is_some() { " is not there" }
        @if !source.gives.is_empty() { " has " (attributes(&source.gives)) }
    }
}

/// A derivation's count, with its explanation.
pub(crate) fn counter(counter: &ExplainedCounter, changes: Option<&StreamChanges>) -> Markup {
    let CounterSources { query, listed, n_sources, n_unreadable, tally, is_whole } = &counter.sources;
    html! {
        section aria-label=(counter.derivation) {
            h3 { (counter.derivation) " = " (counter.stored) " " (state(&counter.state)) }
            p {
                (counter.kind) @for term in &counter.terms { ", " (term) }
                @if counter.is_history { "; its sources may be gone" }
            }
            @for item in &counter.items { (counter_item(item, changes)) }
            @if let Some(query) = query {
                p {
                    @if !is_whole { "At least " }
                    (counted(*n_sources, "source")) ", which come to " (tally) ": "
                    a href=(frame::of_collection(query.index.as_deref(), &query.pk)) {
                        (query.index.as_deref().unwrap_or("the table")) " under " (query.pk)
                    }
                    @if *n_unreadable > 0 { ", and " (n_unreadable) " that cannot be read and add nothing" }
                }
                ul { @for (key, tally) in listed { li { (frame::key(key)) " adds " (format!("{tally:+}")) } } }
                @if listed.len() < *n_sources { p { "… and " (n_sources - listed.len()) " more" } }
            }
        }
    }
}

fn counter_item(item: &CounterItem, changes: Option<&StreamChanges>) -> Markup {
    let shard =
        |name: &str| changes.and_then(|changes| changes.shards.get(name)).map_or(name, String::as_str).to_owned();
    html! {
        p {
            (frame::key(&item.key)) " holds " (item.tally)
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
pub(crate) fn pending(pending: &Pending) -> Markup {
    let Pending { parked, n_undecodable, jobs } = pending;
    html! {
        @if !parked.is_empty() || !jobs.is_empty() || *n_undecodable > 0 { h2 { "Pending" } }
        @for change in parked {
            p { "The change " code { (change.id) } " of " (frame::key(&change.item)) " is parked: " (change.cause) }
        }
        @if *n_undecodable > 0 { p { "What cannot be decoded of what is parked may concern it: " (counted(*n_undecodable, "change")) "." } }
        @for job in jobs { p { "The job " code { (job.key) } " is under way." } }
    }
}

/// The changes of an item's values.
pub(crate) fn changes(changes: &StreamChanges) -> Markup {
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

fn state(state: &ValueState) -> Markup {
    let class = match state {
        ValueState::Right => "right",
        ValueState::Waits => "waits",
        ValueState::Differs | ValueState::Flawed(_) => "differs",
        ValueState::Undecided(_) => "undecided",
    };
    html! { span class=(class) { (state) } }
}

// ---- graph ----

/// Height of a row, and of the box in it.
const ROW: usize = 26;
const BOX: usize = 20;

/// Left edges of the three columns, and the width of a box.
const LEFT: usize = 0;
const MIDDLE: usize = 350;
const RIGHT: usize = 740;
const WIDTH: usize = 220;

/// Width of the picture.
const WHOLE: usize = RIGHT + WIDTH;

/// Names with their rows.
type Rows<'a> = BTreeMap<&'a str, usize>;

/// The picture. Each derivation links to its flow, and has its changes a second if functions run in this process.
pub(crate) fn graph(
    schema: &Schema,
    catalogue: &Catalogue,
    figures: Option<&BTreeMap<String, DerivationFigures>>,
) -> Markup {
    let outlines: Vec<_> = catalogue.derivations().map(|it| it.kind.outline(schema)).collect();
    let (mut from, mut into, mut edges) = (Rows::new(), Rows::new(), Vec::new());
    let mut targets = Vec::new();
    for (row, (at, _)) in catalogue.positioned().enumerate() {
        let names = catalogue.writes(at).iter().map(|part| part.entity.as_str());
        targets.extend(names.map(|name| (row, name)));
    }
    for (row, outline) in outlines.iter().enumerate() {
        for name in &outline.from {
            let next = from.len();
            edges.push(edge(LEFT + WIDTH, *from.entry(name).or_insert(next), MIDDLE, row));
        }
    }
    for (row, name) in targets {
        let next = into.len();
        let path = edge(MIDDLE + WIDTH, row, RIGHT, *into.entry(name).or_insert(next));
        if !edges.contains(&path) {
            edges.push(path);
        }
    }
    let n_rows = outlines.len().max(from.len()).max(into.len());
    html! {
        div.wide tabindex="0" {
            svg.graph viewBox=(format!("0 0 {WHOLE} {}", n_rows * ROW)) role="group" aria-label="From which entities into which, as the table below lists it" {
                @for path in edges { path d=(path) {} }
                @for (name, row) in &from { (node(LEFT, *row, name, "entity")) }
                @for (row, derivation) in catalogue.derivations().enumerate() {
                    @match figures {
                        Some(figures) => {
                            a href=(frame::of_flow(derivation.label())) { (node(MIDDLE, row, derivation.label(), "derivation")) }
                            (rate(row, figures.get(derivation.label())))
                        },
                        None => (node(MIDDLE, row, derivation.label(), "derivation")),
                    }
                }
                @for (name, row) in &into { (node(RIGHT, *row, name, "entity")) }
            }
        }
    }
}

/// The changes a second of a derivation, if it has any.
fn rate(row: usize, figures: Option<&DerivationFigures>) -> Markup {
    let a_second = figures.map_or(0.0, DerivationFigures::changes_a_second);
    html! {
        @if a_second > 0.0 {
            text.rate x=(MIDDLE + WIDTH - 8) y=(row * ROW + BOX - 6) { (format!("{a_second:.2}/s")) }
        }
    }
}

fn node(x: usize, row: usize, name: &str, class: &str) -> Markup {
    html! {
        rect class=(class) x=(x) y=(row * ROW) width=(WIDTH) height=(BOX) rx="4" {}
        text x=(x + 8) y=(row * ROW + BOX - 6) { (name) }
    }
}

fn edge(x: usize, row: usize, to_x: usize, to_row: usize) -> String {
    let y = |row: usize| row * ROW + BOX / 2;
    let middle = usize::midpoint(x, to_x);
    format!("M{x} {} C{middle} {} {middle} {} {to_x} {}", y(row), y(row), y(to_row), y(to_row))
}
