//! The pages of parked changes: each change with both of its images, the expected result of a redrive, and the redrive.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use derive::{
    catalogue::Catalogue,
    change::Change,
    declaration::Rollup,
    derivation::Derivation,
    effect::{Add, Effect},
    kind::Shape,
    plan::plan,
    position::DerivationAt,
};
use engine::{
    account::Account,
    backoff::describe,
    clock::{Clock as _, SystemClock},
    inspect::{ListedUnreadable, ToRecount, to_recount, unreadable},
    look::listing::ALL_DERIVATIONS,
    park::{ParkedChange, parked},
    reading::StoredItems,
    record::decode,
    redrive::Redriven,
};
use keys::{
    counter::{CounterKey, REVISION, SUM, VALUE},
    item::Item,
    key::Key,
    value::type_of,
};
use maud::{Markup, html};
use operate::{
    objects::parked_list,
    parked::{ChangeOutcome, redrive},
    words::{counted, written},
};
use serde::Deserialize;
use store::{Store, observing::Observing};

use crate::{
    Console, READ_MS_MAX,
    flow::{
        entry::{FlowEntry, FlowWrite},
        shown,
    },
    frame::{self, ConsolePage},
    item::text,
    json,
};

/// Limit on the counters that the page reads.
const COUNTERS_MAX: usize = 500;

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
    match console.stopped().await {
        Ok(stopped) => frame::page("Parked changes", &whole(&console, &stopped)),
        Err(why) => frame::failed(StatusCode::BAD_GATEWAY, &why),
    }
}

/// What waits for an operator.
struct Stopped {
    parked: Vec<ParkedChange>,
    /// The counters and buckets that parked changes add to.
    counters: StoredItems,
    recount: Vec<ToRecount>,
    unreadable: Vec<ListedUnreadable>,
}

/// The content of the page, as `ripple parked --json` prints it.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    match console.stopped().await {
        Ok(Stopped { parked, recount, unreadable, .. }) => {
            json::object(parked_list(&parked, &recount, unreadable.len(), &console.opened.schema.layout))
        }
        Err(why) => json::failed(StatusCode::BAD_GATEWAY, &why),
    }
}

impl<S: Store> Console<S> {
    /// Everything that waits for an operator; or why it cannot be read.
    async fn stopped(&self) -> Result<Stopped, String> {
        let store = &self.opened.store;
        let failed = |error| describe(&error);
        let parked = parked(store).await.map_err(failed)?;
        let (mut recount, mut unreadable) =
            (to_recount(store).await.map_err(failed)?, unreadable(store).await.map_err(failed)?);
        for listed in &mut recount {
            listed.relabel(&self.opened.catalogue);
        }
        for listed in &mut unreadable {
            self.opened.catalogue.relabel(&mut listed.derivation);
        }
        let counters: BTreeSet<Key> =
            parked.iter().flat_map(|change| self.added_to(change)).take(COUNTERS_MAX).collect();
        // Without them the page still has each change and its cause.
        let counters = self.engine.stored(counters.into_iter().collect(), self.patience()).await.unwrap_or_default();
        Ok(Stopped { parked, counters, recount, unreadable })
    }

    /// The counters and buckets that a parked change adds to.
    fn added_to(&self, change: &ParkedChange) -> Vec<Key> {
        if let Some(counter) = &change.counter {
            return vec![counter.clone()];
        }
        let key = |(at, effect): (DerivationAt, Effect)| match effect {
            Effect::Add(Add { target, .. }) => {
                let derivation = self.opened.catalogue.name(at).to_owned();
                CounterKey { target, derivation, satellite: 0 }.key().ok()
            }
            Effect::Measure(measure) => Some(measure.bucket),
            _ => None,
        };
        self.planned(change).into_iter().filter_map(key).collect()
    }

    /// The effects of a change for its family.
    fn planned(&self, change: &ParkedChange) -> Vec<(DerivationAt, Effect)> {
        let (schema, catalogue) = (&self.opened.schema, &self.opened.catalogue);
        let decoded = change.record().ok().and_then(|record| decode(&schema.layout, &record).ok());
        decoded.map(|decoded| plan(schema, catalogue, &[change.family], &decoded).effects).unwrap_or_default()
    }
}

/// True for an attribute that a count or a roll-up adds to.
fn is_added_to(catalogue: &Catalogue, name: &str) -> bool {
    let is_of = |it: &Derivation| match it.kind.shape() {
        Shape::Rollup(Rollup { form, .. }) => {
            [&form.count, &form.sum, &form.min, &form.max].iter().any(|it| *it == name)
        }
        _ => false,
    };
    [VALUE, SUM, REVISION].contains(&name) || catalogue.derivations().any(is_of)
}

/// Entries of a list that the page shows. Bounds the page.
const SHOWN_MAX: usize = 100;

fn whole<S: Store + 'static>(
    console: &Console<S>,
    Stopped { parked, counters, recount, unreadable }: &Stopped,
) -> Markup {
    html! {
        @if parked.is_empty() { p.empty { "Nothing is parked." } } @else {
            p { "These changes cannot be applied as they are. Correct the cause, then redrive them." }
            @if parked.len() > 1 { p { a.button href="/parked/try" { "What a redrive of all would do" } } }
            @for change in parked.iter().take(SHOWN_MAX) { (one(console, change, counters)) }
            (more(parked.len()))
        }
        @if !unreadable.is_empty() {
            h2 id="unreadable" { (counted(unreadable.len(), "unreadable item")) }
            p { "The derivation skips the item until a client corrects or deletes it." }
            div.wide tabindex="0" { table {
                thead { tr { th { "item" } th { "what is wrong" } th { "derivation" } } }
                tbody { @for it in unreadable.iter().take(SHOWN_MAX) { tr {
                    td { (frame::key(&it.item)) } td { b { (it.why.attribute) } " " (it.why.why) } td { @if it.derivation == ALL_DERIVATIONS { "every derivation" } @else { (it.derivation) } }
                } } }
            } }
            (more(unreadable.len()))
        }
        @if !recount.is_empty() {
            h2 { "Counts that need a recount" }
            p { "A change was not counted, for the reason below. " code { "ripple repair --apply" } " recounts them, and " code { "ripple verify" } " takes them off this list." }
            ul {
                @for listed in recount.iter().take(SHOWN_MAX) {
                    li {
                        @match &listed.target {
                            Some(target) => { (target.derivation) " of " (frame::key(&target.item)) },
                            None => { "any count, since the change cannot be read" },
                        }
                        ": " (listed.why)
                    }
                }
            }
            (more(recount.len()))
        }
        (json::link("/parked.json"))
    }
}

/// How many entries of a list the page leaves out, if any.
fn more(n: usize) -> Markup {
    let n_more = n.saturating_sub(SHOWN_MAX);
    html! { @if n_more > 0 { p { "… and " (n_more) " more, which " code { "ripple parked" } " lists." } } }
}

fn one<S: Store + 'static>(console: &Console<S>, change: &ParkedChange, counters: &StoredItems) -> Markup {
    let (schema, catalogue) = (&console.opened.schema, &console.opened.catalogue);
    let decoded = change.record().ok().and_then(|record| decode(&schema.layout, &record).ok());
    let entry = decoded.as_ref().map(|decoded| FlowEntry::new(schema, catalogue, decoded, change.parked_at_ms));
    let items = console.added_to(change).into_iter().filter_map(|key| Some((counters.get(&key)?.as_ref()?, key)));
    let attributes = items.flat_map(|(item, key)| item.iter().map(move |(name, value)| (key.clone(), name, value)));
    let wrong = attributes.filter(|(_, name, value)| type_of(value) != "N" && is_added_to(catalogue, name));
    html! {
        section aria-label=(change.id) {
            h2 {
                @match &entry {
                    Some(entry) => { (entry.entity) " " (frame::key(&entry.item)) " " (shown::action(entry.action)) },
                    None => "a change that cannot be read",
                }
            }
            @for (key, name, value) in wrong {
                p.differs { (name) " of " (frame::key(&key)) " is " code { (text(value)) } " of type " (type_of(value)) ". It must be a number (N)." }
            }
            p { (change.cause) }
            (console.asked(change))
            @if let Some(decoded) = &decoded { (images(decoded)) }
            p { small { "Event " code { (change.id) } ", " (change.family.to_string()) ", parked at " (frame::time(change.parked_at_ms)) } }
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
        let layout = self.opened.schema.layout.clone();
        let store = Arc::new(Observing::new(Arc::clone(&self.opened.store), layout));
        match self.opened.engine_over(store, 0).redrive(change, SystemClock.now_ms().saturating_add(READ_MS_MAX)).await
        {
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

    /// The effects of a change for its family, in words.
    fn asked(&self, change: &ParkedChange) -> Markup {
        let label = |at| self.opened.catalogue.label(at);
        html! { ul { @for (at, effect) in self.planned(change) { li { b { (label(at)) } " " (effect) } } } }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_how_many_entries_it_leaves_out() {
        assert_eq!(more(SHOWN_MAX).into_string(), "");
        assert!(more(SHOWN_MAX + 2).into_string().contains("and 2 more"));
    }
}
