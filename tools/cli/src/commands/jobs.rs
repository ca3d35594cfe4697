//! `ripple jobs`: lists the jobs that work through many items, and pauses, resumes or cancels them.

mod ordered;

use std::collections::BTreeMap;

use engine::{
    clock::{Clock as _, SystemClock},
    jobs::{
        ground::{held::HeldBy, sweep::jobs},
        job::{Job, Task},
    },
};
use functions::logging;
use keys::{key::Key, layout::Layout};
use serde_json::{Value, json};

use super::QUIET_LOG_FILTER;
use crate::{
    args::jobs::Jobs,
    exit::{Completion, print, report_unknown},
    json::{key, print_json},
    opened::{agreed, open_to_write, open_with_ledger},
    time,
    words::counted,
};

pub(crate) async fn run(args: &Jobs) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    if let Some(order) = args.order() {
        let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
        return ordered::run(&opened.engine(), order, args).await;
    }
    let connection = &args.writing.connection;
    let opened = agreed(open_with_ledger(connection).await?, connection).await?;
    let layout = &opened.schema.layout;
    let jobs = jobs(&opened.store, layout).await?;
    let held = opened.engine().held_jobs(&jobs, args.writing.connection.aws, SystemClock.now_ms() + READ_MS).await?;
    Ok(if args.ids.is_empty() { list(&jobs, &held, layout, args.json) } else { show(&jobs, &held, layout, args) })
}

/// Time limit for reading what holds cascades, in milliseconds.
const READ_MS: u64 = 60_000;

/// The cascades that something holds.
type HeldCascades = BTreeMap<Key, HeldBy>;

fn list(jobs: &[Job], held: &HeldCascades, layout: &Layout, as_json: bool) -> Completion {
    if as_json {
        let jobs: Vec<Value> = jobs.iter().map(|job| as_object(job, held, layout)).collect();
        print_json(json!({ "jobs": jobs }));
    } else {
        let n_in = |state: &str| jobs.iter().filter(|job| state_of(job) == state).count();
        let (all, [running, waiting, paused]) =
            (counted(jobs.len(), "job"), ["running", "waiting", "paused"].map(n_in));
        let last = format!("{all}: {running} running, {waiting} waiting, {paused} paused");
        print(&jobs.iter().map(|job| line(job, held)).chain([last]).collect::<Vec<_>>().join("\n"));
    }
    Completion::InStep
}

fn show(jobs: &[Job], held: &HeldCascades, layout: &Layout, args: &Jobs) -> Completion {
    let (chosen, unknown) = chosen(jobs, &args.ids);
    if args.json {
        let jobs: Vec<Value> = chosen.iter().map(|job| as_object(job, held, layout)).collect();
        print_json(json!({ "jobs": jobs, "unknown": unknown }));
    } else {
        for job in &chosen {
            print(&whole(job, held, layout));
        }
    }
    report_unknown(&unknown, NO_JOB, "jobs");
    if unknown.is_empty() { Completion::InStep } else { Completion::UnknownId }
}

/// The jobs with these ids, and the ids without a job. An id is a job's sort key, or its whole key.
fn chosen<'a>(jobs: &'a [Job], ids: &'a [String]) -> (Vec<&'a Job>, Vec<&'a str>) {
    let is_meant = |job: &Job, id: &str| job.key.sk == id || job.key.to_string() == id;
    let is_asked = |job: &&Job| ids.iter().any(|id| is_meant(job, id));
    let is_unknown = |id: &&str| !jobs.iter().any(|job| is_meant(job, id));
    (jobs.iter().filter(is_asked).collect(), ids.iter().map(String::as_str).filter(is_unknown).collect())
}

/// What an id is that no job has.
const NO_JOB: &str = "no job";

/// The state of a job, in one word. The words are stable.
fn state_of(job: &Job) -> &'static str {
    match (job.is_paused, job.is_running) {
        (true, _) => "paused",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

fn so_far(job: &Job) -> String {
    let what = match job.task {
        Task::Cascade { .. } => "dealt with",
        Task::FanOut(_) => "looked at",
    };
    format!("{} {what}", job.n_touched)
}

/// The end of the job's second round, and whether the round has begun; `None` if there is no second round.
fn round(job: &Job) -> Option<(&str, bool)> {
    let Task::FanOut(fan_out) = &job.task else { return None };
    Some((fan_out.until.as_deref()?, fan_out.is_round))
}

fn round_text(job: &Job) -> Option<&'static str> {
    let (_, has_begun) = round(job)?;
    Some(if has_begun { "is in its second round" } else { "goes round once more" })
}

/// A job in one line.
fn line(job: &Job, held: &HeldCascades) -> String {
    let mut words = vec![job.key.sk.clone(), state_of(job).to_owned(), format!("of {}", job.origin()), so_far(job)];
    words.extend(round_text(job).map(str::to_owned));
    words.push(format!("started {}", time::text(job.started_at_ms)));
    words.push(format!("moved {}", time::text(job.moved_at_ms)));
    if !job.is_running {
        words.push(format!("due {}", time::text(job.due_at_ms)));
    }
    words.extend(held.get(&job.key).map(|held_by| format!("waits for {held_by}")));
    words.join("  ")
}

/// A job with all its attributes.
fn whole(job: &Job, held: &HeldCascades, layout: &Layout) -> String {
    let does = match job.task {
        Task::Cascade { .. } => "cascade: deletes what belonged to a removed item",
        Task::FanOut(_) => "fan-out: looks at the items that depend on a changed item",
    };
    let round = round(job).zip(round_text(job)).map(|((until, _), text)| format!("{text}, up to {until}"));
    let mut lines = vec![format!("job         {}", job.key.sk)];
    let known = [
        ("key", Some(job.key.to_string())),
        ("does", Some(does.to_owned())),
        ("for", Some(job.derivation.clone())),
        ("item", Some(job.origin().to_string())),
        ("state", Some(state_text(job))),
        ("waits for", held.get(&job.key).map(HeldBy::to_string)),
        ("so far", Some(so_far(job))),
        ("last", at(job, layout).map(|key| key.to_string())),
        ("round", round),
        ("started", Some(time::text(job.started_at_ms))),
        ("due", Some(time::text(job.due_at_ms))),
        ("moved", Some(time::text(job.moved_at_ms))),
        ("moves", Some(job.n_moves.to_string())),
    ];
    lines.extend(known.into_iter().filter_map(|(name, value)| Some(format!("  {name:<10}{}", value?))));
    lines.join("\n")
}

fn state_text(job: &Job) -> String {
    let begun = if job.is_running { "it has begun" } else { "it has not begun" };
    let state = state_of(job);
    if job.is_paused { format!("{state}, {begun}") } else { state.to_owned() }
}

/// The last item behind the cursor.
fn at(job: &Job, layout: &Layout) -> Option<Key> {
    layout.key(&job.after.as_ref()?.0)
}

/// The names are stable.
fn as_object(job: &Job, held: &HeldCascades, layout: &Layout) -> Value {
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
            HeldBy::NoPulse(last_ms) => json!({ "no_pulse": time::text(*last_ms) }),
            HeldBy::YoungPulse(until_ms) => json!({ "young_pulse": time::text(*until_ms) }),
        }),
        "touched": job.n_touched,
        "moves": job.n_moves,
        "last": at(job, layout).as_ref().map(key),
        "round": round(job).map(|(until, has_begun)| json!({ "until": until, "has_begun": has_begun })),
        "started_at": time::text(job.started_at_ms),
        "due_at": time::text(job.due_at_ms),
        "moved_at": time::text(job.moved_at_ms),
    })
}
