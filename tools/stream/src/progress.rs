//! What a mapping reports while it runs.
//!
//! # The time up to which all records are delivered
//!
//! The board has one entry for each shard that is not drained: the time up to which all records of the shard are
//! delivered, or `None` while that is unknown. The stream's time is the earliest of them. A shard enters the board
//! before its first read. Only a listing that began after the shard was drained removes it, and the same listing enters
//! its children, so there is no gap between parent and child. A shard that is never empty also makes progress: see
//! `Frontier`.
//!
//! # Counts
//!
//! CloudWatch's metrics of an event source mapping, as far as they are counts. AWS publishes the counts if
//! `MetricsConfig` has `EventCount`, and `IteratorAge` always. Here they are always counted, from the notifications to
//! an [`Observer`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::poller::Wiring;

/// The reason in a message if the database, or another service, does not answer at all.
pub const NOTHING_RESPONDS: &str = "nothing responds";

/// Receives a mapping's notifications. Each method does nothing by default, so an observer implements only those that
/// it needs.
///
/// The tasks of the mapping call the methods, which must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Called after each invocation that reached the function.
    fn invoked(&self, _report: &Invocation) {}

    /// Records were read, including those that no filter matches, but not those that AWS would not have written.
    fn polled(&self, _mapping: &str, _n_records: usize) {}

    /// Records were passed over, because no filter matches them. Each is the JSON text that filters match.
    fn filtered_out(&self, _mapping: &str, _records: &[&str]) {}

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
    fn delivered(&self, _mapping: &str, _until: Instant) {}

    /// Records were discarded. `key` is the key of their failure record in the destination; `None` if the mapping has
    /// no destination.
    fn discarded(&self, _mapping: &str, _shard: &str, _n_records: usize, _key: Option<&str>) {}

    /// `MODIFY` records were passed over because they change nothing (see [`crate::event`]).
    fn dropped_equal(&self, _mapping: &str, _n: usize) {}

    /// A problem, in one line. It is reported once until it is over; the mapping retries by itself. The line ends with
    /// [`NOTHING_RESPONDS`] if that is the reason.
    fn trouble(&self, _mapping: &str, _message: &str) {}
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

// ---- The time up to which all records are delivered ----

/// The oldest listing that a report may be based on, in seconds: two listing intervals and one slow answer.
const LISTING_SECONDS_MAX: u64 = 5;

/// The delivered times of one mapping's shards.
pub(crate) struct DeliveredBoard {
    wiring: Arc<Wiring>,
    board: Mutex<Board>,
}

#[derive(Default)]
struct Board {
    listed_at: Option<tokio::time::Instant>,
    /// The time up to which each shard is delivered; `None` while it is unknown.
    shards: BTreeMap<String, Option<tokio::time::Instant>>,
}

impl DeliveredBoard {
    pub(crate) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, board: Mutex::default() }
    }

    /// Replaces the shards by those that a listing found and that are not drained. The listing began at `since`.
    pub(crate) fn listed<'a>(&self, since: tokio::time::Instant, undrained: impl Iterator<Item = &'a str>) {
        let until = {
            let mut board = self.lock();
            let shards =
                undrained.map(|shard| (shard.to_owned(), board.shards.get(shard).copied().flatten())).collect();
            board.shards = shards;
            board.listed_at = Some(since);
            // Without shards no read can report, so the listing does. Otherwise the next read reports.
            if board.shards.is_empty() { board.until() } else { None }
        };
        self.report(until);
    }

    /// All records of a shard that were created before `until` are delivered.
    pub(crate) fn delivered(&self, shard: &str, until: tokio::time::Instant) {
        let until = {
            let mut board = self.lock();
            if let Some(held) = board.shards.get_mut(shard) {
                *held = (*held).max(Some(until));
            }
            board.until()
        };
        self.report(until);
    }

    fn report(&self, until: Option<tokio::time::Instant>) {
        if let Some(until) = until {
            self.wiring.observer.delivered(&self.wiring.mapping.name, until.into_std());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn until(&self) -> Option<tokio::time::Instant> {
        let listed_at = self.listed_at.filter(|at| at.elapsed() <= Duration::from_secs(LISTING_SECONDS_MAX))?;
        let shards: Option<Vec<tokio::time::Instant>> = self.shards.values().copied().collect();
        Some(shards?.into_iter().min().unwrap_or(listed_at))
    }
}

// ---- counts ----

/// The counts of one mapping, in records, and its greatest iterator age. The names are AWS's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCount {
    /// `PolledEventCount`: read from the stream.
    pub polled: usize,
    /// `FilteredOutEventCount`: matched by no filter.
    pub filtered_out: usize,
    /// `InvokedEventCount`: sent to the function. A retry counts again.
    pub invoked: usize,
    /// `FailedInvokeEventCount`: sent in invocations that failed or reported failures.
    pub failed_invoke: usize,
    /// `DroppedEventCount`: discarded without a failure record.
    pub dropped: usize,
    /// `OnFailureDestinationDeliveredEventCount`: discarded, with a failure record in the destination.
    pub on_failure_delivered: usize,
    /// `IteratorAge`: the greatest age of the last record of a batch.
    pub iterator_age_max: Duration,
}

/// Counts by the mapping's name.
#[derive(Debug, Default)]
pub struct MappingCounts {
    mappings: Mutex<BTreeMap<String, EventCount>>,
}

impl MappingCounts {
    /// The counts of a mapping so far.
    #[must_use]
    pub fn of(&self, mapping: &str) -> EventCount {
        self.mappings().get(mapping).copied().unwrap_or_default()
    }

    fn mappings(&self) -> MutexGuard<'_, BTreeMap<String, EventCount>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, mapping: &str, count: impl FnOnce(&mut EventCount)) {
        count(self.mappings().entry(mapping.to_owned()).or_default());
    }
}

impl Observer for MappingCounts {
    fn polled(&self, mapping: &str, n_records: usize) {
        self.count(mapping, |counts| counts.polled += n_records);
    }

    fn filtered_out(&self, mapping: &str, records: &[&str]) {
        self.count(mapping, |counts| counts.filtered_out += records.len());
    }

    fn invoked(&self, report: &Invocation) {
        self.count(&report.mapping, |counts| {
            counts.invoked += report.n_records;
            if report.outcome != InvocationOutcome::Success {
                counts.failed_invoke += report.n_records;
            }
            counts.iterator_age_max = counts.iterator_age_max.max(report.iterator_age.unwrap_or_default());
        });
    }

    fn discarded(&self, mapping: &str, _shard: &str, n_records: usize, key: Option<&str>) {
        self.count(mapping, |counts| match key {
            Some(_) => counts.on_failure_delivered += n_records,
            None => counts.dropped += n_records,
        });
    }
}
