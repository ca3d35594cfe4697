//! Counts about items that do not exist, as a verification found them.

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
