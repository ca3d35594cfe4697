//! The pages of what is parked, and of jobs.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use engine::{
    jobs::{
        ground::sweep::jobs as all_jobs,
        job::{Job, Task},
    },
    park::{
        lists::{ToRecount, to_recount},
        redrive::{ParkedChange, parked as all_parked},
    },
    record::decode,
};
use maud::{Markup, html};
use operate::{tables::Deployment, words::time};
use store::{Store, StoreError};

use crate::{
    Console,
    flow::{entry::FlowEntry, shown},
    frame::{self, ConsolePage},
    link,
};

pub(crate) async fn parked<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let store = &console.opened.store;
    match (all_parked(store).await, to_recount(store).await) {
        (Ok(parked), Ok(recount)) => frame::page("Parked changes", &parked_page(&console, &parked, &recount)),
        (Err(error), _) | (_, Err(error)) => failed(&error),
    }
}

fn parked_page<S: Store>(console: &Console<S>, parked: &[ParkedChange], recount: &[ToRecount]) -> Markup {
    let Deployment { schema, catalogue, .. } = &console.opened;
    html! {
        @if parked.is_empty() { p.empty { "Nothing is parked: each change was applied." } } @else {
            p { "These changes cannot be applied as they are. Correct the cause, then redrive them." }
            (console.button("/parked/redrive", &[], "Redrive all"))
            @for change in parked {
                div.item {
                    h3 { code { (change.id) } }
                    @if let Some(decoded) = change.record().ok().and_then(|record| decode(&schema.layout, &record).ok()) {
                        @let entry = FlowEntry::new(schema, catalogue, &decoded, change.parked_at_ms);
                        p { (entry.entity) " " (link::key(&decoded.key)) " " (shown::action(entry.action)) }
                        p.values { (shown::changed(&entry)) }
                        @if !entry.asked.is_empty() { ul { @for (derivation, asked) in &entry.asked { li { b { (derivation) } " " (asked) } } } }
                    }
                    p { (change.cause) }
                    p { (change.family.to_string()) ", parked at " (time(change.parked_at_ms)) }
                    (console.button("/parked/redrive", &[("id", &change.id)], "Redrive"))
                }
            }
        }
        @if !recount.is_empty() {
            h2 { "Counts that need a recount" }
            p { "A change came too late to be counted safely. " code { "ripple repair" } " recounts them." }
            ul {
                @for listed in recount {
                    li {
                        @match &listed.target {
                            Some(target) => { (target.derivation) " of " (link::key(&target.item)) },
                            None => { "any count, since the change cannot be read" },
                        }
                        ": " (listed.why)
                    }
                }
            }
        }
    }
}

pub(crate) async fn jobs<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    match all_jobs(&console.opened.store, &console.opened.schema.layout).await {
        Ok(jobs) => frame::page("Jobs", &jobs_page(&console, &jobs)),
        Err(error) => failed(&error),
    }
}

fn jobs_page<S: Store>(console: &Console<S>, jobs: &[Job]) -> Markup {
    html! {
        @if jobs.is_empty() {
            p.empty { "No job: a change that concerns more than 100 items, or a removal with a cascade, begins one." }
        } @else {
            div.wide { table {
                thead { tr { th { "job" } th { "what it does" } th { "of" } th { "state" } th { "items so far" } th { "last moved" } th {} } }
                tbody {
                    @for job in jobs {
                        tr {
                            th scope="row" { code { (job.key.sk) } }
                            td { (job.derivation) @if matches!(job.task, Task::Cascade { .. }) { ", a cascade" } }
                            td { (link::key(job.origin())) }
                            td { (state(job)) }
                            td { (job.n_touched) }
                            td { (time(job.moved_at_ms)) }
                            td { (console.job_buttons(&job.key.sk, job.is_paused)) }
                        }
                    }
                }
            } }
        }
    }
}

fn state(job: &Job) -> &'static str {
    match (job.is_paused, job.is_running) {
        (true, _) => "paused",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

fn failed(error: &StoreError) -> ConsolePage {
    frame::failed(StatusCode::BAD_GATEWAY, &engine::backoff::describe(error))
}
