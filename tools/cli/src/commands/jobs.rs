//! `ripple jobs`: lists the jobs that work through many items, and pauses, resumes or cancels them.

use std::sync::Arc;

use engine::{
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    job::{Job, Task},
    jobs::{JobOrder, Obeyed, blocked::Blocker, sweep::jobs},
};
use functions::logging;
use keys::layout::Layout;
use operate::{
    objects::{
        BlockedCascades, job_object, jobs_list, last_item, left_ms, pages, per_second, second_round, state_of, word,
    },
    words::{self, counted},
};
use serde_json::{Value, json};
use store::dynamo::DynamoStore;

use crate::{
    args::tables::Jobs,
    commands::QUIET_LOG_FILTER,
    exit::{Completion, print, print_json, report_unknown},
    opened::{agreed, open_to_write, open_with_ledger},
};

pub(crate) async fn run(args: &Jobs) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    if let Some(order) = args.order() {
        let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
        return carry_out(&opened.engine(), order, args).await;
    }
    let connection = &args.writing.connection;
    let opened = agreed(open_with_ledger(connection).await?, connection).await?;
    let layout = &opened.schema.layout;
    let mut jobs = jobs(&opened.store, layout).await?;
    let held = opened
        .engine()
        .blocked_jobs(&jobs, args.writing.connection.aws, SystemClock.now_ms().saturating_add(READ_MS))
        .await?;
    for job in &mut jobs {
        opened.catalogue.relabel(&mut job.derivation);
    }
    Ok(if args.ids.is_empty() { list(&jobs, &held, layout, args.json) } else { show(&jobs, &held, layout, args) })
}

/// Time limit for reading what blocks cascades, in milliseconds.
const READ_MS: u64 = 60_000;

fn list(jobs: &[Job], held: &BlockedCascades, layout: &Layout, as_json: bool) -> Completion {
    if as_json {
        print_json(jobs_list(jobs, held, layout));
    } else {
        let n_in = |state: &str| jobs.iter().filter(|job| state_of(job) == state).count();
        let (all, [running, waiting, paused]) =
            (counted(jobs.len(), "job"), ["running", "waiting", "paused"].map(n_in));
        let last = format!("{all}: {running} running, {waiting} waiting, {paused} paused");
        print(&jobs.iter().map(|job| line(job, held)).chain([last]).collect::<Vec<_>>().join("\n"));
    }
    Completion::InStep
}

fn show(jobs: &[Job], held: &BlockedCascades, layout: &Layout, args: &Jobs) -> Completion {
    let (chosen, unknown) = chosen(jobs, &args.ids);
    if args.json {
        let jobs: Vec<Value> = chosen.iter().map(|job| job_object(job, held, layout)).collect();
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

/// Describes an id without a job, in `report_unknown`.
const NO_JOB: &str = "no job";

fn so_far(job: &Job) -> String {
    let what = match job.task {
        Task::Cascade { .. } => "dealt with",
        Task::FanOut(_) => "looked at",
    };
    let pages = pages(job).map(|(done, all)| format!(", {done} of {all} pages deleted"));
    let rate = per_second(job).map(|n| format!(", {n} a second"));
    let left = left_ms(job).map(|ms| format!(", about {} s left", ms.div_ceil(1_000)));
    let more: String = [pages, rate, left].into_iter().flatten().collect();
    format!("{} {what}{more}", job.n_touched)
}

fn round_text(job: &Job) -> Option<&'static str> {
    let (_, has_begun) = second_round(job)?;
    Some(if has_begun { "is in its second round" } else { "goes round once more" })
}

/// A job in one line.
fn line(job: &Job, held: &BlockedCascades) -> String {
    let mut words = vec![job.key.sk.clone(), state_of(job).to_owned(), format!("of {}", job.origin()), so_far(job)];
    words.extend(round_text(job).map(str::to_owned));
    words.push(format!("started {}", words::time(job.started_at_ms)));
    words.push(format!("moved {}", words::time(job.moved_at_ms)));
    if !job.is_running {
        words.push(format!("due {}", words::time(job.due_at_ms)));
    }
    words.extend(held.get(&job.key).map(|blocker| format!("waits for {blocker}")));
    words.join("  ")
}

/// A job with all its attributes.
fn whole(job: &Job, held: &BlockedCascades, layout: &Layout) -> String {
    let does = match job.task {
        Task::Cascade { .. } => "cascade: deletes what belonged to a removed item",
        Task::FanOut(_) => "fan-out: recomputes the items that depend on a changed item",
    };
    let round = second_round(job).zip(round_text(job)).map(|((until, _), text)| format!("{text}, up to {until}"));
    let mut lines = vec![format!("job         {}", job.key.sk)];
    let known = [
        ("key", Some(job.key.to_string())),
        ("does", Some(does.to_owned())),
        ("for", Some(job.derivation.clone())),
        ("item", Some(job.origin().to_string())),
        ("state", Some(state_text(job))),
        ("waits for", held.get(&job.key).map(Blocker::to_string)),
        ("so far", Some(so_far(job))),
        ("last", last_item(job, layout).map(|key| key.to_string())),
        ("round", round),
        ("started", Some(words::time(job.started_at_ms))),
        ("due", Some(words::time(job.due_at_ms))),
        ("moved", Some(words::time(job.moved_at_ms))),
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

// ---- An operator's order for jobs ----

/// Time limit for one order, in milliseconds: one call, or a few if the job moves meanwhile.
const ORDER_MS_MAX: u64 = 30_000;

/// Carries out the order for each job in turn.
async fn carry_out(engine: &Engine<Arc<DynamoStore>>, order: JobOrder, args: &Jobs) -> anyhow::Result<Completion> {
    let jobs = jobs(engine.store(), &engine.schema().layout).await?;
    let (chosen, unknown) = chosen(&jobs, &args.ids);
    let mut results: Vec<Value> = Vec::new();
    let mut has_failed = false;
    for job in chosen {
        let (name, why) = if has_failed {
            ("not tried", None)
        } else {
            match engine.order(job, order, SystemClock.now_ms().saturating_add(ORDER_MS_MAX)).await {
                Ok(obeyed) => outcome(&obeyed, order, engine),
                // The database did not respond. The order may have been carried out, and can safely be repeated.
                Err(error) => {
                    has_failed = true;
                    ("failed", Some(describe(&error)))
                }
            }
        };
        if !args.json {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            print(&format!("{}  {name}{why}", job.key.sk));
        }
        results.push(json!({ "id": job.key.sk, "outcome": word(name), "why": why }));
    }
    if args.json {
        print_json(json!({ "jobs": results, "unknown": unknown }));
    }
    report_unknown(&unknown, NO_JOB, "jobs");
    Ok(match (has_failed, unknown.is_empty()) {
        (true, _) => Completion::Unfinished,
        (false, false) => Completion::UnknownId,
        (false, true) => Completion::InStep,
    })
}

/// The outcome of an order: its name, which is stable, and more about it.
fn outcome(obeyed: &Obeyed, order: JobOrder, engine: &Engine<Arc<DynamoStore>>) -> (&'static str, Option<String>) {
    match (obeyed, order) {
        (Obeyed::Done(_), JobOrder::Pause) => ("paused", None),
        (Obeyed::Done(_), JobOrder::Resume) => ("resumed", None),
        (Obeyed::Done(job), JobOrder::Cancel) => ("cancelled", Some(undone(job, engine))),
        (Obeyed::Already, JobOrder::Resume) => ("was not paused", None),
        (Obeyed::Already, _) => ("was paused already", None),
        (Obeyed::Gone, _) => ("had ended", None),
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
