//! Renders an explanation.

use derive::clock;
use engine::fan_out::again::DueItem;
use keys::item::Item;
use maud::{Markup, html};
use operate::{
    why::{
        Explanation, Pending, StreamChange, StreamChanges, ValueState,
        counter::{CounterItem, CounterSources, ExplainedCounter},
        value::{ExplainedSource, ExplainedValue, SourceRole},
    },
    words::{counted, time},
};
use serde_dynamo::AttributeValue;

use crate::frame;

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

/// The derived values of an item: how many there are and whether they are right, and a line for each that unfolds. A
/// count is one value with its displays.
pub(crate) fn values(explanation: &Explanation) -> Markup {
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
    html! { @for it in attributes { ", " (it.name) " = " (held(it.stored.as_ref())) } }
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
                    td { (held(it.stored.as_ref())) }
                    td { @if it.is_right { "the same" } @else { span.differs { (held(it.derived.as_ref())) } } }
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
pub(crate) fn pending(pending: &Pending) -> Markup {
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

/// The class of a state's text.
fn class(state: &ValueState) -> &'static str {
    match state {
        ValueState::Right => "right",
        ValueState::Waits => "waits",
        ValueState::Differs | ValueState::Flawed(_) => "differs",
        ValueState::Undecided(_) => "undecided",
    }
}
