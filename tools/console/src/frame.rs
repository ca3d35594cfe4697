//! What all pages have: their head, the way to the other pages, and the form that looks an item up.

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse},
};
use maud::{DOCTYPE, Markup, html};

/// A page.
pub(crate) type ConsolePage = (StatusCode, Html<String>);

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("flow.js");

/// The pages that have a list of their own.
const PAGES: [(&str, &str); 5] =
    [("/", "Overview"), ("/flow", "Flow"), ("/parked", "Parked"), ("/jobs", "Jobs"), ("/verify", "Verify")];

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
                        @for (address, name) in PAGES { a href=(address) { (name) } }
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
pub(crate) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)
}
