//! The changes of the flow as they come: one stream of server-sent events a page.
//!
//! An event's data is a JSON text: the change as the page shows it. Its id is the number of the update, so that a browser
//! that lost its connection goes on behind it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::stream::{self, StreamExt as _};
use serde::Deserialize;
use store::Store;

use super::{Flow, page::SHOWN, selection::Selection, shown};
use crate::{Console, frame};

/// Time between two looks at the flow by one page: a browser has time to show what came.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the address says beside the selection.
#[derive(Debug, Deserialize)]
pub(crate) struct After {
    #[serde(default)]
    after: u64,
}

pub(crate) async fn events<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(selection): Query<Selection>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Response {
    let Some(flow) = console.flow.clone() else {
        return frame::failed(StatusCode::NOT_FOUND, "There is no flow.").into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let looking = Looking { updates: flow.watch(), flow, selection, after: last.unwrap_or(after) };
    let events = stream::unfold(looking, |mut looking| async move {
        let events = looking.next().await?;
        Some((stream::iter(events.into_iter().map(Ok::<_, Infallible>)), looking))
    });
    Sse::new(events.flatten()).keep_alive(KeepAlive::default()).into_response()
}

/// One page's look at the flow.
struct Looking {
    flow: Arc<Flow>,
    updates: tokio::sync::watch::Receiver<u64>,
    selection: Selection,
    /// The last update that the page has.
    after: u64,
}

impl Looking {
    /// What is new, the oldest first: of more than a page shows only the newest. `None` when the flow has ended.
    async fn next(&mut self) -> Option<Vec<Event>> {
        tokio::time::sleep(LOOK_EVERY).await;
        let after = self.after;
        self.updates.wait_for(|update| *update > after).await.ok()?;
        let is_new = |entry: &_| after < entry_update(entry) && self.selection.holds(entry);
        let (mut entries, update) = self.flow.entries(is_new, SHOWN);
        self.after = update;
        entries.reverse();
        let event = |entry: &_| {
            let html = shown::change(entry).into_string();
            let data = serde_json::to_string(&html).unwrap_or_default();
            Event::default().event("change").id(update.to_string()).data(data)
        };
        Some(entries.iter().map(event).collect())
    }
}

fn entry_update(entry: &super::entry::FlowEntry) -> u64 {
    entry.update
}
