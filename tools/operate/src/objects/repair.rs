//! A repair, as `ripple repair` prints it and the console serves it.

use serde_json::{Map, Value, json};

use crate::{
    failure::OperateError,
    repair::{Remedy, Repaired},
    repairing::{Mended, Summary, Sums},
    verifying::{UNDECIDED, WAITING, verified::Verified},
};

/// The numbers of a repair, of a table of so many items.
#[must_use]
pub fn repair_sums(summary: &Summary, n_items: usize) -> Map<String, Value> {
    let Summary {
        sums: Sums { done, not_needed, refused, would },
        n_undecided,
        n_waiting,
        n_unproven,
        n_unreadable,
        ..
    } = *summary;
    let sums = [
        ("items", n_items),
        ("done", done),
        ("not_needed", not_needed),
        ("refused", refused),
        ("would", would),
        ("undecided", n_undecided),
        ("waiting", n_waiting),
        ("unproven", n_unproven),
        ("unreadable", n_unreadable),
    ];
    sums.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect()
}

/// Gives each difference that the last verification of a repair left, as a JSON text.
///
/// # Errors
///
/// [`OperateError`] when the file cannot be read, or that of `act`.
pub fn each_left(last: &Verified, mut act: impl FnMut(String) -> Result<(), OperateError>) -> Result<(), OperateError> {
    for kind in [UNDECIDED, WAITING] {
        last.each_entry(kind, |entry| act(format!("{{\"kind\":\"{kind}\",\"difference\":{entry}}}")))?;
    }
    Ok(())
}

/// The outcome for a finding.
#[must_use]
pub fn repair_object(mended: &Mended) -> Value {
    let Mended { difference, remedy, repaired } = mended;
    let (outcome, why) = match (remedy, repaired) {
        (Remedy::None { why }, _) | (_, Some(Repaired::Refused { why })) => ("refused", Some(why)),
        (_, None) => ("would", None),
        (_, Some(Repaired::Done)) => ("done", None),
        (_, Some(Repaired::NotNeeded)) => ("not_needed", None),
        (_, Some(Repaired::Overtaken)) => ("overtaken", None),
    };
    let remedy = match remedy {
        Remedy::Refresh => json!({ "remedy": "derive" }),
        Remedy::Add { count, sum } => json!({ "remedy": "add", "count": count, "sum": sum.to_string() }),
        Remedy::SetIndexKeys => json!({ "remedy": "set_index_keys" }),
        Remedy::Delete => json!({ "remedy": "delete" }),
        Remedy::None { .. } => Value::Null,
    };
    json!({ "finding": difference.finding, "remedy": remedy, "outcome": outcome, "why": why })
}
