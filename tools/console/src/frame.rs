//! What all pages have: their head, the way to the other pages, and the form that looks an item up.

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse},
};
use maud::{DOCTYPE, Markup, html};

/// A page.
pub(crate) type ConsolePage = (StatusCode, Html<String>);

const STYLE: &str = include_str!("style.css");
const FLOW_SCRIPT: &str = include_str!("flow.js");
const LIVE_SCRIPT: &str = include_str!("live.js");

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The pages that have a list of their own: address, name, and how their titles begin.
const PAGES: [(&str, &str, &str); 9] = [
    ("/", "Overview", "The table "),
    ("/flow", "Flow", "Flow"),
    ("/step", "Step mode", "Step mode"),
    ("/collection", "Query", "Query"),
    ("/parked", "Parked", "Parked"),
    ("/jobs", "Jobs", "Jobs"),
    ("/verify", "Verify", "Verify"),
    ("/cost", "Cost", "Cost"),
    ("/design", "Design", "The table's design"),
];

/// A page with a title.
pub(crate) fn page(title: &str, content: &Markup) -> ConsolePage {
    framed(StatusCode::OK, title, content)
}

/// A page that says what is wrong.
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
                    nav aria-label="Pages" {
                        strong { "Ripple" }
                        @for (address, name, begins) in PAGES {
                            a href=(address) aria-current=[title.starts_with(begins).then_some("page")] { (name) }
                        }
                    }
                    form action="/item" method="get" role="search" aria-label="Item" {
                        label { "Partition key " input name="pk" required; }
                        label { "Sort key " input name="sk" required; }
                        button { "Explain" }
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

/// The script of parts that come anew.
pub(crate) async fn live_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JAVASCRIPT)], LIVE_SCRIPT)
}
