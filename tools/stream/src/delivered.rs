//! The time up to which all records of a stream have been delivered.
//!
//! The board has one entry for each shard that is not drained: the time up to which all records of the shard are
//! delivered, or `None` while that is unknown. The stream's time is the earliest of them. A shard enters the board
//! before its first read. Only a listing that began after the shard was drained removes it, and the same listing enters
//! its children, so there is no gap between parent and child. A shard that is never empty also makes progress: see
//! `Frontier`.
//!
//! # Counts
//!
//! The counts of a mapping: CloudWatch's metrics of an event source mapping, as far as they are counts.
//!
//! AWS publishes the counts if `MetricsConfig` has `EventCount`, and `IteratorAge` always. Here they are always
//! counted, from the notifications to an [`Observer`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    progress::{Invocation, InvocationOutcome, Observer},
    wiring::Wiring,
};

/// The oldest listing that a report may be based on, in seconds: two listing intervals and one slow answer.
const LISTING_SECONDS_MAX: u64 = 5;

/// The delivered times of one mapping's shards.
pub(crate) struct DeliveredBoard {
    wiring: Arc<Wiring>,
    board: Mutex<Board>,
}

#[derive(Default)]
struct Board {
    listed_at: Option<Instant>,
    /// The time up to which each shard is delivered; `None` while it is unknown.
    shards: BTreeMap<String, Option<Instant>>,
}

impl DeliveredBoard {
    pub(crate) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, board: Mutex::default() }
    }

    /// Replaces the shards by those that a listing found and that are not drained. The listing began at `since`.
    pub(crate) fn listed<'a>(&self, since: Instant, undrained: impl Iterator<Item = &'a str>) {
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
    pub(crate) fn delivered(&self, shard: &str, until: Instant) {
        let until = {
            let mut board = self.lock();
            if let Some(held) = board.shards.get_mut(shard) {
                *held = (*held).max(Some(until));
            }
            board.until()
        };
        self.report(until);
    }

    fn report(&self, until: Option<Instant>) {
        if let Some(until) = until {
            self.wiring.observer.delivered(&self.wiring.mapping.name, until.into_std());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn until(&self) -> Option<Instant> {
        let listed_at = self.listed_at.filter(|at| at.elapsed() <= Duration::from_secs(LISTING_SECONDS_MAX))?;
        let shards: Option<Vec<Instant>> = self.shards.values().copied().collect();
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
