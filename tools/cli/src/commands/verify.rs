//! `ripple verify` compares every derived value with its definition, while writes continue. `ripple repair` and `ripple
//! backfill` correct the findings of a verification.

use std::{cell::Cell, collections::BTreeSet, io::Write as _};

use engine::{look::listing::ALL_DERIVATIONS, loss::Mark};
use functions::logging;
use keys::{item::Item, key::Key};
use operate::{
    OperateError,
    objects::{self, VERSION, each_left, repair_object, repair_sums},
    repair::{self, Mended, RoundsReport, Summary, Sums},
    tables::VerifyOptions,
    verify::{
        CountsAboutNothing, Extent, Finding, UnreadableItem,
        check::{
            ABOUT_NOTHING, Checked, Difference, FINDING, UNDECIDED, UNPROVEN, UNREADABLE, UnlikeItems, Verified,
            WAITING, check,
        },
        definition,
        marks::{MarkFate, Marked, Marking},
    },
    words::{self, counted},
};
use serde_json::Value;

use crate::{
    args::{
        config_option,
        tables::{Backfill, Repair, Verify},
    },
    bar::{on, progress, report_marking},
    commands::{LOG_FILTER, dev::stop_signal},
    exit::{Completion, Output, print, report},
    opened::{Opened, agreed, open_to_write, open_with_ledger},
};

/// Longest value that is printed whole, in characters. With `--json` all are.
const VALUE_CHARS_MAX: usize = 300;

/// Most waiting items that are printed. With `--json` all are.
const WAITING_MAX: usize = 50;

/// The manifest must declare the type of one item in this many.
const KNOWN_ONE_OF: usize = 100;

/// Verifies, and prints the findings and the fate of the marks of a possible loss.
pub(crate) async fn run(args: &Verify) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = agreed(open_with_ledger(&args.connection).await?, &args.connection).await?;
    let bar = progress(args.json);
    let may_write = args.yes || !args.connection.aws;
    let checked = Box::pin(check(&opened.tables(), &args.verifying.request(), may_write, &on(&bar, args.json))).await?;
    bar.finish_and_clear();
    let Checked { verified, is_clean, marked, recounted, marking } = checked;
    report_marking(marking, &opened).await?;
    if args.json {
        let mut out = Output::new();
        objects::write(&mut out, &verified, &marked, usize::MAX)?;
        writeln!(out)?;
    } else {
        print_text(&verified)?;
        let n_waiting = verified.n_entries(WAITING)?;
        for line in marked.iter().flat_map(|marked| lines(marked, n_waiting)) {
            print(&line);
        }
        for mut entry in recounted {
            entry.relabel(&opened.catalogue);
            let target = entry.target.map(|it| format!("{}  {}", it.derivation, it.item));
            let count = target.unwrap_or_else(|| "any count".to_owned());
            print(&format!("recounted   {count}: right, and listed for a recount no more"));
        }
    }
    let is_known = knows(&verified.extent);
    Ok(if is_clean && is_known { Completion::InStep } else { Completion::Findings })
}

/// True if the manifest declares the type of one item in a hundred. If it does not, the absence of findings proves
/// nothing, and a warning is printed.
pub(super) fn knows(extent: &Extent) -> bool {
    let n_known = extent.n_items - extent.n_ignored;
    let is_known = extent.n_items == 0 || n_known * KNOWN_ONE_OF >= extent.n_items;
    if !is_known {
        let what = "nearly all items are of types that nobody declared: is this the manifest of this table?";
        report(&format!("{what} Give another with {}", config_option()));
    }
    is_known
}

fn print_text(verified: &Verified) -> anyhow::Result<()> {
    print_differences(verified, FINDING, usize::MAX)?;
    print_left(verified)?;
    let n_found = |kind| verified.n_entries(kind);
    let (n_undecided, n_waiting) = (n_found(UNDECIDED)?, n_found(WAITING)?);
    let mut line = totals(verified.extent.n_items, verified.extent.n_ignored, n_found(UNREADABLE)?, n_found(FINDING)?);
    let n_unproven = n_found(UNPROVEN)?;
    line.extend(open_parts(n_undecided, n_waiting, n_unproven));
    if let Some(key) = &verified.ignored {
        print(&format!("ignored     items that the manifest does not declare, such as {key}"));
    }
    print(&line);
    Ok(())
}

/// Prints everything but the findings.
fn print_left(verified: &Verified) -> Result<(), OperateError> {
    print_differences(verified, UNDECIDED, usize::MAX)?;
    print_differences(verified, WAITING, WAITING_MAX)?;
    verified.each_entry(UNPROVEN, |entry| {
        let UnreadableItem { derivation, pk, sk, why } = serde_json::from_str(entry)?;
        print(&format!("not proven  {derivation}  {}: {why}", Key::new(pk, sk)));
        Ok(())
    })?;
    verified.each_entry(UNREADABLE, |entry| {
        print(&unreadable_text(&serde_json::from_str(entry)?));
        Ok(())
    })?;
    print_about_nothing(verified)?;
    print_unlike(verified)
}

/// Prints the differences of a kind, up to a limit, and how many more there are.
fn print_differences(verified: &Verified, kind: &str, n_max: usize) -> Result<(), OperateError> {
    let mut n_seen = 0_usize;
    verified.each_entry(kind, |entry| {
        n_seen += 1;
        if n_seen <= n_max {
            let Difference { finding, why } = serde_json::from_str(entry)?;
            print(&finding_text(kind, &finding, why.as_deref()));
        }
        Ok(())
    })?;
    let n_more = n_seen.saturating_sub(n_max);
    if n_more > 0 {
        print(&format!("{kind:<11} … and {n_more} more"));
    }
    Ok(())
}

/// Prints which derivations count for items that do not exist.
fn print_about_nothing(verified: &Verified) -> Result<(), OperateError> {
    verified.each_entry(ABOUT_NOTHING, |entry| {
        print(&about_nothing_text(&serde_json::from_str(entry)?));
        Ok(())
    })
}

/// Prints which derivations have a condition that compares a value with one of another type.
fn print_unlike(verified: &Verified) -> Result<(), OperateError> {
    for UnlikeItems { items, example: UnreadableItem { derivation, pk, sk, why } } in verified.unlike()? {
        let (items, such) = (counted(items, "item"), Key::new(pk, sk));
        print(&format!("types       {derivation}  {items}, such as {such}: {why}"));
    }
    Ok(())
}

pub(super) fn about_nothing_text(about: &CountsAboutNothing) -> String {
    let CountsAboutNothing { derivation, counts, examples } = about;
    let such: Vec<String> = examples.iter().map(|(pk, sk)| Key::new(pk, sk).to_string()).collect();
    let (verb, such) = (if *counts == 1 { "is" } else { "are" }, such.join(", "));
    let what = format!(
        "{} {verb} about items that do not exist, or cannot be read, such as {such}",
        counted(*counts, "count")
    );
    format!("no item     {derivation}  {what}: deleted items, or a link that gives other keys")
}

/// The last parts of a line: the numbers of undecided and waiting items, and of counts without a proof.
fn open_parts(n_undecided: usize, n_waiting: usize, n_unproven: usize) -> Vec<String> {
    let unproven = format!(", {} not proven", counted(n_unproven, "count"));
    let (undecided, waiting) = (format!(", {n_undecided} undecided"), format!(", {n_waiting} waiting"));
    let all = [(n_undecided, undecided), (n_waiting, waiting), (n_unproven, unproven)];
    all.into_iter().filter(|(n_found, _)| *n_found > 0).map(|(_, part)| part).collect()
}

/// The text of a comparison with the definition.
pub(crate) fn as_text(verified: &definition::Comparison) -> String {
    let findings = verified.findings.iter().map(|finding| finding_text(FINDING, finding, None));
    let unreadable = verified.unreadable.iter().map(unreadable_text);
    let items: BTreeSet<_> = verified.unreadable.iter().map(|it| (&it.pk, &it.sk)).collect();
    let (n_findings, n_unreadable) = (verified.findings.len(), items.len());
    let totals = totals(verified.n_items, verified.n_ignored, n_unreadable, n_findings);
    findings.chain(unreadable).chain([totals]).collect::<Vec<_>>().join("\n")
}

/// The text of a finding. The reason for invalid data or for an undecided item follows the key. The evidence for a
/// finding is on a line below.
fn finding_text(kind: &str, finding: &Finding, why: Option<&str>) -> String {
    let Finding { derivation, pk, sk, stored, derived, flaw } = finding;
    let behind = flaw.as_deref().or(why.filter(|_| kind != FINDING)).map(|why| format!(": {why}")).unwrap_or_default();
    let below = why.filter(|_| kind == FINDING).map(|why| format!("\n  proof     {why}")).unwrap_or_default();
    let [stored, derived] = [stored, derived].map(|item| item_text(item.as_ref()));
    let item = Key::new(pk, sk);
    format!("{kind:<11} {derivation}  {item}{behind}\n  stored    {stored}\n  derived   {derived}{below}")
}

fn unreadable_text(unreadable: &UnreadableItem) -> String {
    let UnreadableItem { derivation, pk, sk, why } = unreadable;
    format!("unreadable  {}  by {}: {why}", Key::new(pk, sk), reader_text(derivation))
}

/// The derivation that cannot read an item, in words.
pub(super) fn reader_text(derivation: &str) -> &str {
    if derivation == ALL_DERIVATIONS { "every derivation" } else { derivation }
}

fn totals(n_items: usize, n_ignored: usize, n_unreadable: usize, n_findings: usize) -> String {
    let (items, findings) = (counted(n_items, "item"), counted(n_findings, "finding"));
    format!("{items}, {n_ignored} ignored, {n_unreadable} unreadable, {findings}")
}

/// An item as one line of JSON.
pub(super) fn item_text(item: Option<&Item>) -> String {
    match item {
        None => "no item".to_owned(),
        Some(item) if item.is_empty() => "no attribute".to_owned(),
        Some(item) => {
            let attribute = |(name, value)| Some(format!("{}:{}", json_text(name)?, json_text(value)?));
            format!("{{{}}}", item.iter().filter_map(attribute).collect::<Vec<_>>().join(","))
        }
    }
}

/// A value as JSON; a long one is cut, and has its length.
fn json_text(value: &(impl serde::Serialize + ?Sized)) -> Option<String> {
    let text = serde_json::to_string(value).ok()?;
    let length = text.chars().count();
    if length <= VALUE_CHARS_MAX {
        return Some(text);
    }
    Some(format!("{}… ({length} characters)", text.chars().take(VALUE_CHARS_MAX).collect::<String>()))
}

// ---- How `ripple verify` prints the marks of a possible loss ----

/// Two lines: the possible loss, and what happened to its mark.
fn lines(marked: &Marked, n_waiting: usize) -> [String; 2] {
    let Mark { family, shard, since_ms, until_ms, late_ms, .. } = &marked.mark;
    let (since, until, hours) = (words::time(*since_ms), words::time(*until_ms), late_ms / 3_600_000);
    let of = [family.as_str(), marked.mark.stream_label(), shard].join(" ");
    let became = match marked.fate {
        MarkFate::Removed => "nothing that can be corrected is missing: the mark is removed",
        MarkFate::Kept if n_waiting > 0 => &format!(
            "the mark stays while {} wait{}",
            counted(n_waiting, "item"),
            if n_waiting == 1 { "s" } else { "" }
        ),
        MarkFate::Kept => "the mark stays until a verify finds nothing that can be corrected",
        MarkFate::Unproven => {
            "the mark stays: only a verify of the whole table can remove it, in one run and with all derivations of the functions"
        }
        MarkFate::NotPermitted => "nothing that can be corrected is missing: give --yes to remove the mark",
        MarkFate::Renewed => "the mark was renewed meanwhile: verify again",
    };
    let what = match *late_ms {
        0 => "an operator discarded a change".to_owned(),
        _ => format!("records came {hours} hours late"),
    };
    let line = format!("possible loss  {}  {what}, from {since} to {until}", of.trim_end());
    [line, format!("  {became}")]
}

// ---- `ripple repair` and `ripple backfill` ----

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
    mend(&opened, &args.verifying.request(), args.apply.then_some("repaired"), args.json).await
}

pub(crate) async fn backfill(args: &Backfill) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_to_write(&args.writing).await?;
    let (tables, request) = (opened.tables(), args.verifying.request());
    let request = match &args.name {
        Some(name) => repair::backfill(&tables, name, request)?,
        None => repair::backfill_all(&tables, request)?,
    };
    mend(&opened, &request, Some("filled"), args.json).await
}

/// `applied` is the word for what is written, if it is.
async fn mend(
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
        print(&summary_text(&summary, applied));
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

fn summary_text(summary: &Summary, applied: Option<&str>) -> String {
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
