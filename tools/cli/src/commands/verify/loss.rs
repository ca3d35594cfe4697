//! How `ripple verify` prints the marks of a possible loss.

use engine::account::loss::Mark;
use operate::loss::Marked;
use serde_json::{Value, json};

use crate::{args::verify::Verify, time};

/// The names are stable.
pub(super) fn as_json(marked: &Marked) -> Value {
    let Mark { families, stream, shard, since_ms, until_ms, late_ms } = &marked.mark;
    json!({
        "families": families,
        "stream": stream,
        "shard": shard,
        "since": time::text(*since_ms),
        "until": time::text(*until_ms),
        "late_ms": late_ms,
        "cleared": marked.is_cleared,
    })
}

/// Two lines: the possible loss, and what happened to its mark.
pub(super) fn lines(marked: &Marked, args: &Verify, is_clean: bool) -> [String; 2] {
    let Mark { families, shard, since_ms, until_ms, late_ms, .. } = &marked.mark;
    let (since, until, hours) = (time::text(*since_ms), time::text(*until_ms), late_ms / 3_600_000);
    let of = [families.as_str(), marked.mark.stream_label(), shard].join(" ");
    let became = if marked.is_cleared {
        "nothing is missing: the mark is removed"
    } else if !is_clean {
        "the mark stays until nothing is found"
    } else if args.connection.aws && !args.yes {
        "nothing is missing: give --yes to remove the mark"
    } else {
        "the mark was renewed meanwhile: verify again"
    };
    let line = format!("possible loss  {}  records came {hours} hours late, from {since} to {until}", of.trim_end());
    [line, format!("  {became}")]
}
