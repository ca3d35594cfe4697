//! A verification, as `ripple verify` prints it and the console serves it.

use std::io::Write;

use engine::account::loss::Mark;
use keys::key::Key;
use serde_json::{Value, json};

use super::{VERSION, key};
use crate::{
    failure::OperateError,
    loss::{MarkFate, Marked},
    verify::{CountsAboutNothing, UnreadableItem},
    verifying::{
        ABOUT_NOTHING, FINDING, UNDECIDED, UNPROVEN, UNREADABLE, WAITING,
        verified::{UnlikeItems, Verified},
    },
    words::{time, visible},
};

/// The lists of the object, each with the kind of its entries.
const LISTS: [(&str, &str); 4] =
    [("findings", FINDING), ("undecided", UNDECIDED), ("waiting", WAITING), ("unreadable", UNREADABLE)];

/// Writes the object, piece by piece because it may be large, with at most so many entries in each list.
///
/// # Errors
///
/// [`OperateError`] when the file cannot be read, or nothing can be written.
pub fn write(
    out: &mut impl Write,
    verified: &Verified,
    marked: &[Marked],
    n_listed_max: usize,
) -> Result<(), OperateError> {
    let extent = &verified.extent;
    write!(out, "{{\"version\":{VERSION},\"items\":{},\"ignored\":{}", extent.n_items, extent.n_ignored)?;
    for (name, kind) in LISTS {
        write!(out, ",\"{name}\":[")?;
        let mut n_listed = 0;
        verified.each_entry(kind, |entry| {
            if n_listed < n_listed_max {
                let comma = if n_listed == 0 { "" } else { "," };
                write!(out, "{comma}{}", visible(entry))?;
            }
            n_listed += 1;
            Ok(())
        })?;
        write!(out, "]")?;
    }
    write!(out, ",\"about_nothing\":[")?;
    let mut comma = "";
    verified.each_entry(ABOUT_NOTHING, |entry| {
        let about: CountsAboutNothing = serde_json::from_str(entry)?;
        write!(out, "{comma}{}", visible(&about_nothing(&about).to_string()))?;
        comma = ",";
        Ok(())
    })?;
    write!(out, "],\"compared_types\":{}", visible(&compared_types(&verified.unlike()?).to_string()))?;
    write!(out, ",\"unproven\":{},\"read_units\":{}", verified.n_entries(UNPROVEN)?, verified.read_units)?;
    let marked: Vec<_> = marked.iter().map(possible_loss).collect();
    write!(out, ",\"possible_loss\":{}}}", serde_json::to_string(&marked)?)?;
    Ok(())
}

/// The counts of a derivation that are about items that do not exist, as an object.
fn about_nothing(about: &CountsAboutNothing) -> Value {
    let CountsAboutNothing { derivation, counts, examples } = about;
    let examples: Vec<Value> = examples.iter().map(|(pk, sk)| key(&Key::new(pk, sk))).collect();
    json!({ "derivation": derivation, "counts": counts, "examples": examples })
}

/// The items of which a condition compares a value with one of another type, as objects.
fn compared_types(all: &[UnlikeItems]) -> Value {
    let one = |UnlikeItems { items, example: UnreadableItem { derivation, pk, sk, why } }: &UnlikeItems| json!({ "derivation": derivation, "items": items, "example": key(&Key::new(pk, sk)), "why": why });
    all.iter().map(one).collect()
}

/// A mark of a possible loss, as an object.
fn possible_loss(marked: &Marked) -> Value {
    let Mark { family, stream, shard, since_ms, until_ms, late_ms } = &marked.mark;
    json!({
        "family": family,
        "stream": stream,
        "shard": shard,
        "since": time(*since_ms),
        "until": time(*until_ms),
        "late_ms": late_ms,
        "cleared": marked.fate == MarkFate::Removed,
    })
}
