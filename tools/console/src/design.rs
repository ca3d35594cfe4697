//! The page of the table's design: the access patterns, each with a form that runs it, and the whole design.

mod filled;
mod markdown;
pub(crate) mod pattern;
mod read;
pub(crate) mod writing;

use std::sync::Arc;

use ::design::{PatternRequests, document, review::review};
use axum::extract::State;
use maud::{Markup, html};
use store::Store;

use crate::{
    Console,
    frame::{self, ConsolePage},
};

/// The command that the page names as its source.
const WRITTEN_BY: &str = "ripple design";

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let design = &console.design;
    let text = document::page(design, WRITTEN_BY, &review(design));
    // The sentence for readers of the written file.
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("Written by ")).collect();
    frame::page(
        "The table's design",
        &html! {
            p { "This page is built from the values that build the keys and the requests, so it says what the code does." }
            (patterns(&console))
            (markdown::page(&text))
        },
    )
}

fn patterns<S: Store>(console: &Console<S>) -> Markup {
    let design = &console.design;
    html! {
        @if design.patterns.is_empty() {
            p.empty { "The manifest declares no reads, by " code { "[access.NAME]" } ". " a href="/collection" { "Query" } " the table or an index by a key." }
        } @else {
            details.fold {
                summary { h2 { "Run an access pattern that reads" } }
                p { "A read runs here on this table, and shows its items and its read units." }
                ul.patterns {
                    @for pattern in design.patterns.iter().filter(|pattern| !pattern.is_write() && !pattern.scans()) {
                        li { a href=(pattern::address(&pattern.name)) { (pattern.id) } " " (pattern.title) }
                    }
                }
            }
            @if design.patterns.iter().any(PatternRequests::is_write) {
                details.fold {
                    summary { h2 { "Run an access pattern that writes" } }
                    p { "You fill in the values; the page says the write units and leads to what followed." }
                    ul.patterns {
                        @for (at, pattern) in design.patterns.iter().enumerate().filter(|(_, pattern)| pattern.is_write()) {
                            li { a href=(writing::address(at)) { (pattern.id) } " " (pattern.title) }
                        }
                    }
                }
            }
        }
    }
}
