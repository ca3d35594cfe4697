//! `ripple redrive`: applies parked changes again, after an operator corrected the cause.

use derive::family::Family;
use engine::park::{ParkedChange, parked};
use functions::logging;
use operate::{
    objects::word,
    redriving::{ChangeOutcome, redrive},
};
use serde_json::{Value, json};

use super::{
    QUIET_LOG_FILTER,
    parked::{chosen, report_not_parked},
};
use crate::{
    args::Redrive,
    exit::{Completion, print},
    opened::{agreed, open_to_write},
    words::print_json,
};

/// What DynamoDB reports if it should add to an attribute that is no number.
const WRONG_TYPE: &str = "incorrect data type";

const REMEDY: &str = "; delete the attribute of it that is no number, such as `Value` or `Sum`, redrive, then run \
                      `ripple repair --apply`";

/// Redrives the chosen changes in turn.
pub(crate) async fn run(args: &Redrive) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
    let parked = parked(&opened.store).await?;
    let (chosen, unknown) = if args.all { (parked.iter().collect(), Vec::new()) } else { chosen(&parked, &args.ids) };
    let engine = opened.engine();
    let mut redriven: Vec<(&ParkedChange, ChangeOutcome)> = Vec::new();
    for change in chosen {
        let failed = redriven.iter().any(|(_, outcome)| matches!(outcome, ChangeOutcome::Failed { .. }));
        let outcome = if failed { ChangeOutcome::NotTried } else { redrive(&engine, change).await? };
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
    report_not_parked(&unknown, &opened).await?;
    Ok(ended(redriven.iter().map(|(_, outcome)| outcome), &unknown))
}

fn ended<'a>(outcomes: impl Iterator<Item = &'a ChangeOutcome> + Clone, unknown: &[&str]) -> Completion {
    let mut each = outcomes.clone();
    if each.any(|outcome| matches!(outcome, ChangeOutcome::Failed { .. })) {
        return Completion::Unfinished;
    }
    if !unknown.is_empty() {
        return Completion::UnknownId;
    }
    let mut each = outcomes;
    if each.any(|outcome| matches!(outcome, ChangeOutcome::Still { .. })) {
        Completion::Findings
    } else {
        Completion::InStep
    }
}

fn as_text(change: &ParkedChange, outcome: &ChangeOutcome) -> String {
    let start = format!("{}  {}", change.id, change.family);
    let ChangeOutcome::Still { cause } = outcome else { return format!("{start}  {outcome}") };
    // The cause at the time of parking names the item too.
    let cause = if change.cause.contains(cause.as_str()) { &change.cause } else { cause };
    if change.family != Family::Additive || !cause.contains(WRONG_TYPE) {
        return format!("{start}  still parked: {cause}");
    }
    let counter = change.counter.as_ref().map(|key| format!("; the counter is {key}")).unwrap_or_default();
    format!("{start}  still parked: {cause}{counter}{REMEDY}")
}

fn as_json(change: &ParkedChange, outcome: &ChangeOutcome) -> Value {
    let (name, why) = outcome.describe();
    json!({ "id": change.id, "family": word(&change.family.to_string()), "outcome": word(name), "why": why })
}
