//! `ripple verify`: is every derived value what the definition says?

mod loss;

use std::io::{IsTerminal, stderr};

use engine::verify::{Finding, Verified, verify};
use keys::item::Item;
use runtime::logging;
use serde_json::json;

use self::loss::Marked;
use super::LOG_FILTER;
use crate::{
    args::Verify,
    exit::{Ended, print},
    opened::open,
};

/// Compares the whole table, and prints the findings; and the marks of a possible loss, which go when there are none.
pub(crate) async fn run(args: &Verify) -> anyhow::Result<Ended> {
    logging::readable(LOG_FILTER);
    let opened = open(&args.connection).await?;
    let marks = loss::before(&opened).await?;
    let bar = progress(args.json);
    let verified = verify(&opened.schema, &opened.catalogue, &opened.store, |n_items| {
        bar.set_position(u64::try_from(n_items).unwrap_or(u64::MAX));
    })
    .await?;
    bar.finish_and_clear();
    let is_clean = verified.findings.is_empty();
    let marked = loss::settled(&opened, marks, args, is_clean).await?;
    if args.json {
        print(&as_json(&verified, &marked)?.to_string());
    } else {
        print(&as_text(&verified));
        for line in marked.iter().flat_map(|marked| marked.lines(args, is_clean)) {
            print(&line);
        }
    }
    Ok(if is_clean { Ended::InStep } else { Ended::Findings })
}

/// Progress for a person: a spinner on a terminal, nothing elsewhere.
pub(super) fn progress(json: bool) -> indicatif::ProgressBar {
    if json || !stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    indicatif::ProgressBar::new_spinner()
        .with_style(indicatif::ProgressStyle::default_spinner())
        .with_message("reading the table")
}

/// The findings as one JSON object. Its names are stable.
fn as_json(verified: &Verified, marked: &[Marked]) -> anyhow::Result<serde_json::Value> {
    Ok(json!({
        "items": verified.n_items,
        "ignored": verified.n_ignored,
        "findings": serde_json::to_value(&verified.findings)?,
        "unreadable": serde_json::to_value(&verified.unreadable)?,
        "possible_loss": marked.iter().map(Marked::as_json).collect::<Vec<_>>(),
    }))
}

/// The findings for a person.
pub(crate) fn as_text(verified: &Verified) -> String {
    let mut lines = Vec::new();
    for Finding { derivation, pk, sk, stored, derived, flaw } in &verified.findings {
        let flaw = flaw.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("finding     {derivation}  {pk} / {sk}{flaw}"));
        lines.push(format!("  stored    {}", item_text(stored.as_ref())));
        lines.push(format!("  derived   {}", item_text(derived.as_ref())));
    }
    for unreadable in &verified.unreadable {
        let derivation = if unreadable.derivation == "*" { "every derivation" } else { &unreadable.derivation };
        lines.push(format!("unreadable  {} / {}  by {derivation}: {}", unreadable.pk, unreadable.sk, unreadable.why));
    }
    let (n_findings, n_unreadable) = (verified.findings.len(), verified.unreadable.len());
    lines.push(format!(
        "{} items, {} ignored, {n_unreadable} unreadable, {n_findings} findings",
        verified.n_items, verified.n_ignored
    ));
    lines.join("\n")
}

fn item_text(item: Option<&Item>) -> String {
    match item {
        None => "no item".to_owned(),
        Some(item) if item.is_empty() => "no attribute".to_owned(),
        Some(item) => serde_json::to_string(item).unwrap_or_else(|error| error.to_string()),
    }
}
