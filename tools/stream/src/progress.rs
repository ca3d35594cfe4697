//! What a mapping reports while it runs.

use std::time::{Duration, Instant};

/// The reason in a message if the database, or another service, does not answer at all.
pub const NOTHING_RESPONDS: &str = "nothing responds";

/// Receives a mapping's notifications. Each method does nothing by default, so an observer implements only those that
/// it needs.
///
/// The tasks of the mapping call the methods, which must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Called after each invocation that reached the function.
    fn invoked(&self, report: &Invocation) {
        let _: &Invocation = report;
    }

    /// Records were read, including those that no filter matches, but not those that AWS would not have written.
    fn polled(&self, mapping: &str, n_records: usize) {
        let _: (&str, usize) = (mapping, n_records);
    }

    /// Records were passed over, because no filter matches them. Each is the JSON text that filters match.
    fn filtered_out(&self, mapping: &str, records: &[&str]) {
        let _: (&str, &[&str]) = (mapping, records);
    }

    /// All records that were in the stream at `until` have been delivered, discarded or filtered out.
    ///
    /// This is reported when each known shard is drained or has delivered all records of a suitable read. A read is
    /// suitable if it began at `until` or later and returned fewer records than it asked for, or if its last record was
    /// created at `until` or later. Newer records may be in progress, so this is also reported for a stream that is
    /// never empty. A shard that waits for its parent prevents the report. The shards were listed at most a few seconds
    /// ago, and again since a shard ended.
    ///
    /// The final invocation of a tumbling window has no records, so it does not prevent the report: neither while the
    /// window is open, which may last minutes, nor while the invocation runs or is retried. A caller that needs the
    /// writes of final invocations must wait for them with [`Observer::invoked`]. Records of the next window that wait
    /// for a final invocation do prevent the report, and so does a shard whose end waits for one.
    ///
    /// The report is reliable if a read returns all existing records up to its limit, as on emulators. On AWS an empty
    /// page may come before the end, and creation times are approximate, so a caller there adds a margin.
    fn delivered(&self, mapping: &str, until: Instant) {
        let _: (&str, Instant) = (mapping, until);
    }

    /// Records were discarded. `key` is the key of their failure record in the destination; `None` if the mapping has
    /// no destination.
    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: Option<&str>) {
        let _: (&str, &str, usize, Option<&str>) = (mapping, shard, n_records, key);
    }

    /// `MODIFY` records were passed over because they change nothing (see [`crate::event`]).
    fn dropped_equal(&self, mapping: &str, n: usize) {
        let _: (&str, usize) = (mapping, n);
    }

    /// A problem, in one line. It is reported once until it is over; the mapping retries by itself. The line ends with
    /// [`NOTHING_RESPONDS`] if that is the reason.
    fn trouble(&self, mapping: &str, message: &str) {
        let _: (&str, &str) = (mapping, message);
    }
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The mapping's name.
    pub mapping: String,
    /// The shard of the batch.
    pub shard: String,
    /// The records of the batch; 0 for the final invocation of a tumbling window.
    pub n_records: usize,
    /// How it ended.
    pub outcome: InvocationOutcome,
    /// Which attempt of this batch it was, from 1. The count starts again when the checkpoint moves.
    pub attempt: u32,
    /// The age of the batch's last record, for CloudWatch's `IteratorAge`. `None` without records, or without a
    /// creation time.
    pub iterator_age: Option<Duration>,
    /// From `started` to `ended`.
    pub elapsed: Duration,
    /// When the function was invoked.
    pub started: Instant,
    /// When the function answered.
    pub ended: Instant,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvocationOutcome {
    /// The batch is done.
    Success,
    /// The function reported failures. All records from the lowest on are retried.
    Partial {
        /// The lowest failed sequence number.
        lowest: String,
    },
    /// The whole batch failed.
    Failed {
        /// The reason, in one line.
        message: String,
    },
}
