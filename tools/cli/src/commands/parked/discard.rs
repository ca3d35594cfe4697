//! `ripple parked --discard`: removes parked changes that will never be applied.

use engine::{park::ParkedChange, redrive::concerns::Concerns};
use operate::{
    discarding::{discard, lost, lost_lines},
    objects::discarded,
    redriving::ChangeOutcome,
};
use serde_json::{Value, json};

use super::{change_text, chosen, report_not_parked};
use crate::{
    args::ParkedArgs,
    exit::{Completion, print},
    opened::Opened,
    words::print_json,
};

/// Discards the chosen changes one after the other, after it said what is lost with each. With an unknown id it discards
/// nothing.
pub(super) async fn run(opened: &Opened, parked: &[ParkedChange], args: &ParkedArgs) -> anyhow::Result<Completion> {
    let (chosen, unknown) = chosen(parked, &args.ids);
    if !unknown.is_empty() {
        if args.json {
            print_json(json!({ "discarded": [], "unknown": unknown }));
        }
        report_not_parked(&unknown, opened).await?;
        return Ok(Completion::UnknownId);
    }
    let engine = opened.engine();
    let mut losses: Vec<(&ParkedChange, Concerns)> = Vec::new();
    for change in chosen {
        let lost = lost(&engine, change).await?;
        if !args.json {
            print(&lost_text(change, &lost, opened));
        }
        losses.push((change, lost));
    }
    opened.may_write(&args.writing)?;
    let mut results: Vec<(&ParkedChange, Concerns, ChangeOutcome)> = Vec::new();
    for (change, lost) in losses {
        let has_failed = results.iter().any(|(.., outcome)| matches!(outcome, ChangeOutcome::Failed { .. }));
        let outcome = if has_failed { ChangeOutcome::NotTried } else { discard(&engine, change).await? };
        if !args.json {
            print(&format!("{}  {}  {outcome}", change.id, change.family));
        }
        results.push((change, lost, outcome));
    }
    if args.json {
        let results: Vec<Value> =
            results.iter().map(|(change, lost, outcome)| discarded(change, lost, outcome)).collect();
        print_json(json!({ "discarded": results, "unknown": unknown }));
    }
    let outcomes: Vec<&ChangeOutcome> = results.iter().map(|(.., outcome)| outcome).collect();
    Ok(if outcomes.iter().any(|it| matches!(it, ChangeOutcome::Failed { .. })) {
        Completion::Unfinished
    } else if outcomes.iter().any(|it| matches!(it, ChangeOutcome::Still { .. })) {
        Completion::Findings
    } else {
        Completion::InStep
    })
}

fn lost_text(change: &ParkedChange, lost: &Concerns, opened: &Opened) -> String {
    let mut lines = vec![change_text(change, &opened.schema.layout)];
    let lost = lost_lines(change, lost);
    if lost.is_empty() {
        lines.push("  lost      nothing that is derived".to_owned());
    }
    lines.extend(lost.into_iter().map(|line| format!("  lost      {line}")));
    lines.join("\n")
}
