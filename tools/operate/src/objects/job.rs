//! A job, as `ripple jobs` prints it and the console shows it.

use std::collections::BTreeMap;

use engine::jobs::{
    ground::held::HeldBy,
    job::{Job, Task},
};
use keys::{key::Key, layout::Layout};
use serde_json::{Value, json};

use super::key;
use crate::words::time;

/// The cascades that something holds.
pub type HeldCascades = BTreeMap<Key, HeldBy>;

/// All jobs as an object.
#[must_use]
pub fn jobs_list(jobs: &[Job], held: &HeldCascades, layout: &Layout) -> Value {
    json!({ "jobs": jobs.iter().map(|job| job_object(job, held, layout)).collect::<Vec<_>>() })
}

/// The state of a job, in one word. The words are stable.
#[must_use]
pub fn state_of(job: &Job) -> &'static str {
    match (job.is_paused, job.is_running) {
        (true, _) => "paused",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

/// The end of the job's second round, and whether the round has begun; `None` if there is no second round.
#[must_use]
pub fn second_round(job: &Job) -> Option<(&str, bool)> {
    let Task::FanOut(fan_out) = &job.task else { return None };
    Some((fan_out.until.as_deref()?, fan_out.is_round))
}

/// The last item behind the cursor.
#[must_use]
pub fn last_item(job: &Job, layout: &Layout) -> Option<Key> {
    layout.key(&job.after.as_ref()?.0)
}

/// A job as an object.
#[must_use]
pub fn job_object(job: &Job, held: &HeldCascades, layout: &Layout) -> Value {
    let kind = match job.task {
        Task::Cascade { .. } => "cascade",
        Task::FanOut(_) => "fan_out",
    };
    json!({
        "id": job.key.sk,
        "key": key(&job.key),
        "kind": kind,
        "derivation": job.derivation,
        "item": key(job.origin()),
        "state": state_of(job),
        "has_begun": job.is_running,
        "held_by": held.get(&job.key).map(|held_by| match held_by {
            HeldBy::ParkedChange(id) => json!({ "parked_change": id }),
            HeldBy::PossibleLoss(stream) => json!({ "possible_loss": stream }),
            HeldBy::NoPulse(0) => json!({ "no_pulse": null }),
            HeldBy::NoPulse(last_ms) => json!({ "no_pulse": time(*last_ms) }),
            HeldBy::YoungPulse(until_ms) => json!({ "young_pulse": time(*until_ms) }),
        }),
        "touched": job.n_touched,
        "moves": job.n_moves,
        "last": last_item(job, layout).as_ref().map(key),
        "round": second_round(job).map(|(until, has_begun)| json!({ "until": until, "has_begun": has_begun })),
        "started_at": time(job.started_at_ms),
        "due_at": time(job.due_at_ms),
        "moved_at": time(job.moved_at_ms),
    })
}
