//! How `ripple verify` prints the marks of a possible loss.

use engine::account::loss::Mark;
use operate::loss::{MarkFate, Marked};

use crate::time;

/// Two lines: the possible loss, and what happened to its mark.
pub(super) fn lines(marked: &Marked) -> [String; 2] {
    let Mark { family, shard, since_ms, until_ms, late_ms, .. } = &marked.mark;
    let (since, until, hours) = (time::text(*since_ms), time::text(*until_ms), late_ms / 3_600_000);
    let of = [family.as_str(), marked.mark.stream_label(), shard].join(" ");
    let became = match marked.fate {
        MarkFate::Removed => "nothing that can be corrected is missing: the mark is removed",
        MarkFate::Kept => "the mark stays until nothing is found that can be corrected",
        MarkFate::PartRead => "the mark stays: only a verify of the whole table can remove it",
        MarkFate::NotPermitted => "nothing that can be corrected is missing: give --yes to remove the mark",
        MarkFate::Renewed => "the mark was renewed meanwhile: verify again",
    };
    let line = format!("possible loss  {}  records came {hours} hours late, from {since} to {until}", of.trim_end());
    [line, format!("  {became}")]
}
