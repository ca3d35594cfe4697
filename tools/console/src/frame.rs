//! The parts that all pages share: the head, the navigation, the form that looks an item up, and parts that are updated
//! whenever something changes.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{
        Html, IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use engine::clock::{Clock as _, SystemClock};
use futures::stream;
use keys::key::Key;
use maud::{DOCTYPE, Markup, html};
use operate::words;
use store::Store;
use tokio::sync::watch;

use crate::{Console, flow::Flow};

pub(crate) type ConsolePage = (StatusCode, Html<String>);

const STYLE: &str = include_str!("style.css");
const FLOW_SCRIPT: &str = include_str!("flow.js");
const LIVE_SCRIPT: &str = include_str!("live.js");

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A page of the navigation: address, name, and the prefix of its title.
type NamedPage = (&'static str, &'static str, &'static str);

/// The pages in the navigation, in groups.
const PAGES: [(&str, &[NamedPage]); 3] = [
    ("Watch", &[("/", "Overview", "Overview"), ("/flow", "Flow", "Flow"), ("/cost", "Cost", "Cost")]),
    ("Correct", &[("/verify", "Verify", "Verify"), ("/parked", "Parked", "Parked"), ("/jobs", "Jobs", "Jobs")]),
    (
        "Explore",
        &[
            ("/step", "Step mode", "Step mode"),
            ("/collection", "Query", "Query"),
            ("/design", "Design", "The table's design"),
        ],
    ),
];

pub(crate) fn page(title: &str, content: &Markup) -> ConsolePage {
    framed(StatusCode::OK, title, content)
}

pub(crate) fn failed(status: StatusCode, why: &str) -> ConsolePage {
    framed(status, "Not shown", &html! { p.empty { (why) } })
}

fn framed(status: StatusCode, title: &str, content: &Markup) -> ConsolePage {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – Ripple" }
                link rel="stylesheet" href="/style.css";
            }
            body {
                header {
                    a.brand href="/" {
                        svg viewBox="0 0 24 24" aria-hidden="true" { circle cx="12" cy="12" r="10" {} circle cx="12" cy="12" r="5.5" {} circle cx="12" cy="12" r="1" {} }
                        "Ripple"
                    }
                    form action="/find" method="get" role="search" {
                        label { "Key " input name="key" placeholder="partition key / sort key" required; }
                        button { "Explain" }
                    }
                }
                nav aria-label="Pages" {
                    @for (group, pages) in PAGES {
                        p { (group) }
                        @for (address, name, begins) in pages {
                            a href=(address) aria-current=[title.starts_with(begins).then_some("page")] { (name) }
                        }
                    }
                }
                main {
                    h1 { (title) }
                    (content)
                }
            }
        }
    };
    (status, Html(page.into_string()))
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

pub(crate) async fn flow_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JAVASCRIPT)], FLOW_SCRIPT)
}

pub(crate) async fn live_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JAVASCRIPT)], LIVE_SCRIPT)
}

// ---- Addresses of pages ----

pub(crate) fn of_item(key: &Key) -> String {
    address("/item", &[("pk", &key.pk), ("sk", &key.sk)])
}

/// The content of an item's page, as JSON.
pub(crate) fn of_item_object(key: &Key, reads_stream: bool) -> String {
    let changes = if reads_stream { "true" } else { "false" };
    address("/item.json", &[("pk", &key.pk), ("sk", &key.sk), ("changes", changes)])
}

/// The page of the items under a partition key, of the table or of an index.
pub(crate) fn of_collection(index: Option<&str>, pk: &str) -> String {
    let mut named = vec![("pk", pk)];
    named.extend(index.map(|index| ("index", index)));
    address("/collection", &named)
}

pub(crate) fn of_change(event: &str) -> String {
    address("/change", &[("event", event)])
}

/// The page with the expected result of a redrive.
pub(crate) fn of_try(event: &str) -> String {
    address("/parked/try", &[("id", event)])
}

pub(crate) fn of_item_flow(key: &Key) -> String {
    address("/flow", &[("key", &key.to_string())])
}

pub(crate) fn of_flow(derivation: &str) -> String {
    address("/flow", &[("derivation", derivation)])
}

fn address(page: &str, named: &[(&str, &str)]) -> String {
    // Any text can be encoded in an address.
    let query = serde_urlencoded::to_string(named).unwrap_or_default();
    format!("{page}?{query}")
}

/// A key that links to its item. A line breaks after a `#`, not within a word or a time.
pub(crate) fn key(key: &Key) -> Markup {
    let text = key.to_string();
    let parts = text.split_inclusive(" / ").flat_map(|half| half.split_inclusive('#'));
    html! { a.key href=(of_item(key)) { @for part in parts { span { (part) } } } }
}

/// A time in UTC, and how far it is from now.
pub(crate) fn time(at_ms: u64) -> Markup {
    let (text, far) = (words::time(at_ms), far(at_ms, SystemClock.now_ms()));
    html! { time datetime=(text) { (text) } " " small { "(" (far) ")" } }
}

fn far(at_ms: u64, now_ms: u64) -> String {
    let far = match at_ms.abs_diff(now_ms) / 1_000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    };
    if at_ms > now_ms { format!("in {far}") } else { format!("{far} ago") }
}

// ---- Parts that are updated whenever something changes ----

/// Time between two updates of one page, so that a browser has time to render.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A part with the address of its events.
pub(crate) fn live_part(address: &str, content: &Markup) -> Markup {
    html! { div.live data-live=(address) { (content) } }
}

/// The element that loads the script of live parts.
pub(crate) fn live_updates() -> Markup {
    html! { script type="module" src="/live.js" {} }
}

/// The updates of a part that the functions of this process change.
pub(crate) fn flow_updates<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    part: fn(&Console<S>, &Flow) -> Markup,
) -> Response {
    let Some(flow) = console.flow.clone() else {
        return failed(StatusCode::NOT_FOUND, "No functions run here.").into_response();
    };
    updates(flow.watch(), move || part(&console, &flow))
}

/// The part after each change: an event's data is JSON text.
pub(crate) fn updates(changes: watch::Receiver<u64>, part: impl Fn() -> Markup + Send + Sync + 'static) -> Response {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_how_far_it_is() {
        let at = |s: u64| far(1_000_000_000, 1_000_000_000 + s * 1_000);
        assert_eq!(
            [0, 59, 60, 7_199, 172_799, 172_800].map(at),
            ["0 s ago", "59 s ago", "1 min ago", "1 h ago", "47 h ago", "2 days ago"]
        );
        assert_eq!(far(1_000_000_000, 0), "in 11 days");
    }

    #[test]
    fn an_address_holds_any_key() {
        let key = Key::new("USER#å&b=c", "A+B %/?");
        let address = of_item(&key);
        assert_eq!(address, "/item?pk=USER%23%C3%A5%26b%3Dc&sk=A%2BB+%25%2F%3F");
        let read: Vec<(String, String)> = serde_urlencoded::from_str(address.split_once('?').unwrap().1).unwrap();
        assert_eq!(read, [("pk".to_owned(), key.pk), ("sk".to_owned(), key.sk)]);
    }
}
