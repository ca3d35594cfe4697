//! What a mapping reports while it runs.

use std::time::{Duration, Instant};

/// Why something stands in the way when the database, or whatever is called, gives no answer at all.
pub const NOTHING_RESPONDS: &str = "nothing responds";

/// Is notified of what happens. Every method has an empty body, so an observer says only what it wants to know.
///
/// The methods are called from the tasks that do the work: they must be quick and must not block.
pub trait Observer: Send + Sync {
    /// After each invocation that reached the function.
    fn invoked(&self, report: &Invocation) {
        let _: &Invocation = report;
    }

    /// Records were read, those among them that no filter matches too; not those that AWS would not have written.
    fn polled(&self, mapping: &str, n_records: usize) {
        let _: (&str, usize) = (mapping, n_records);
    }

    /// Records were left out because no filter matches them.
    fn filtered_out(&self, mapping: &str, n_records: usize) {
        let _: (&str, usize) = (mapping, n_records);
    }

    /// Everything that was in the stream at `until` has been delivered, discarded or filtered out.
    ///
    /// Notified when every known shard is drained, or has delivered all records of a read that began at `until` or later
    /// and found less than it asked for, or of one whose last record was made at `until` or later. Later records may be
    /// under way meanwhile, so this is notified of a stream that is never empty, too. A shard that waits for its parent
    /// keeps this from being reported. The shards were listed at most a few seconds ago, and again since a shard ended.
    ///
    /// The final invocation of a tumbling window has no records, so it does not keep this from being reported: neither while
    /// the window is open, which may be for minutes, nor while the invocation runs or is tried again. Who waits for what
    /// final invocations write must wait for them by [`Observer::invoked`]. Records that wait behind one, because they are
    /// of the next window, do keep this from being reported, and so does a shard whose end waits for one.
    ///
    /// Sound on a stream of which a read finds all that there is, up to what it asks for (the emulators). On AWS an empty
    /// page may come before the end, and creation times are approximate, so there a caller adds a margin.
    fn delivered(&self, mapping: &str, until: Instant) {
        let _: (&str, Instant) = (mapping, until);
    }

    /// Records were given up on: their failure record is in the destination under this key, or nowhere where the mapping
    /// has no destination.
    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: Option<&str>) {
        let _: (&str, &str, usize, Option<&str>) = (mapping, shard, n_records, key);
    }

    /// `MODIFY` records were left out because they change nothing (see [`crate::event`]).
    fn dropped_equal(&self, mapping: &str, n: usize) {
        let _: (&str, usize) = (mapping, n);
    }

    /// Something stands in the way, in one line. Reported once until it is over; the work is tried again by itself. The
    /// line ends with [`NOTHING_RESPONDS`] where that is why.
    fn trouble(&self, mapping: &str, message: &str) {
        let _: (&str, &str) = (mapping, message);
    }
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The mapping's name.
    pub mapping: String,
    /// The shard that the batch is from.
    pub shard: String,
    /// The records of the batch; 0 for the final invocation of a tumbling window.
    pub n_records: usize,
    /// How it ended.
    pub outcome: InvocationOutcome,
    /// Which try of this batch it was, from 1. It starts over when the checkpoint moved.
    pub attempt: u32,
    /// How old the last record of the batch was, of `CloudWatch`'s `IteratorAge`; `None` without records, or where the
    /// record does not say when it was made.
    pub iterator_age: Option<Duration>,
    /// From `started` to `ended`.
    pub elapsed: Duration,
    /// When the function was invoked.
    pub started: Instant,
    /// When it answered.
    pub ended: Instant,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvocationOutcome {
    /// The batch is done.
    Success,
    /// The function reported failures: everything from the lowest on is tried again.
    Partial {
        /// The lowest failed sequence number.
        lowest: String,
    },
    /// All of the batch failed.
    Failed {
        /// Why, in one line.
        message: String,
    },
}
