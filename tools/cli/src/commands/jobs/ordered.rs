//! Carries out an operator's order for jobs, and reports the outcome.

use std::sync::Arc;

use engine::{
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    job::{Job, Task},
    jobs::{JobOrder, Obeyed, ground::sweep::jobs},
};
use operate::objects::word;
use serde_json::{Value, json};
use store::dynamo::DynamoStore;

use super::{NO_JOB, chosen, so_far};
use crate::{
    args::Jobs,
    exit::{Completion, print, report_unknown},
    words::print_json,
};

/// Time limit for one order, in milliseconds: one call, or a few if the job moves meanwhile.
const ORDER_MS_MAX: u64 = 30_000;

/// A job, and the outcome of the order.
struct OrderResult {
    job: Job,
    outcome: OrderOutcome,
}

enum OrderOutcome {
    Obeyed(Obeyed),
    /// The database did not respond. The order may have been carried out, and can safely be repeated.
    Failed {
        why: String,
    },
    /// An earlier order failed.
    NotTried,
}

/// The orders of one command.
struct Orders<'a> {
    engine: &'a Engine<Arc<DynamoStore>>,
    order: JobOrder,
    is_json: bool,
    results: Vec<OrderResult>,
}

/// Carries out the order for each job in turn.
pub(super) async fn run(engine: &Engine<Arc<DynamoStore>>, order: JobOrder, args: &Jobs) -> anyhow::Result<Completion> {
    let jobs = jobs(engine.store(), &engine.schema().layout).await?;
    let (chosen, unknown) = chosen(&jobs, &args.ids);
    let mut orders = Orders { engine, order, is_json: args.json, results: Vec::new() };
    for job in chosen {
        orders.one(job).await;
    }
    if args.json {
        let jobs: Vec<Value> = orders.results.iter().map(|result| result.as_object(order, engine)).collect();
        print_json(json!({ "jobs": jobs, "unknown": unknown }));
    }
    report_unknown(&unknown, NO_JOB, "jobs");
    Ok(match (orders.has_failed(), unknown.is_empty()) {
        (true, _) => Completion::Unfinished,
        (false, false) => Completion::UnknownId,
        (false, true) => Completion::InStep,
    })
}

impl Orders<'_> {
    async fn one(&mut self, job: &Job) {
        let outcome = if self.has_failed() {
            OrderOutcome::NotTried
        } else {
            match self.engine.order(job, self.order, SystemClock.now_ms().saturating_add(ORDER_MS_MAX)).await {
                Ok(obeyed) => OrderOutcome::Obeyed(obeyed),
                Err(error) => OrderOutcome::Failed { why: describe(&error) },
            }
        };
        self.report(OrderResult { job: job.clone(), outcome });
    }

    fn report(&mut self, result: OrderResult) {
        if !self.is_json {
            print(&result.as_text(self.order, self.engine));
        }
        self.results.push(result);
    }

    fn has_failed(&self) -> bool {
        self.results.iter().any(|result| matches!(result.outcome, OrderOutcome::Failed { .. }))
    }
}

impl OrderResult {
    /// The outcome's name, which is stable, and more about it.
    fn outcome(&self, order: JobOrder, engine: &Engine<Arc<DynamoStore>>) -> (&'static str, Option<String>) {
        match (&self.outcome, order) {
            (OrderOutcome::Obeyed(Obeyed::Done(_)), JobOrder::Pause) => ("paused", None),
            (OrderOutcome::Obeyed(Obeyed::Done(_)), JobOrder::Resume) => ("resumed", None),
            (OrderOutcome::Obeyed(Obeyed::Done(job)), JobOrder::Cancel) => ("cancelled", Some(undone(job, engine))),
            (OrderOutcome::Obeyed(Obeyed::Already), JobOrder::Resume) => ("was not paused", None),
            (OrderOutcome::Obeyed(Obeyed::Already), _) => ("was paused already", None),
            (OrderOutcome::Obeyed(Obeyed::Gone), _) => ("had ended", None),
            (OrderOutcome::Failed { why }, _) => ("failed", Some(why.clone())),
            (OrderOutcome::NotTried, _) => ("not tried", None),
        }
    }

    fn as_text(&self, order: JobOrder, engine: &Engine<Arc<DynamoStore>>) -> String {
        let (name, why) = self.outcome(order, engine);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        format!("{}  {name}{why}", self.job.key.sk)
    }

    fn as_object(&self, order: JobOrder, engine: &Engine<Arc<DynamoStore>>) -> Value {
        let (name, why) = self.outcome(order, engine);
        json!({ "id": self.job.key.sk, "outcome": word(name), "why": why })
    }
}

/// The work that stays undone if this job is cancelled.
fn undone(job: &Job, engine: &Engine<Arc<DynamoStore>>) -> String {
    let (so_far, origin) = (so_far(job), job.origin());
    match &job.task {
        Task::Cascade { .. } => {
            format!("{so_far}; the rest of what belonged to {origin} stays, and nothing deletes it later")
        }
        Task::FanOut(_) => {
            let rest = "items that it had not reached stay as they are, until `ripple verify` finds them";
            let again = if engine.is_searched_again(job) {
                "; it searches an index, so the sweep starts it once more within half an hour: pause that one to prevent it"
            } else {
                ""
            };
            format!("{so_far}; {rest} or {origin} changes again{again}")
        }
    }
}
