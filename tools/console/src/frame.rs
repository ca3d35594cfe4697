//! The parts that all pages share: the head, the navigation, and the form that looks an item up.

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse},
};
use engine::clock::{Clock as _, SystemClock};
use keys::key::Key;
use maud::{DOCTYPE, Markup, html};
use operate::words;

/// A page.
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

/// A page with a title.
pub(crate) fn page(title: &str, content: &Markup) -> ConsolePage {
    framed(StatusCode::OK, title, content)
}

/// A page with an error.
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

/// The style of all pages.
pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

/// The script of the flow.
pub(crate) async fn flow_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JAVASCRIPT)], FLOW_SCRIPT)
}

/// The script of live parts.
pub(crate) async fn live_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JAVASCRIPT)], LIVE_SCRIPT)
}

// ---- Addresses of pages ----

/// The page of an item.
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

/// The page of a change.
pub(crate) fn of_change(event: &str) -> String {
    address("/change", &[("event", event)])
}

/// The page with the expected result of a redrive.
pub(crate) fn of_try(event: &str) -> String {
    address("/parked/try", &[("id", event)])
}

/// The flow of an item.
pub(crate) fn of_item_flow(key: &Key) -> String {
    address("/flow", &[("key", &key.to_string())])
}

/// The flow of a derivation.
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
