//! What is asked of jobs, and what came of it.

use std::sync::Arc;

use engine::{
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    jobs::job::{Job, Task},
    jobs::{Obeyed, Order},
};
use serde_json::{Value, json};
use store::dynamo::DynamoStore;

use super::{chosen, no_job, so_far};
use crate::{
    args::jobs::Jobs,
    exit::{Ended, print},
};

/// How long one order may take, in milliseconds: a call, or a few where the job moves meanwhile.
const ORDER_MS_MAX: u64 = 30_000;

/// A job, and how what was asked of it ended.
struct Told {
    job: Job,
    outcome: Outcome,
}

enum Outcome {
    Obeyed(Obeyed),
    /// The database gave no answer: it is done or not, and may be asked again.
    Failed {
        why: String,
    },
    /// One before it failed.
    NotTried,
}

/// The orders of one command.
struct Orders<'a> {
    engine: &'a Engine<Arc<DynamoStore>>,
    order: Order,
    is_json: bool,
    told: Vec<Told>,
}

/// Does what is asked, of one job after the other.
pub(super) async fn run(engine: &Engine<Arc<DynamoStore>>, order: Order, args: &Jobs) -> anyhow::Result<Ended> {
    let jobs = engine.jobs().await?;
    let (chosen, unknown) = chosen(&jobs, &args.ids);
    let mut orders = Orders { engine, order, is_json: args.json, told: Vec::new() };
    for job in chosen {
        orders.one(job).await;
    }
    if args.json {
        let told: Vec<Value> = orders.told.iter().map(|told| told.as_object(order, engine)).collect();
        print(&json!({ "jobs": told, "unknown": unknown }).to_string());
    } else {
        for id in &unknown {
            print(&no_job(id));
        }
    }
    Ok(if unknown.is_empty() && !orders.has_failed() { Ended::InStep } else { Ended::Unfinished })
}

impl Orders<'_> {
    async fn one(&mut self, job: &Job) {
        let outcome = if self.has_failed() {
            Outcome::NotTried
        } else {
            match self.engine.order(job, self.order, SystemClock.now_ms() + ORDER_MS_MAX).await {
                Ok(obeyed) => Outcome::Obeyed(obeyed),
                Err(error) => Outcome::Failed { why: describe(&error) },
            }
        };
        self.tell(Told { job: job.clone(), outcome });
    }

    fn tell(&mut self, told: Told) {
        if !self.is_json {
            print(&told.as_text(self.order, self.engine));
        }
        self.told.push(told);
    }

    fn has_failed(&self) -> bool {
        self.told.iter().any(|told| matches!(told.outcome, Outcome::Failed { .. }))
    }
}

impl Told {
    /// Its name, which is stable, and what is to be known of it.
    fn outcome(&self, order: Order, engine: &Engine<Arc<DynamoStore>>) -> (&'static str, Option<String>) {
        match (&self.outcome, order) {
            (Outcome::Obeyed(Obeyed::Done(_)), Order::Pause) => ("paused", None),
            (Outcome::Obeyed(Obeyed::Done(_)), Order::Resume) => ("resumed", None),
            (Outcome::Obeyed(Obeyed::Done(job)), Order::Cancel) => ("cancelled", Some(undone(job, engine))),
            (Outcome::Obeyed(Obeyed::Already), Order::Resume) => ("was not paused", None),
            (Outcome::Obeyed(Obeyed::Already), _) => ("was paused already", None),
            (Outcome::Obeyed(Obeyed::Gone), _) => ("had ended", None),
            (Outcome::Failed { why }, _) => ("failed", Some(why.clone())),
            (Outcome::NotTried, _) => ("not tried", None),
        }
    }

    fn as_text(&self, order: Order, engine: &Engine<Arc<DynamoStore>>) -> String {
        let (name, why) = self.outcome(order, engine);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        format!("{}  {name}{why}", self.job.key.sk)
    }

    fn as_object(&self, order: Order, engine: &Engine<Arc<DynamoStore>>) -> Value {
        let (name, why) = self.outcome(order, engine);
        json!({ "id": self.job.key.sk, "outcome": name, "why": why })
    }
}

/// What stays undone when a job is cancelled.
fn undone(job: &Job, engine: &Engine<Arc<DynamoStore>>) -> String {
    let (so_far, origin) = (so_far(job), job.origin());
    match &job.task {
        Task::Cascade { .. } => format!("{so_far}; what else hung on {origin} stays, and nothing deletes it later"),
        Task::FanOut(_) => {
            let rest = "what it had not come to stays as it was, until `ripple verify` finds it";
            let again = if engine.is_searched_again(job) {
                "; it goes by an index, so the sweep begins it once more when the index has had time"
            } else {
                ""
            };
            format!("{so_far}; {rest} or {origin} changes again{again}")
        }
    }
}
