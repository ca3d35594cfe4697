//! The page of step mode, and its commands.

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use derive::write::Table;
use engine::record::decode;
use maud::{Markup, html};
use operate::words::counted;
use serde::Deserialize;
use store::Store;

use super::{
    HeldStream, StepGate, StreamFlow,
    delivering::{DeliveryReport, DeliveryWay, EndedHow, InvocationEnd, WhichRecord},
    scene,
};
use crate::{
    Console,
    flow::{entry::FlowEntry, shown},
    frame::{self, ConsolePage},
    live,
};

/// Delivered records that the page lists of a function.
const DELIVERED_SHOWN: usize = 5;

/// Reports that the page lists.
const REPORTS_SHOWN: usize = 10;

/// Most writes after which an invocation can be killed.
const WRITES_MAX: usize = 5;

/// The command to hold the stream.
#[derive(Debug, Deserialize)]
struct HoldOrder {
    /// `true` or `false`.
    hold: String,
}

/// The command to deliver a record, with the way of delivery.
#[derive(Debug, Deserialize)]
struct DeliverOrder {
    function: String,
    /// Sequence number of a delivered record; the next one if `None`.
    again: Option<String>,
    /// `once`, `at-once` or `killed`.
    way: String,
    /// The number of writes after which the invocation is killed.
    writes: Option<String>,
}

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let Some(gate) = &console.step else { return frame::page("Step mode", &nothing_to_hold()) };
    let is_held = gate.held().flow == StreamFlow::Held;
    frame::page(
        "Step mode",
        &html! {
            p {
                "Lambda may deliver a record twice, deliver an old one after a newer one, or end an invocation anywhere. "
                "Pause the stream, and do all that yourself: the values are right in the end."
            }
            @if !is_held { (scene::page::list(&console)) }
            h2 { "The stream" }
            (live::part("/step/events", &part(&console, gate)))
            @if is_held { (scene::page::list(&console)) }
            (live::script())
        },
    )
}

pub(super) fn nothing_to_hold() -> Markup {
    html! { p.empty {
        "No functions run here, so there is nothing to pause. Step mode is in the console of `ripple dev` where it runs the "
        "functions itself: open the address that it prints."
    } }
}

/// The part of the page that is updated with each change.
pub(crate) fn part<S: Store + 'static>(console: &Console<S>, gate: &StepGate<S>) -> Markup {
    let held = gate.held();
    let is_held = held.flow == StreamFlow::Held;
    html! {
        @if is_held {
            p { strong { "The stream is paused. " } "Write an item with any client: its record waits here for each function." }
            (console.button("/step/hold", &[("hold", "false")], "Resume the stream"))
        } @else {
            p { strong { "The stream flows: " } "each function gets a record as soon as it comes." }
            (console.button("/step/hold", &[("hold", "true")], "Pause the stream"))
        }
        @if is_held || !held.reports.is_empty() {
            @for (at, function) in gate.functions.iter().enumerate() {
                (of_function(console, &held, at, &function.name()))
            }
            @if !held.reports.is_empty() { h2 { "Result of each delivery" } }
            ol.reports reversed start=(held.reports.front().map_or(0, |report| report.number)) {
                @for report in held.reports.iter().take(REPORTS_SHOWN) { li { (of_report(console, gate, report)) } }
            }
        }
    }
}

fn of_function<S: Store + 'static>(console: &Console<S>, held: &HeldStream, at: usize, name: &str) -> Markup {
    let n_waiting = held.n_waiting(at);
    let delivered = held.delivered.iter().filter(|it| it.function == at);
    html! {
        section aria-label=(name) {
            h3 { (name) }
            @match held.next(at) {
                None => p { "No record waits for it." },
                Some(next) => {
                    p { b { "Next: " } (record(console, &next.record.json)) }
                    @if next.record.n_failed > 0 {
                        p { "Lambda delivers it again: " (counted(next.record.n_failed, "invocation")) " with it did not end well." }
                    }
                    div.orders { (deliver_buttons(console, name)) }
                    @if n_waiting > 1 { p { small { (counted(n_waiting - 1, "more record")) " behind it" } } }
                },
            }
            @if held.delivered.iter().any(|it| it.function == at) {
                p { b { "Delivered: " } "each can be delivered again, also after later ones." }
                ul.delivered { @for it in delivered.take(DELIVERED_SHOWN) {
                    li {
                        (record(console, &it.record.json)) " "
                        (console.button("/step/deliver", &[("function", name), ("again", &it.record.sequence_number), ("way", "once")], "Deliver again"))
                    }
                } }
            }
        }
    }
}

fn deliver_buttons<S: Store>(console: &Console<S>, name: &str) -> Markup {
    let killed = html! {
        label {
            "after "
            select name="writes" { @for n in 1..=WRITES_MAX { option value=(n) { (counted(n, "write")) } } }
        }
    };
    let order = |way| [("function", name.to_owned()), ("way", way)];
    let fields = |way: &'static str| order(way.to_owned());
    html! {
        @for (way, text) in [("once", "Deliver"), ("at-once", "Deliver twice at once")] {
            @let [function, way] = fields(way);
            (console.button("/step/deliver", &[(function.0, &function.1), (way.0, &way.1)], text))
        }
        @let [function, way] = fields("killed");
        (console.form("/step/deliver", &[(function.0, &function.1), (way.0, &way.1)], &killed, "Deliver and kill"))
    }
}

/// A record in words: its item, and the changed attributes.
pub(crate) fn record<S: Store>(console: &Console<S>, json: &str) -> Markup {
    let (schema, catalogue) = (&console.opened.schema, &console.opened.catalogue);
    html! {
        @match decode(&schema.layout, json) {
            Ok(change) => {
                @let entry = FlowEntry::new(schema, catalogue, &change, 0);
                (entry.entity) " " (frame::key(&entry.item)) " " (shown::action(entry.action)) " "
                @if !entry.changed.is_empty() { span.values { (shown::changed(&entry)) } }
            },
            Err(error) => { "a record that cannot be read: " (error) },
        }
    }
}

/// The result of a delivery, in words.
pub(super) fn of_report<S: Store>(console: &Console<S>, gate: &StepGate<S>, report: &DeliveryReport) -> Markup {
    let name = gate.functions.get(report.function).map(|function| function.name()).unwrap_or_default();
    html! {
        p {
            b { (name) } " got "
            @match (report.is_again, report.way) {
                (false, DeliveryWay::AtOnce) => "twice at once: ",
                (true, DeliveryWay::AtOnce) => "again, twice at once: ",
                (true, _) => "again: ",
                (false, _) => {},
            }
            (record(console, &report.record))
        }
        @for (at, end) in report.ends.iter().enumerate() {
            @if report.ends.len() > 1 { p { small { "invocation " (at + 1) } } }
            (of_end(end))
        }
    }
}

fn of_end(end: &InvocationEnd) -> Markup {
    let n_in_step = end.n_in_step;
    html! {
        @if !end.writes.is_empty() {
            ul { @for write in &end.writes { li {
                @if write.table == Table::Ledger { code { (write.item) } small { " in the ledger, " (shown::units(write.units)) } }
                @else { (shown::write(write)) }
            } } }
        }
        @if end.n_duplicates > 0 { p.right { "It is counted already, so nothing is counted." } }
        @if n_in_step > 0 { p.right { (counted(n_in_step, "item")) @if n_in_step == 1 { " is" } @else { " are" } " as it should be, so nothing is written there." } }
        @if end.n_unreadable > 0 { p.waits { (counted(end.n_unreadable, "item")) " cannot be read, and counts as absent." } }
        @match &end.how {
            EndedHow::Done => { @if end.writes.is_empty() && end.n_duplicates == 0 && n_in_step == 0 { p { "Nothing follows from it." } } },
            EndedHow::Parked(cause) => p.differs { "It cannot be applied, so it is parked: " (cause) },
            EndedHow::Again(why) => p.waits { "It is not done, so Lambda delivers it again: " (why) },
            EndedHow::Killed => p.waits {
                "The invocation was killed before it could answer. "
                @if end.writes.is_empty() { "It wrote nothing." } @else { "What it wrote is written." }
            },
        }
    }
}

/// Holds the stream, or lets it flow.
pub(crate) async fn holds<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let HoldOrder { hold } = match console.ordered(&form) {
        Ok(order) => order,
        Err(refused) => return refused.into_response(),
    };
    let Some(gate) = &console.step else { return refused("There is nothing to pause here.") };
    gate.hold(hold == "true");
    Redirect::to("/step").into_response()
}

/// Delivers a record.
pub(crate) async fn delivers<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let DeliverOrder { function, again, way, writes } = match console.ordered(&form) {
        Ok(order) => order,
        Err(refused) => return refused.into_response(),
    };
    let Some(gate) = &console.step else { return refused("There is nothing to deliver here.") };
    let Some(at) = gate.functions.iter().position(|it| it.name() == function) else {
        return refused(&format!("There is no function {function}."));
    };
    let way = match (way.as_str(), writes.and_then(|n| n.parse().ok())) {
        ("once", _) => DeliveryWay::Once,
        ("at-once", _) => DeliveryWay::AtOnce,
        ("killed", Some(n)) if (1..=WRITES_MAX).contains(&n) => DeliveryWay::Killed(n),
        ("killed", _) => return refused(&format!("An invocation is killed after 1 to {WRITES_MAX} writes.")),
        _ => return refused("A record is delivered `once`, `at-once` or `killed`."),
    };
    let which = again.map_or(WhichRecord::Next, WhichRecord::Again);
    // A record that is gone is no longer on the page, so no message is needed.
    let _gone = gate.deliver(at, &which, way).await.is_none();
    Redirect::to("/step").into_response()
}

pub(super) fn refused(why: &str) -> Response {
    frame::failed(StatusCode::BAD_REQUEST, why).into_response()
}

/// The updates of the page's live part.
pub(crate) async fn events<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let Some(gate) = console.step.clone() else { return refused("There is nothing to pause here.") };
    live::events(gate.watch(), move || part(&console, &gate))
}
