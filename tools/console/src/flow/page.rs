//! The page of the flow.

use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use store::Store;

use super::{
    Flow,
    selection::{OUTCOMES, Selection},
    shown,
};
use crate::{
    Console,
    frame::{self, ConsolePage},
    json,
};

/// Why there is no flow.
pub(crate) const NO_FLOW: &str = "No functions run here. The flow is shown by the console of `ripple dev` where it runs the \
                                  functions itself: open the address that it prints.";

/// Changes that the page shows when it is loaded.
pub(crate) const SHOWN: usize = 200;

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(selection): Query<Selection>,
) -> ConsolePage {
    match &console.flow {
        Some(flow) => frame::page("Flow", &whole(flow, &console, &selection)),
        None => frame::page("Flow", &html! { p.empty { (NO_FLOW) } }),
    }
}

fn whole<S: Store>(flow: &Flow, console: &Console<S>, selection: &Selection) -> Markup {
    let (entries, update) = flow.entries(|entry| selection.holds(entry), SHOWN);
    let entities = console.opened.schema.entities().map(|entity| entity.name.clone());
    let derivations = console.opened.catalogue.derivations().map(|derivation| derivation.label().to_owned());
    html! {
        p { "Each change of an item as the functions get it, the newest first, and what they write for it." }
        form action="/flow" method="get" aria-label="Which changes" {
            label { "Entity " (choice("entity", &selection.entity, entities.map(|name| (name.clone(), name)))) }
            label { "Derivation " (choice("derivation", &selection.derivation, derivations.map(|name| (name.clone(), name)))) }
            label { "Key holds " input name="key" value=(selection.key); }
            label { "Outcome " (choice("outcome", &selection.outcome, OUTCOMES.into_iter().map(|(value, name)| (value.to_owned(), name.to_owned())))) }
            label { input type="checkbox" name="echoes" value="true" checked[selection.echoes]; " also records that ask for nothing" }
            button { "Show" }
            button #pause type="button" aria-pressed="false" hidden { "Pause" }
        }
        p.empty #none hidden[!entries.is_empty()] {
            "Nothing yet: write an item into the table and it appears here. "
            "What the functions handled before they were started is not shown."
        }
        div #flow data-events=(format!("{}&after={update}", selection.address("/flow/events"))) {
            @for entry in &entries { (shown::change(entry)) }
        }
        (json::link(&selection.address("/flow.json")))
        script type="module" src="/flow.js" {}
    }
}

fn choice(name: &str, chosen: &str, values: impl Iterator<Item = (String, String)>) -> Markup {
    html! {
        select name=(name) {
            option value="" { "any" }
            @for (value, said) in values { option value=(value) selected[value == chosen] { (said) } }
        }
    }
}
