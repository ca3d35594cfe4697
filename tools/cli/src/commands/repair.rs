//! `ripple repair` and `ripple backfill`: correct the findings of a verification, while writes continue.

use std::cell::Cell;

use functions::logging;
use operate::{
    failure::OperateError,
    objects::{VERSION, each_left, repair_object, repair_sums},
    repair::{self, Mended, RoundsReport, Summary, Sums},
    tables::VerifyOptions,
    verify::{
        check::{Difference, FINDING, Verified},
        filled::Marking,
    },
};

use serde_json::Value;

use super::{
    LOG_FILTER,
    dev::stop_signal,
    verify::{finding_text, knows, open_parts, print_left},
};
use crate::{
    args::{Backfill, Repair},
    bar::{on, progress, report_marking},
    exit::{Completion, print},
    opened::{Opened, agreed, open_to_write, open_with_ledger},
};

/// The start of the JSON object. It is printed with the first entry, so that a refused command prints nothing.
fn json_begin() -> String {
    format!("{{\"version\":{VERSION},\"repairs\":[")
}

/// Repairs the findings, or prints what it would do.
pub(crate) async fn repair(args: &Repair) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let connection = &args.writing.connection;
    let opened = if args.apply { open_to_write(&args.writing).await? } else { open_with_ledger(connection).await? };
    let opened = agreed(opened, connection).await?;
    run(&opened, &args.verifying.request(), args.apply.then_some("repaired"), args.json).await
}

pub(crate) async fn backfill(args: &Backfill) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_to_write(&args.writing).await?;
    let (tables, request) = (opened.tables(), args.verifying.request());
    let request = match &args.name {
        Some(name) => repair::backfill(&tables, name, request)?,
        None => repair::backfill_all(&tables, request)?,
    };
    run(&opened, &request, Some("filled"), args.json).await
}

/// `applied` is the word for what is written, if it is.
async fn run(
    opened: &Opened,
    request: &VerifyOptions,
    applied: Option<&str>,
    is_json: bool,
) -> anyhow::Result<Completion> {
    let is_applied = applied.is_some();
    let tables = opened.tables();
    let bar = progress(is_json);
    let mut is_first = true;
    let (sums, interrupted) = (Cell::new(Sums::default()), stop_signal()?);
    let act = |mended: &Mended| {
        let mut so_far = sums.get();
        so_far.add(&mended.remedy, mended.repaired.as_ref());
        sums.set(so_far);
        let Difference { finding, why } = &mended.difference;
        bar.suspend(|| {
            if is_json {
                print_entry(mended, &mut is_first);
                return Ok(());
            }
            print(&finding_text(FINDING, finding, why.as_deref()));
            print(&format!("  {mended}"));
            Ok(())
        })
    };
    let shown = on(&bar, is_json);
    let repair = Box::pin(repair::repair(&tables, request, is_applied, &shown, act));
    let report = tokio::select! {
        report = repair => report?,
        () = interrupted => {
            bar.finish_and_clear();
            anyhow::bail!(interrupted_at(sums.get(), is_applied));
        }
    };
    bar.finish_and_clear();
    let RoundsReport { summary, last } = report;
    report_marking(summary.marking, opened).await?;
    if is_json {
        json_ends(is_first, &summary, &last)?;
    } else {
        print_left(&last)?;
        print(&text(&summary, applied));
    }
    let is_known = knows(&last.extent);
    // A backfill that marks nothing as filled has to be run again.
    let is_to_fill = applied == Some("filled") && summary.marking == Marking::NotAll;
    Ok(if summary.is_left() || is_to_fill || !last.is_clean()? || !is_known {
        Completion::Findings
    } else {
        Completion::InStep
    })
}

fn text(summary: &Summary, applied: Option<&str>) -> String {
    let Summary {
        sums: Sums { done, not_needed, refused, would },
        n_undecided,
        n_waiting,
        n_unproven,
        n_unreadable,
        ..
    } = *summary;
    let mut text = if let Some(word) = applied {
        format!("{done} {word}, {not_needed} were right already, {refused} left to an operator")
    } else {
        format!("{would} would be repaired with --apply, {refused} are left to an operator")
    };
    if applied.is_some() && would > 0 {
        text = format!("{text}, {would} differ again after each repair");
    }
    text.extend((n_unreadable > 0).then(|| format!(", {n_unreadable} unreadable")));
    text.extend(open_parts(n_undecided, n_waiting, n_unproven));
    text
}

/// The message about an interrupted run, with the work that it has done.
fn interrupted_at(Sums { done, not_needed, refused, .. }: Sums, is_applied: bool) -> String {
    if !is_applied {
        return "interrupted: nothing was written; run it again for all findings".to_owned();
    }
    format!(
        "interrupted: {done} repaired, {not_needed} were right already, {refused} left to an operator, and one more may be \
         written; what is done stays done, run it again for the rest"
    )
}

/// Ends the object with the entries that the last verification left. The names are stable.
fn json_ends(is_empty: bool, summary: &Summary, last: &Verified) -> Result<(), OperateError> {
    let begin = if is_empty { json_begin() } else { String::new() };
    let sums = Value::Object(repair_sums(summary, last.extent.n_items)).to_string();
    print(&format!("{begin}],{},\"left\":[", sums.trim_matches(['{', '}'])));
    let mut comma = "";
    each_left(last, |left| {
        print(&format!("{comma}{left}"));
        comma = ",";
        Ok(())
    })?;
    print("]}");
    Ok(())
}

fn print_entry(mended: &Mended, is_first: &mut bool) {
    let entry = repair_object(mended);
    let before = if std::mem::take(is_first) { json_begin() } else { ",".to_owned() };
    print(&format!("{before}{entry}"));
}
