//! `ripple audit`: how wrong the derived values are in a table that Ripple does not maintain. Only reads.

mod mend;
mod page;

use std::sync::{Arc, atomic::Ordering};

use derive::tally::Sum;
use functions::logging;
use keys::key::Key;
use operate::{
    audit::{
        AuditOptions, Audited, SeenSoFar, audit,
        totals::{DerivationAudit, NumberErrors, UnreadableGroup, WORST, WorstValue},
    },
    objects::audit::{audit_object, wrong_word},
};

use super::{
    LOG_FILTER,
    dev::stop_signal,
    verify::{about_nothing_text, item_text, knows},
};
use crate::{
    args::audit::AuditArgs,
    bar::{on, progress},
    commands::audit::mend::Mending,
    exit::{Completion, Usage, is_new, print, write_new},
    opened::open_application,
    words::{counted, print_json, time},
};

/// Audits, and prints the report.
pub(crate) async fn run(args: &AuditArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    if let Some(file) = &args.html {
        is_new(file, "--html")?;
    }
    let opened = open_application(&args.application).await?;
    if opened.catalogue.derivations().next().is_none() {
        let what = "the manifest declares no derivation, so there is nothing to compare: uncomment the proposals of \
                    `ripple init`, or declare what your code keeps";
        return Err(Usage(what.to_owned()).into());
    }
    let AuditArgs { segments, read_units, at_rest, values, .. } = *args;
    let options = AuditOptions { segments, read_units, at_rest, has_values: values };
    let (bar, seen, tables) = (progress(args.json), Arc::<SeenSoFar>::default(), opened.tables());
    let bar_progress = on(&bar, args.json);
    let interrupted = stop_signal()?;
    let audited = tokio::select! {
        audited = Box::pin(audit(&tables, &options, &seen, &bar_progress)) => audited?,
        () = interrupted => {
            bar.finish_and_clear();
            anyhow::bail!(interrupted_at(&seen));
        }
    };
    bar.finish_and_clear();
    let mending = Mending::of(&opened.schema, &opened.catalogue, &audited);
    if let Some(file) = &args.html {
        write_new(file, "--html", &page::page(&audited, &mending, (&opened.config.table, values), &bound(&audited)))?;
    }
    if args.json {
        print_json(audit_object(&audited, &mending.by_derivation, mending.total, &bound(&audited)));
    } else {
        print(&text(&audited, &mending, values));
    }
    let is_known = knows(&audited.extent);
    Ok(if audited.is_clean() && is_known { Completion::InStep } else { Completion::Findings })
}

/// The message about an interrupted audit.
fn interrupted_at(seen: &SeenSoFar) -> String {
    let [n_items, n_found, n_reads] =
        [&seen.n_items, &seen.n_differences, &seen.n_reads].map(|number| number.load(Ordering::Relaxed));
    let (items, found) = (counted(n_items, "item"), counted(n_found, "difference"));
    let which = if n_reads > 1 { "the second read" } else { "the first read" };
    format!(
        "interrupted: {which} of the table has read {items} and found {found} or unreadable items so far; counts are compared \
         after the last item"
    )
}

/// What the reads of the table prove.
fn bound(audited: &Audited) -> String {
    let span = |(began, ended): &(u64, u64)| format!("from {} to {}", time(*began), time(*ended));
    let spans: Vec<String> = audited.reads.iter().map(span).collect();
    match spans.as_slice() {
        [first, second] => format!(
            "two reads, {first} and {second}: a difference is wrong if both saw the same values, otherwise undecided; valid \
             for all items but those written between the first moment and the last"
        ),
        _ => format!("one read, {}: valid for all items but those written in that time", spans.join(", ")),
    }
}

// ---- The report as text ----

fn text(audited: &Audited, mending: &Mending, has_values: bool) -> String {
    let totals = &audited.totals;
    let width = totals.derivations.iter().map(|line| line.derivation.len()).max().unwrap_or_default();
    let mut lines: Vec<String> = totals.derivations.iter().map(|line| derivation_text(line, width)).collect();
    lines.retain(|line| !line.is_empty());
    lines.extend(totals.about_nothing.iter().map(about_nothing_text));
    lines.extend(totals.unreadable.iter().map(unreadable_text));
    lines.extend(totals.worst.iter().map(|named| worst_text(named, has_values)));
    let differing = |line: &DerivationAudit| line.wrong + line.missing + line.extra;
    let n_differing: usize = totals.derivations.iter().map(differing).sum();
    if n_differing > WORST {
        lines.push(format!("            and {} more", n_differing - WORST));
    }
    if mending.total.items > 0 {
        let (items, units) = (counted(mending.total.items, "item"), mending.total.write_units);
        lines.push(format!("mend        at most {items}, {units:.0} write unit{}", if units > 1.5 { "s" } else { "" }));
    }
    lines.push(format!("bound       {}", bound(audited)));
    let (items, n_ignored) = (counted(audited.extent.n_items, "item"), audited.extent.n_ignored);
    let n_undecided: usize = totals.derivations.iter().map(|line| line.undecided).sum();
    let undecided = if n_undecided > 0 { format!(", {n_undecided} undecided") } else { String::new() };
    let (n_unreadable, found) = (totals.n_unreadable, counted(n_differing, "difference"));
    lines.push(format!("{items}, {n_ignored} ignored, {n_unreadable} unreadable, {found}{undecided}"));
    lines.join("\n")
}

/// The line of a derivation; empty if there is nothing to compare and nothing to say.
fn derivation_text(line: &DerivationAudit, width: usize) -> String {
    let DerivationAudit { derivation, values, right, cannot_tell, .. } = line;
    let mut parts = Vec::new();
    if *values > 0 {
        parts.push(format!("{right} of {values} right"));
    }
    let states = [
        (line.wrong, "wrong"),
        (line.missing, "missing"),
        (line.extra, "extra"),
        (line.undecided, "undecided"),
        (line.unknown, "unknown"),
        (line.unreadable, "unreadable"),
    ];
    parts.extend(states.iter().filter(|(n, _)| *n > 0).map(|(n, state)| format!("{n} {state}")));
    let mut said = parts.join(", ");
    if let Some(errors) = &line.errors {
        said.push_str(&errors_text(errors));
    }
    if let Some(why) = cannot_tell {
        said = if said.is_empty() { why.clone() } else { format!("{said}; {why}") };
    }
    if said.is_empty() { String::new() } else { format!("{derivation:<width$}  {said}") }
}

fn errors_text(errors: &NumberErrors) -> String {
    let mean = errors.mean().unwrap_or_default();
    format!("; wrong ones are off by {mean} on average, by {} at most, by {} in sum", errors.largest, errors.sum)
}

fn unreadable_text(group: &UnreadableGroup) -> String {
    let UnreadableGroup { derivation, why, items, examples } = group;
    let derivation = if derivation == "*" { "every derivation" } else { derivation };
    let such: Vec<String> = examples.iter().map(Key::to_string).collect();
    format!("unreadable  {items}  by {derivation}: {why}, such as {}", such.join(", "))
}

fn worst_text(named: &WorstValue, has_values: bool) -> String {
    let WorstValue { finding, wrong, error } = named;
    let error = error.as_ref().map(signed).unwrap_or_default();
    let state = if error.is_empty() { wrong_word(*wrong).to_owned() } else { error };
    let item = Key::new(&finding.pk, &finding.sk);
    let line = format!("worst       {state:<8} {}  {item}", finding.derivation);
    if !has_values {
        return line;
    }
    let [stored, derived] = [&finding.stored, &finding.derived].map(|held| item_text(held.as_ref()));
    format!("{line}\n  stored    {stored}\n  derived   {derived}")
}

/// A number with its sign.
fn signed(error: &Sum) -> String {
    let text = error.to_string();
    if text.starts_with('-') { text } else { format!("+{text}") }
}
