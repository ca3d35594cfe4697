//! Counts about items that do not exist, and conditions that compare two types, as a verification found them.

use keys::key::Key;
use maud::{Markup, html};
use serde::Deserialize;

use crate::link;

/// What the page reads of the counts about items that do not exist.
#[derive(Deserialize)]
pub(super) struct AboutNothing {
    derivation: String,
    counts: usize,
    examples: Vec<ExampleKey>,
}

#[derive(Deserialize)]
struct ExampleKey {
    pk: String,
    sk: String,
}

/// What the page reads of a condition that compares values with those of another type.
#[derive(Deserialize)]
pub(super) struct ComparedTypes {
    derivation: String,
    items: usize,
    example: ExampleKey,
    why: String,
}

pub(super) fn compared(all: &[ComparedTypes]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Conditions that compare two types" }
            p { "Values of two types are never equal: the condition or the writer of the items is probably wrong." }
            ul { @for ComparedTypes { derivation, items, example: ExampleKey { pk, sk }, why } in all {
                li { (derivation) ": " (items) ", such as " (link::key(&Key::new(pk, sk))) ": " (why) }
            } }
        }
    }
}

pub(super) fn listed(all: &[AboutNothing]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Counts about items that do not exist" }
            p { "The items are deleted, or the link gives other keys." }
            ul { @for it in all {
                li {
                    (it.derivation) ": " (it.counts) ", such as"
                    @for ExampleKey { pk, sk } in &it.examples { " " (link::key(&Key::new(pk, sk))) }
                }
            } }
        }
    }
}
