//! `ripple redrive`: applies parked changes again, after an operator corrected what blocked them.

use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
    park::redrive::{ParkedChange, Redriven, parked},
};
use functions::logging;
use serde_json::{Value, json};

use super::{
    QUIET_LOG_FILTER,
    parked::{NOT_PARKED, chosen},
};
use crate::{
    args::parked::Redrive,
    exit::{Completion, print, report_unknown},
    json::{print_json, word},
    opened::{agreed, open_to_write},
};

/// Time limit for one change, in milliseconds: the rename of a famous user looks at thousands of items.
const CHANGE_MS_MAX: u64 = 300_000;

enum RedriveOutcome {
    Applied,
    Gone,
    Still {
        cause: String,
    },
    /// The database did not respond: the change is applied or parked, and can safely be redriven again.
    Failed {
        why: String,
    },
    /// An earlier redrive failed.
    NotTried,
}

/// Redrives the chosen changes one after the other.
pub(crate) async fn run(args: &Redrive) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
    let parked = parked(&opened.store).await?;
    let (chosen, unknown) = if args.all { (parked.iter().collect(), Vec::new()) } else { chosen(&parked, &args.ids) };
    let engine = opened.engine();
    let mut redriven: Vec<(&ParkedChange, RedriveOutcome)> = Vec::new();
    for change in chosen {
        let failed = redriven.iter().any(|(_, outcome)| matches!(outcome, RedriveOutcome::Failed { .. }));
        let outcome = if failed {
            RedriveOutcome::NotTried
        } else {
            engine.publish(SystemClock.now_ms() + CHANGE_MS_MAX).await?;
            match engine.redrive(change, SystemClock.now_ms() + CHANGE_MS_MAX).await {
                Ok(Redriven::Applied(_)) => RedriveOutcome::Applied,
                Ok(Redriven::Gone) => RedriveOutcome::Gone,
                Ok(Redriven::Still { cause }) => RedriveOutcome::Still { cause },
                Err(error) => RedriveOutcome::Failed { why: describe(&error) },
            }
        };
        if !args.json {
            print(&as_text(change, &outcome));
        }
        redriven.push((change, outcome));
    }
    if args.json {
        let redriven: Vec<Value> = redriven.iter().map(|(change, outcome)| as_json(change, outcome)).collect();
        print_json(json!({ "redriven": redriven, "unknown": unknown }));
    } else if redriven.is_empty() && unknown.is_empty() {
        print("nothing is parked");
    }
    report_unknown(&unknown, NOT_PARKED, "parked");
    Ok(ended(redriven.iter().map(|(_, outcome)| outcome), &unknown))
}

fn ended<'a>(outcomes: impl Iterator<Item = &'a RedriveOutcome> + Clone, unknown: &[&str]) -> Completion {
    let mut each = outcomes.clone();
    if each.any(|outcome| matches!(outcome, RedriveOutcome::Failed { .. })) {
        return Completion::Unfinished;
    }
    if !unknown.is_empty() {
        return Completion::UnknownId;
    }
    let mut each = outcomes;
    if each.any(|outcome| matches!(outcome, RedriveOutcome::Still { .. })) {
        Completion::Findings
    } else {
        Completion::InStep
    }
}

impl RedriveOutcome {
    /// The outcome's name, which is stable, and the reason.
    fn describe(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Applied => ("applied", None),
            Self::Gone => ("was not parked any more", None),
            Self::Still { cause } => ("still parked", Some(cause)),
            Self::Failed { why } => ("failed", Some(why)),
            Self::NotTried => ("not tried", None),
        }
    }
}

fn as_text(change: &ParkedChange, outcome: &RedriveOutcome) -> String {
    let (name, why) = outcome.describe();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}  {}  {name}{why}", change.id, change.family)
}

fn as_json(change: &ParkedChange, outcome: &RedriveOutcome) -> Value {
    let (name, why) = outcome.describe();
    json!({ "id": change.id, "family": word(&change.family.to_string()), "outcome": word(name), "why": why })
}
