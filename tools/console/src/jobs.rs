//! The page of jobs, and the commands for them.

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
    job::{Job, Task},
    jobs::{JobOrder, sweep::jobs},
};
use maud::{Markup, html};
use operate::objects::{BlockedCascades, jobs_list, left_ms, pages, per_second, state_of};
use serde::Deserialize;
use store::Store;

use crate::{
    Console, READ_MS_MAX,
    frame::{self, ConsolePage},
    json,
};

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    match console.jobs().await {
        Ok((jobs, held)) => frame::page("Jobs", &whole(&console, &jobs, &held)),
        Err(why) => frame::failed(StatusCode::BAD_GATEWAY, &why),
    }
}

/// The content of the page, as `ripple jobs --json` prints it.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    match console.jobs().await {
        Ok((jobs, held)) => json::object(jobs_list(&jobs, &held, &console.opened.schema.layout)),
        Err(why) => json::failed(StatusCode::BAD_GATEWAY, &why),
    }
}

impl<S: Store> Console<S> {
    /// All jobs, and what blocks their cascades; or why they cannot be read.
    async fn jobs(&self) -> Result<(Vec<Job>, BlockedCascades), String> {
        let mut jobs = jobs(&self.opened.store, &self.opened.schema.layout).await.map_err(|error| describe(&error))?;
        let until_ms = SystemClock.now_ms().saturating_add(READ_MS_MAX);
        let held =
            self.engine.blocked_jobs(&jobs, self.opened.is_aws, until_ms).await.map_err(|error| describe(&error))?;
        for job in &mut jobs {
            self.opened.catalogue.relabel(&mut job.derivation);
        }
        Ok((jobs, held))
    }

    fn job_buttons(&self, id: &str, is_paused: bool) -> Markup {
        let is_offered = |order: &JobOrder| match order {
            JobOrder::Pause => !is_paused,
            JobOrder::Resume => is_paused,
            JobOrder::Cancel => true,
        };
        html! {
            @for (name, _) in JOB_ORDERS.iter().filter(|(_, order)| is_offered(order)) {
                (self.button("/jobs/order", &[("id", id), ("order", name)], name))
            }
        }
    }
}

/// A command for a job.
#[derive(Debug, Deserialize)]
struct OrderedJob {
    /// Sort key of the job.
    id: String,
    order: String,
}

/// Commands for jobs, each with the name that its button sends.
const JOB_ORDERS: [(&str, JobOrder); 3] =
    [("pause", JobOrder::Pause), ("resume", JobOrder::Resume), ("cancel", JobOrder::Cancel)];

/// Pauses, resumes or cancels a job.
pub(crate) async fn order<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let OrderedJob { id, order } = match console.ordered(&form) {
        Ok(ordered) => ordered,
        Err(refused) => return refused.into_response(),
    };
    let Some((_, order)) = JOB_ORDERS.iter().find(|(name, _)| *name == order) else {
        return frame::failed(StatusCode::BAD_REQUEST, "A job is paused, resumed or cancelled.").into_response();
    };
    let jobs = match jobs(&console.opened.store, &console.opened.schema.layout).await {
        Ok(jobs) => jobs,
        Err(error) => return failed_call(&describe(&error)),
    };
    // A job that has ended is no longer on the page, so no message is needed.
    for job in jobs.iter().filter(|job| job.key.sk == id) {
        if let Err(error) = console.engine.order(job, *order, SystemClock.now_ms().saturating_add(READ_MS_MAX)).await {
            return failed_call(&describe(&error));
        }
    }
    Redirect::to("/jobs").into_response()
}

fn failed_call(why: &str) -> Response {
    frame::failed(StatusCode::BAD_GATEWAY, why).into_response()
}

fn whole<S: Store>(console: &Console<S>, jobs: &[Job], held: &BlockedCascades) -> Markup {
    html! {
        @if jobs.is_empty() {
            p.empty { "No job: a change that concerns more than 100 items, or a removal with a cascade, begins one." }
        } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "job" } th { "what it does" } th { "of" } th { "state" } th { "items so far" } th { "left" } th { "last moved" } th {} } }
                tbody {
                    @for job in jobs {
                        tr {
                            th scope="row" { code { (job.key.sk) } }
                            td { (job.derivation) @if matches!(job.task, Task::Cascade { .. }) { ", a cascade" } }
                            td { (frame::key(job.origin())) }
                            td { (state_of(job)) @if let Some(blocker) = held.get(&job.key) { div { small { "waits for " (blocker) } } } }
                            td { (job.n_touched) @if let Some(n) = per_second(job) { div { small { (n) " a second" } } } }
                            td { (left(job)) }
                            td { (frame::time(job.moved_at_ms)) }
                            td { (console.job_buttons(&job.key.sk, job.is_paused)) }
                        }
                    }
                }
            } }
        }
        (json::link("/jobs.json"))
    }
}

/// The remaining work of a job, as far as it is known.
fn left(job: &Job) -> Markup {
    html! {
        @match (pages(job), left_ms(job)) {
            (Some((done, all)), left) => {
                (all.saturating_sub(done)) " of " (all) " listed pages"
                @if let Some(ms) = left { div { small { "about " (ms.div_ceil(1_000)) " s" } } }
            },
            (None, _) if !job.is_running => { "begins " (frame::time(job.due_at_ms)) },
            _ => { small { "it ends with the last item that it finds" } },
        }
    }
}
