//! The page of jobs.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use engine::jobs::{
    ground::sweep::jobs as all_jobs,
    job::{Job, Task},
};
use maud::{Markup, html};
use operate::words::time;
use store::{Store, StoreError};

use crate::{
    Console,
    frame::{self, ConsolePage},
    link,
};

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    match all_jobs(&console.opened.store, &console.opened.schema.layout).await {
        Ok(jobs) => frame::page("Jobs", &whole(&console, &jobs)),
        Err(error) => failed(&error),
    }
}

fn whole<S: Store>(console: &Console<S>, jobs: &[Job]) -> Markup {
    html! {
        @if jobs.is_empty() {
            p.empty { "No job: a change that concerns more than 100 items, or a removal with a cascade, begins one." }
        } @else {
            div.wide tabindex="0" { table {
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
