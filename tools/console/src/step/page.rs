//! The pages of step mode and of a scene, and their commands.

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use derive::write::Table;
use engine::record::decode;
use maud::{Markup, html};
use operate::{why::ValueState, words::counted};
use serde::Deserialize;
use store::Store;

use crate::{
    Console,
    flow::{entry::FlowEntry, shown},
    frame::{self, ConsolePage},
    step::{
        HeldStream, StepGate, StreamFlow,
        act::{SceneLine, SceneRun, WatchedValue},
        delivering::{DeliveryReport, DeliveryWay, EndedHow, InvocationEnd, WhichRecord},
        scene::SCENES,
    },
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
            @if !is_held { (scenes(&console)) }
            h2 { "The stream" }
            (frame::live_part("/step/events", &part(&console, gate)))
            @if is_held { (scenes(&console)) }
            (frame::live_updates())
        },
    )
}

fn nothing_to_hold() -> Markup {
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
fn of_report<S: Store>(console: &Console<S>, gate: &StepGate<S>, report: &DeliveryReport) -> Markup {
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
    frame::updates(gate.watch(), move || part(&console, &gate))
}

// ---- The page of a scene ----

/// The last step of the scene, so that a long scene need not be scrolled.
const LAST: &str = "/step/scene#last";

/// The scene to begin.
#[derive(Debug, Deserialize)]
struct BeginOrder {
    scene: String,
}

/// The number of completed steps on the page, so that a repeated click does only one step.
#[derive(Debug, Deserialize)]
struct NextOrder {
    done: String,
}

/// The scenes, each with its button.
pub(crate) fn scenes<S: Store>(console: &Console<S>) -> Markup {
    html! {
        h2 { "Guided scenes" }
        p { "A scene writes a few items of its own, pauses the stream, and shows after each step what is stored and what is right." }
        ul.scenes { @for scene in &SCENES {
            li {
                h3 { (scene.title) }
                p { (scene.about) }
                (console.button("/step/scene/begin", &[("scene", scene.id)], "Begin"))
            }
        } }
    }
}

pub(crate) async fn scene_page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let Some(gate) = &console.step else { return frame::page("Scene", &nothing_to_hold()).into_response() };
    let run = console.scene.lock().await;
    match run.as_ref() {
        Some(run) => frame::page(run.scene.title, &whole(&console, gate, run)).into_response(),
        None => Redirect::to("/step").into_response(),
    }
}

fn whole<S: Store + 'static>(console: &Console<S>, gate: &StepGate<S>, run: &SceneRun) -> Markup {
    let next = run.scene.steps.get(run.n_done());
    html! {
        p { (run.scene.about) }
        p { "Watched: " b { (run.cast.derivation) } " of " (frame::key(&run.cast.target)) }
        ol.scene {
            @for (at, line) in run.lines.iter().enumerate() {
                li id=[(at == run.n_done()).then_some("last")] { (of_line(console, gate, line)) }
            }
        }
        @if let Some(step) = next {
            div.next {
                p { b { "Next: " } (step.text) }
                (console.button("/step/scene/next", &[("done", &run.n_done().to_string())], "Do it"))
            }
        } @else {
            @if let Some(last) = run.lines.last() { p { "The scene has ended, and the value is " (short(&last.watched.state)) "." } }
            (console.button("/step/scene/begin", &[("scene", run.scene.id)], "Play it again"))
        }
        p { a href="/step" { "All scenes, and the stream" } }
    }
}

fn of_line<S: Store>(console: &Console<S>, gate: &StepGate<S>, line: &SceneLine) -> Markup {
    let WatchedValue { name, stored, derived, state: is } = &line.watched;
    html! {
        p { b { (line.text) } }
        @if let Some(note) = &line.done.note { p { (note) } }
        @if let Some(report) = &line.done.report { (of_report(console, gate, report)) }
        dl.watched {
            div { dt { (name) " is stored as" } dd { code { (stored) } } }
            div { dt { "by its definition" } dd { code { (derived) } } }
            div { dt { "so it is" } dd { (short(is)) } }
        }
    }
}

/// The state of a value, in a few words: the steps of the scene explain the rest.
fn short(state: &ValueState) -> Markup {
    match state {
        ValueState::Right => html! { span.right { "right" } },
        ValueState::Waits => html! { span.waits { "late: the change is parked" } },
        ValueState::Differs => html! { span.waits { "not right yet" } },
        ValueState::Flawed(why) => html! { span.differs { "flawed: " (why) } },
        ValueState::Undecided(why) => html! { span.undecided { "not decided: " (why) } },
    }
}

pub(crate) async fn begins<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let BeginOrder { scene } = match console.ordered(&form) {
        Ok(order) => order,
        Err(refused) => return refused.into_response(),
    };
    let Some(gate) = &console.step else { return refused("There is nothing to play here.") };
    let mut playing = console.scene.lock().await;
    match Box::pin(SceneRun::begin(&console, gate, &scene)).await {
        Ok(run) => *playing = Some(run),
        Err(why) => return refused(&why),
    }
    Redirect::to(LAST).into_response()
}

/// Does the next step of the scene.
pub(crate) async fn nexts<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let NextOrder { done } = match console.ordered(&form) {
        Ok(order) => order,
        Err(refused) => return refused.into_response(),
    };
    let Some(gate) = &console.step else { return refused("There is nothing to play here.") };
    let mut playing = console.scene.lock().await;
    if let Some(run) = playing.as_mut().filter(|run| run.n_done().to_string() == done)
        && let Err(why) = run.next(&console, gate).await
    {
        return refused(&why);
    }
    Redirect::to(LAST).into_response()
}
