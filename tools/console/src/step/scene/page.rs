//! The page of a scene, and its commands.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Redirect, Response},
};
use maud::{Markup, html};
use operate::why::ValueState;
use serde::Deserialize;
use store::Store;

use super::SCENES;
use crate::step::scene::act::{SceneLine, SceneRun, WatchedValue};
use crate::{
    Console, frame,
    step::{
        StepGate,
        page::{nothing_to_hold, of_report, refused},
    },
};

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
pub(crate) fn list<S: Store>(console: &Console<S>) -> Markup {
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

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
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

/// Begins a scene.
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
