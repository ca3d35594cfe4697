//! The object of `ripple audit --json`. Its names are stable.

use std::collections::BTreeMap;

use keys::key::Key;
use serde_json::{Value, json};

use super::{about_nothing, key};
use crate::{
    audit::{
        Audited,
        totals::{Band, DerivationAudit, NumberErrors, UnreadableGroup, WorstValue, Wrong},
    },
    words::time,
};

/// What it costs to correct a number of items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MendCost {
    /// Items to write.
    pub items: usize,
    /// Write units.
    pub write_units: f64,
}

/// The audit as an object. `costs` has the cost of each derivation, by its label, and `total` that of all of them.
#[must_use]
pub fn audit_object(audited: &Audited, costs: &BTreeMap<String, MendCost>, total: MendCost, bound: &str) -> Value {
    let totals = &audited.totals;
    let reads = audited.reads.iter().map(|(began, ended)| json!({ "began": time(*began), "ended": time(*ended) }));
    json!({
        "items": audited.extent.n_items,
        "ignored": audited.extent.n_ignored,
        "derivations": totals.derivations.iter().map(|line| derivation(line, costs)).collect::<Vec<_>>(),
        "worst": totals.worst.iter().map(worst).collect::<Vec<_>>(),
        "about_nothing": totals.about_nothing.iter().map(about_nothing).collect::<Vec<_>>(),
        "unreadable": totals.unreadable.iter().map(unreadable).collect::<Vec<_>>(),
        "mend": cost(total),
        "reads": reads.collect::<Vec<_>>(),
        "bound": bound,
        "read_units": audited.read_units,
    })
}

fn derivation(line: &DerivationAudit, costs: &BTreeMap<String, MendCost>) -> Value {
    json!({
        "derivation": line.derivation,
        "kind": line.kind,
        "values": line.values,
        "right": line.right,
        "wrong": line.wrong,
        "missing": line.missing,
        "extra": line.extra,
        "undecided": line.undecided,
        "unknown": line.unknown,
        "unreadable": line.unreadable,
        "errors": line.errors.as_ref().map(errors),
        "cannot_tell": line.cannot_tell,
        "mend": cost(costs.get(&line.derivation).copied().unwrap_or_default()),
    })
}

fn cost(MendCost { items, write_units }: MendCost) -> Value {
    json!({ "items": items, "write_units": write_units })
}

fn errors(errors: &NumberErrors) -> Value {
    let bands = errors.bands.iter().map(|(band, n)| band_object(*band, *n)).collect::<Vec<_>>();
    json!({
        "numbers": errors.numbers,
        "mean": errors.mean().unwrap_or_default().to_string(),
        "largest": errors.largest.to_string(),
        "sum": errors.sum.to_string(),
        "histogram": bands,
    })
}

fn band_object(band: Band, n: usize) -> Value {
    let (from, below) = band.range();
    json!({ "stored": if band.is_high { "too_high" } else { "too_low" }, "from": from, "below": below, "numbers": n })
}

/// The stable word for how a value differs.
#[must_use]
pub fn wrong_word(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Differs => "wrong",
        Wrong::Missing => "missing",
        Wrong::Extra => "extra",
    }
}

fn worst(named: &WorstValue) -> Value {
    let WorstValue { finding, wrong, error } = named;
    json!({
        "derivation": finding.derivation,
        "pk": finding.pk,
        "sk": finding.sk,
        "state": wrong_word(*wrong),
        "error": error.as_ref().map(ToString::to_string),
        "stored": finding.stored,
        "derived": finding.derived,
    })
}

fn unreadable(group: &UnreadableGroup) -> Value {
    let UnreadableGroup { derivation, why, items, examples } = group;
    let examples: Vec<Value> = examples.iter().map(|example: &Key| key(example)).collect();
    json!({ "derivation": derivation, "why": why, "items": items, "examples": examples })
}
