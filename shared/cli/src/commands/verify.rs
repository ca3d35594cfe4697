//! `ripple verify`: is every derived value what the definition says?

use std::io::{IsTerminal, stderr};

use engine::verify::{Finding, Verified, verify};
use keys::item::Item;
use runtime::logging;
use serde_json::json;

use super::LOG_FILTER;
use crate::{
    args::Verify,
    exit::{Ended, print},
    opened::open,
};

/// Compares the whole table, and prints the findings.
pub(crate) async fn run(args: &Verify) -> anyhow::Result<Ended> {
    logging::readable(LOG_FILTER);
    let opened = open(&args.connection).await?;
    let bar = progress(args.json);
    let verified = verify(&opened.schema, &opened.catalogue, &opened.store, |n_items| {
        bar.set_position(u64::try_from(n_items).unwrap_or(u64::MAX));
    })
    .await?;
    bar.finish_and_clear();
    print(&if args.json { as_json(&verified)?.to_string() } else { as_text(&verified) });
    Ok(if verified.findings.is_empty() { Ended::InStep } else { Ended::Findings })
}

fn progress(json: bool) -> indicatif::ProgressBar {
    if json || !stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    indicatif::ProgressBar::new_spinner()
        .with_style(indicatif::ProgressStyle::default_spinner())
        .with_message("reading the table")
}

/// The findings as one JSON object. Its names are stable.
fn as_json(verified: &Verified) -> anyhow::Result<serde_json::Value> {
    Ok(json!({
        "items": verified.n_items,
        "ignored": verified.n_ignored,
        "findings": serde_json::to_value(&verified.findings)?,
        "unreadable": serde_json::to_value(&verified.unreadable)?,
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
