//! A job, as `ripple jobs` prints it and the console shows it.

use std::collections::BTreeMap;

use engine::{
    job::{Job, Pass, Task},
    jobs::ground::held::HeldBy,
};
use keys::{key::Key, layout::Layout};
use serde_json::{Value, json};

use super::key;
use crate::words::time;

/// The paused cascades, with what blocks each.
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

/// Items a second that a fan-out has refreshed since it started; `None` for a cascade, and at the very beginning.
#[must_use]
pub fn per_second(job: &Job) -> Option<u64> {
    let elapsed_ms = job.moved_at_ms.saturating_sub(job.started_at_ms);
    let is_fan_out = matches!(job.task, Task::FanOut(_));
    (is_fan_out && elapsed_ms > 0).then(|| job.n_touched * 1_000 / elapsed_ms)
}

/// The pages that a cascade has deleted, and all that it has listed; `None` before it deletes. `None` for a fan-out,
/// since the dependent items of a source are not counted.
#[must_use]
pub fn pages(job: &Job) -> Option<(u64, u64)> {
    match job.task {
        Task::Cascade { pass: Pass::Deletes { page, n_pages }, .. } => Some((page, n_pages)),
        _ => None,
    }
}

/// The remaining time of a deleting cascade at its rate so far, in milliseconds.
#[must_use]
pub fn left_ms(job: &Job) -> Option<u64> {
    let (done, all) = pages(job).filter(|(done, _)| job.is_running && *done > 0)?;
    let elapsed_ms = job.moved_at_ms.saturating_sub(job.due_at_ms);
    Some(all.saturating_sub(done).saturating_mul(elapsed_ms) / done)
}

/// The last item before the cursor.
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
        "per_second": per_second(job),
        "pages": pages(job).map(|(done, all)| json!({ "done": done, "all": all })),
        "left_ms": left_ms(job),
        "moves": job.n_moves,
        "last": last_item(job, layout).as_ref().map(key),
        "round": second_round(job).map(|(until, has_begun)| json!({ "until": until, "has_begun": has_begun })),
        "started_at": time(job.started_at_ms),
        "due_at": time(job.due_at_ms),
        "moved_at": time(job.moved_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use derive::effect::Removal;

    use super::*;

    #[test]
    fn what_a_cascade_has_still_to_do_follows_from_its_pages_and_its_time() {
        let owner = Key::new("POST#p", "METADATA");
        let removal = Removal { owner: owner.clone(), absent: vec![owner], named: Vec::new() };
        let deletes =
            |page| Task::Cascade { removal: removal.clone(), step: 0, pass: Pass::Deletes { page, n_pages: 8 } };
        let job = |page, is_running| Job {
            key: Key::new("JOBS#00", "post-cascade#8:POST%23p|METADATA"),
            derivation: "post-cascade".to_owned(),
            task: deletes(page),
            is_running,
            is_paused: false,
            started_at_ms: 0,
            due_at_ms: 10_000,
            moved_at_ms: 16_000,
            n_moves: 7,
            n_touched: 600,
            after: None,
        };
        assert_eq!(
            (pages(&job(6, true)), left_ms(&job(6, true)), per_second(&job(6, true))),
            (Some((6, 8)), Some(2_000), None)
        );
        assert_eq!((left_ms(&job(0, true)), left_ms(&job(0, false))), (None, None), "nothing to calculate it from");
    }
}
