//! `ripple verify`: compares every derived value with its definition, while writes continue.

use std::{collections::BTreeSet, io::Write as _};

use engine::loss::Mark;
use functions::logging;
use keys::{item::Item, key::Key};
use operate::{
    failure::OperateError,
    loss::{MarkFate, Marked},
    objects,
    verify::{
        CountsAboutNothing, Extent, Finding, UnreadableItem,
        check::{
            ABOUT_NOTHING, Checked, Difference, FINDING, UNDECIDED, UNPROVEN, UNREADABLE, UnlikeItems, Verified,
            WAITING, check,
        },
        definition,
    },
};

use super::LOG_FILTER;
use crate::{
    args::{manifest::option as manifest_option, verify::Verify},
    bar::{on, progress, report_marking},
    exit::{Completion, Output, print, report},
    opened::{agreed, open_with_ledger},
    words::{self, counted},
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
        report(&format!("{what} Give another with {}", manifest_option()));
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
pub(super) fn print_left(verified: &Verified) -> Result<(), OperateError> {
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

pub(in crate::commands) fn about_nothing_text(about: &CountsAboutNothing) -> String {
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
pub(super) fn open_parts(n_undecided: usize, n_waiting: usize, n_unproven: usize) -> Vec<String> {
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
pub(super) fn finding_text(kind: &str, finding: &Finding, why: Option<&str>) -> String {
    let Finding { derivation, pk, sk, stored, derived, flaw } = finding;
    let behind = flaw.as_deref().or(why.filter(|_| kind != FINDING)).map(|why| format!(": {why}")).unwrap_or_default();
    let below = why.filter(|_| kind == FINDING).map(|why| format!("\n  proof     {why}")).unwrap_or_default();
    let [stored, derived] = [stored, derived].map(|item| item_text(item.as_ref()));
    let item = Key::new(pk, sk);
    format!("{kind:<11} {derivation}  {item}{behind}\n  stored    {stored}\n  derived   {derived}{below}")
}

fn unreadable_text(unreadable: &UnreadableItem) -> String {
    let UnreadableItem { derivation, pk, sk, why } = unreadable;
    let derivation = if derivation == "*" { "every derivation" } else { derivation };
    format!("unreadable  {}  by {derivation}: {why}", Key::new(pk, sk))
}

fn totals(n_items: usize, n_ignored: usize, n_unreadable: usize, n_findings: usize) -> String {
    let (items, findings) = (counted(n_items, "item"), counted(n_findings, "finding"));
    format!("{items}, {n_ignored} ignored, {n_unreadable} unreadable, {findings}")
}

/// An item as one line of JSON.
pub(in crate::commands) fn item_text(item: Option<&Item>) -> String {
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
