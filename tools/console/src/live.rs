//! A part of a page that is updated whenever something changes.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::stream;
use maud::{Markup, html};
use store::Store;
use tokio::sync::watch;

use crate::{Console, flow::Flow, frame};

/// Time between two updates of one page, so that a browser has time to render.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A part with the address of its events.
pub(crate) fn part(address: &str, content: &Markup) -> Markup {
    html! { div.live data-live=(address) { (content) } }
}

/// The script that updates the parts of a page.
pub(crate) fn script() -> Markup {
    html! { script type="module" src="/live.js" {} }
}

/// The updates of a part that the functions of this process change.
pub(crate) fn of_flow<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    part: fn(&Console<S>, &Flow) -> Markup,
) -> Response {
    let Some(flow) = console.flow.clone() else {
        return frame::failed(StatusCode::NOT_FOUND, "No functions run here.").into_response();
    };
    events(flow.watch(), move || part(&console, &flow))
}

/// The part after each change: an event's data is JSON text.
pub(crate) fn events(changes: watch::Receiver<u64>, part: impl Fn() -> Markup + Send + Sync + 'static) -> Response {
    // A page may be older than its stream, so the first event is sent at once.
    let events = stream::unfold((changes, part, true), |(mut changes, part, is_first)| async move {
        if !is_first {
            tokio::time::sleep(LOOK_EVERY).await;
            changes.changed().await.ok()?;
        }
        changes.mark_unchanged();
        let data = serde_json::to_string(&part().into_string()).unwrap_or_default();
        Some((Ok::<_, Infallible>(Event::default().event("part").data(data)), (changes, part, false)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
