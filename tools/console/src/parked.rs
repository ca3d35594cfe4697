//! The pages of parked changes: each change with both of its images, the expected result of a redrive, and the redrive.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use derive::{change::Change, family::Family, plan::plan};
use engine::{
    account::Account,
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    inspect::{ToRecount, n_unreadable, to_recount},
    park::{ParkedChange, parked},
    record::decode,
    redrive::Redriven,
    registry::RegistryWatch,
};
use keys::item::Item;
use maud::{Markup, html};
use operate::{
    objects::parked_list,
    redriving::{ChangeOutcome, redrive},
    words::time,
    written::written,
};
use serde::Deserialize;
use store::{Store, observing::Observing};

use crate::{
    Console, READ_MS_MAX,
    explained::text,
    flow::{
        entry::{FlowEntry, FlowWrite},
        shown,
    },
    frame::{self, ConsolePage},
    json,
};

/// Which parked change; all if `None`.
#[derive(Debug, Deserialize)]
pub(crate) struct WhichParked {
    id: Option<String>,
}

impl WhichParked {
    fn is(&self, change: &ParkedChange) -> bool {
        self.id.as_ref().is_none_or(|id| *id == change.id)
    }
}

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let store = &console.opened.store;
    match (parked(store).await, to_recount(store).await) {
        (Ok(parked), Ok(mut recount)) => {
            for target in &mut recount {
                target.relabel(&console.opened.catalogue);
            }
            frame::page("Parked changes", &whole(&console, &parked, &recount))
        }
        (Err(error), _) | (_, Err(error)) => frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

/// The content of the page, as `ripple parked --json` prints it.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let (store, layout) = (&console.opened.store, &console.opened.schema.layout);
    match (parked(store).await, to_recount(store).await, n_unreadable(store).await) {
        (Ok(parked), Ok(mut recount), Ok(n_unreadable)) => {
            for target in &mut recount {
                target.relabel(&console.opened.catalogue);
            }
            json::object(parked_list(&parked, &recount, n_unreadable, layout))
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            json::failed(StatusCode::BAD_GATEWAY, &describe(&error))
        }
    }
}

fn whole<S: Store>(console: &Console<S>, parked: &[ParkedChange], recount: &[ToRecount]) -> Markup {
    html! {
        @if parked.is_empty() { p.empty { "Nothing is parked: each change was applied." } } @else {
            p { "These changes cannot be applied as they are. Correct the cause, then redrive them." }
            @if parked.len() > 1 { p { a.button href="/parked/try" { "What a redrive of all would do" } } }
            @for change in parked { (one(console, change)) }
        }
        @if !recount.is_empty() {
            h2 { "Counts that need a recount" }
            p { "A change came too late to be counted safely. " code { "ripple repair" } " recounts them." }
            ul {
                @for listed in recount {
                    li {
                        @match &listed.target {
                            Some(target) => { (target.derivation) " of " (frame::key(&target.item)) },
                            None => { "any count, since the change cannot be read" },
                        }
                        ": " (listed.why)
                    }
                }
            }
        }
        (json::link("/parked.json"))
    }
}

fn one<S: Store>(console: &Console<S>, change: &ParkedChange) -> Markup {
    let (schema, catalogue) = (&console.opened.schema, &console.opened.catalogue);
    let decoded = change.record().ok().and_then(|record| decode(&schema.layout, &record).ok());
    html! {
        section aria-label=(change.id) {
            @if let Some(decoded) = &decoded {
                @let entry = FlowEntry::new(schema, catalogue, decoded, change.parked_at_ms);
                h2 { (entry.entity) " " (frame::key(&decoded.key)) " " (shown::action(entry.action)) }
                p.differs { (change.cause) }
                @if !entry.asked.is_empty() { ul { @for (derivation, asked) in &entry.asked { li { b { (derivation) } " " (asked) } } } }
                (images(decoded))
            } @else {
                h2 { "a change that cannot be read" }
                p.differs { (change.cause) }
            }
            p { small { "Event " code { (change.id) } ", " (change.family.to_string()) ", parked at " (time(change.parked_at_ms)) } }
            p { a.button href=(frame::of_try(&change.id)) { "What a redrive would do" } }
        }
    }
}

/// Both images side by side; differences are marked.
fn images(change: &Change) -> Markup {
    let (old, new) = (change.old_image(), change.new_image());
    let mut names: Vec<&str> = old.iter().chain(&new).flat_map(|item| item.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |item: Option<&Item>, name: &str| item.and_then(|item| item.get(name)).map(text);
    let has_both = old.is_some() && new.is_some();
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "attribute" } th { "before" } th { "after" } } }
            tbody { @for name in names {
                @let (before, after) = (value(old, name), value(new, name));
                tr {
                    th scope="row" { (name) @if has_both && before != after { " " span.waits { "differs" } } }
                    td { @match &before { Some(before) => code { (before) }, None => "–" } }
                    td { @match &after { Some(after) => code { (after) }, None => "–" } }
                }
            } }
        } }
    }
}

/// The expected result of a redrive. Nothing is written.
pub(crate) async fn tried<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(which): Query<WhichParked>,
) -> ConsolePage {
    let parked = match parked(&console.opened.store).await {
        Ok(parked) => parked,
        Err(error) => return frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    };
    let mut tried = Vec::new();
    for change in parked.iter().filter(|change| which.is(change)) {
        tried.push((change, console.would(change).await));
    }
    let fields: Vec<(&str, &str)> = which.id.iter().map(|id| ("id", id.as_str())).collect();
    let content = html! {
        @if tried.is_empty() { p.empty { "It is not parked any more." } } @else {
            p { "Nothing was written: this is what a redrive would do now." }
            @for (change, would) in &tried {
                section aria-label=(change.id) {
                    h2 { code { (change.id) } ", " (change.family.to_string()) }
                    (would)
                }
            }
            (console.button("/parked/redrive", &fields, if which.id.is_some() { "Redrive" } else { "Redrive all" }))
        }
        p { a href="/parked" { "What is parked now" } }
    };
    frame::page("What a redrive would do", &content)
}

impl<S: Store + 'static> Console<S> {
    /// The expected result of a redrive of a change, in words.
    async fn would(&self, change: &ParkedChange) -> Markup {
        let (schema, catalogue) = (&self.opened.schema, &self.opened.catalogue);
        let store = Arc::new(Observing::new(Arc::clone(&self.opened.store), schema.layout.clone()));
        let families = vec![Family::Additive, Family::LevelTriggered];
        let engine = Engine::new(Arc::clone(schema), Arc::clone(catalogue), families, store, Arc::new(SystemClock));
        let engine = engine.watching(RegistryWatch::reading(0));
        match engine.redrive(change, SystemClock.now_ms().saturating_add(READ_MS_MAX)).await {
            Ok(Redriven::Applied(account)) => html! {
                p.right { "It would be applied." }
                (self.asked(change))
                (self.writes(&account))
            },
            Ok(Redriven::Still { cause }) => html! { p.differs { "It would stay parked: " (cause) } },
            Ok(Redriven::Gone) => html! { p { "It is not parked any more." } },
            Err(error) => html! { p.differs { "That cannot be said now: " (describe(&error)) } },
        }
    }

    /// The effects of a change for its family.
    fn asked(&self, change: &ParkedChange) -> Markup {
        let (schema, catalogue) = (&self.opened.schema, &self.opened.catalogue);
        let decoded = change.record().ok().and_then(|record| decode(&schema.layout, &record).ok());
        let planned = decoded.map(|decoded| plan(schema, catalogue, &[change.family], &decoded).effects);
        html! { ul { @for (at, effect) in planned.iter().flatten() { li { b { (catalogue.label(*at)) } " " (effect) } } } }
    }

    /// The writes that come with it.
    fn writes(&self, account: &Account) -> Markup {
        let (schema, catalogue) = (&self.opened.schema, &self.opened.catalogue);
        let write = |commit| FlowWrite::new(commit, written(schema, catalogue, commit), catalogue);
        html! { ul { @for commit in &account.commits { li { (shown::write(&write(commit))) } } } }
    }
}

/// Redrives one parked change, or all.
pub(crate) async fn redriven<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let which: WhichParked = match console.ordered(&form) {
        Ok(which) => which,
        Err(refused) => return refused.into_response(),
    };
    let failed = |why: &str| frame::failed(StatusCode::BAD_GATEWAY, why).into_response();
    let parked = match parked(&console.opened.store).await {
        Ok(parked) => parked,
        Err(error) => return failed(&describe(&error)),
    };
    let mut outcomes = Vec::new();
    for change in parked.iter().filter(|change| which.is(change)) {
        let has_failed = outcomes.iter().any(|(_, it)| matches!(it, ChangeOutcome::Failed { .. }));
        let outcome = if has_failed { Ok(ChangeOutcome::NotTried) } else { redrive(&console.engine, change).await };
        match outcome {
            Ok(outcome) => outcomes.push((change, outcome)),
            Err(error) => return failed(&describe(&error)),
        }
    }
    let page = html! {
        @if outcomes.is_empty() { p.empty { "It was not parked any more." } }
        ul { @for (change, outcome) in &outcomes {
            li { code { (change.id) } ", " (change.family.to_string()) ": " (outcome.to_string()) }
        } }
        p { a href="/parked" { "What is parked now" } }
    };
    frame::page("Redriven", &page).into_response()
}
