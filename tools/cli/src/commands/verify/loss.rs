//! Marks of a possible loss: told by `ripple verify`, and taken away when it finds nothing.

use engine::loss::{Mark, clear, marks};
use serde_json::{Value, json};

use crate::{args::verify::Verify, opened::Opened, time};

/// A mark, and whether it was taken away.
pub(super) struct Marked {
    mark: Mark,
    is_cleared: bool,
}

/// The marks that there are before the table is read.
pub(super) async fn before(opened: &Opened) -> anyhow::Result<Vec<Mark>> {
    Ok(marks(&opened.store).await?)
}

/// Takes these marks away when nothing was found; on the real AWS only with `--yes`.
pub(super) async fn settled(
    opened: &Opened,
    marks: Vec<Mark>,
    args: &Verify,
    is_clean: bool,
) -> anyhow::Result<Vec<Marked>> {
    let may_write = is_clean && (!args.connection.aws || args.yes);
    let mut marked = Vec::new();
    for mark in marks {
        let is_cleared = may_write && clear(&opened.store, &mark).await?;
        marked.push(Marked { mark, is_cleared });
    }
    Ok(marked)
}

impl Marked {
    /// As JSON. Its names are stable.
    pub(super) fn as_json(&self) -> Value {
        let Mark { families, stream, shard, since_ms, until_ms, late_ms } = &self.mark;
        json!({
            "families": families,
            "stream": stream,
            "shard": shard,
            "since": time::text(*since_ms),
            "until": time::text(*until_ms),
            "late_ms": late_ms,
            "cleared": self.is_cleared,
        })
    }

    /// For a person: what may be lost, and what became of the mark.
    pub(super) fn lines(&self, args: &Verify, is_clean: bool) -> [String; 2] {
        let Mark { families, shard, since_ms, until_ms, late_ms, .. } = &self.mark;
        let (since, until, hours) = (time::text(*since_ms), time::text(*until_ms), late_ms / 3_600_000);
        let of = [families.as_str(), self.mark.stream_label(), shard].join(" ");
        let became = if self.is_cleared {
            "nothing is missing: the mark is taken away"
        } else if !is_clean {
            "the mark stays until nothing is found"
        } else if args.connection.aws && !args.yes {
            "nothing is missing: give --yes to take the mark away"
        } else {
            "it was seen again meanwhile: verify once more"
        };
        let told =
            format!("possible loss  {}  records came {hours} hours late, from {since} to {until}", of.trim_end());
        [told, format!("  {became}")]
    }
}
