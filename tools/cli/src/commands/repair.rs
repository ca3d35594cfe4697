//! `ripple repair` and `ripple backfill`: correct the findings of a verification, while writes go on.

use functions::logging;
use operate::{
    failure::OperateError,
    repair::{Remedy, Repaired},
    repairing::{self, Mended, Summary, Sums},
    tables::VerifyOptions,
    verify::Finding,
    verifying::{Difference, FINDING, Verified},
};
use serde_json::json;

use super::{LOG_FILTER, verify::finding_text};
use crate::{
    args::repair::{Backfill, Repair},
    bar::{on, progress, report_marking},
    exit::{Completion, print},
    opened::{Opened, open_to_write, open_with_ledger},
};

/// Repairs the findings, or prints what it would do.
pub(crate) async fn repair(args: &Repair) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = if args.apply {
        open_to_write(&args.writing).await?
    } else {
        open_with_ledger(&args.writing.connection).await?
    };
    run(&opened, &args.verifying.request(), args.apply, args.json).await
}

pub(crate) async fn backfill(args: &Backfill) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_to_write(&args.writing).await?;
    let request = repairing::backfill(&opened.tables(), &args.name, args.verifying.request())?;
    run(&opened, &request, true, args.json).await
}

async fn run(opened: &Opened, request: &VerifyOptions, is_applied: bool, is_json: bool) -> anyhow::Result<Completion> {
    let tables = opened.tables();
    let bar = progress(is_json);
    let found = Box::pin(repairing::begin(&tables, request, is_applied, &on(&bar))).await?;
    bar.finish_and_clear();
    if is_json {
        json_begins(&found.verified);
    }
    let mut is_first = true;
    let summary = found.mend(&tables, request, |Mended { difference, remedy, repaired }| {
        let Difference { finding, why } = difference;
        if is_json {
            json_of(finding, remedy, repaired.as_ref(), &mut is_first)?;
        } else {
            print(&finding_text(FINDING, finding, why.as_deref()));
            print(&format!("  {}", outcome(remedy, repaired.as_ref())));
        }
        Ok(())
    });
    let summary = summary.await?;
    report_marking(summary.marking);
    let Summary { n_undecided, n_waiting, n_unproven, .. } = summary;
    if is_json {
        let Sums { done, not_needed, refused, would } = summary.sums;
        print(&format!(
            "],\"done\":{done},\"not_needed\":{not_needed},\"refused\":{refused},\"would\":{would},\
             \"undecided\":{n_undecided},\"waiting\":{n_waiting},\"unproven\":{n_unproven}}}"
        ));
    } else {
        print(&text(summary.sums, is_applied, [n_undecided, n_waiting, n_unproven]));
    }
    Ok(if summary.is_left() { Completion::Findings } else { Completion::InStep })
}

fn text(sums: Sums, is_applied: bool, [n_undecided, n_waiting, n_unproven]: [usize; 3]) -> String {
    let Sums { done, not_needed, refused, would } = sums;
    let mut text = if is_applied {
        format!("{done} repaired, {not_needed} were right already, {refused} left to an operator")
    } else {
        format!("{would} would be repaired with --apply, {refused} are left to an operator")
    };
    let more = [(n_undecided, "undecided"), (n_waiting, "waiting"), (n_unproven, "counts that change all the time")];
    for (n_found, what) in more {
        if n_found > 0 {
            text = format!("{text}, {n_found} {what}");
        }
    }
    text
}

fn json_begins(verified: &Verified) {
    print(&format!("{{\"items\":{},\"repairs\":[", verified.extent.n_items));
}

fn json_of(
    finding: &Finding,
    remedy: &Remedy,
    repaired: Option<&Repaired>,
    is_first: &mut bool,
) -> Result<(), OperateError> {
    let entry = json!({ "finding": serde_json::to_value(finding)?, "outcome": outcome(remedy, repaired) });
    let comma = if std::mem::take(is_first) { "" } else { "," };
    print(&format!("{comma}{entry}"));
    Ok(())
}

/// The planned remedy, or its result.
fn outcome(remedy: &Remedy, repaired: Option<&Repaired>) -> String {
    let what = match remedy {
        Remedy::Refresh => "derive it anew".to_owned(),
        Remedy::Add { count, sum } if sum.is_zero() => format!("add {count}"),
        Remedy::Add { count, sum } => format!("add {count} and {sum}"),
        Remedy::SetIndexKeys => "set its index keys".to_owned(),
        Remedy::Delete => "delete it".to_owned(),
        Remedy::None { why } => return format!("left to an operator: {why}"),
    };
    match repaired {
        None => format!("would {what}"),
        Some(Repaired::Done) => format!("done: {what}"),
        Some(Repaired::NotNeeded) => "is right already".to_owned(),
        Some(Repaired::Refused { why }) => format!("left to an operator: {why}"),
        Some(Repaired::Overtaken) => "not done: another repair has started".to_owned(),
    }
}
