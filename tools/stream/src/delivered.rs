//! Up to when everything that was in the stream has been delivered.
//!
//! One entry for each shard that is not drained: the time up to which its records are all delivered, or nothing before
//! that is known. The stream's time is the earliest of them. A shard is entered before its first read and struck out only
//! by a listing that was made after it was drained, which enters its children in the same step, so there is no gap between
//! parent and child. A shard that is never empty still gets on: see `Frontier`.
//!
//! # Counts
//!
//! What a mapping counts: `CloudWatch`'s metrics of an event source mapping, as far as they are counts.
//!
//! AWS counts them where `MetricsConfig` has `EventCount`, and `IteratorAge` always. Here they are counted from what an
//! [`Observer`] hears, whatever `MetricsConfig` says.

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

/// The oldest listing that a report may rest on, in seconds: two refreshes and a slow answer.
const LISTING_SECONDS_MAX: u64 = 5;

/// The board of one mapping.
pub(crate) struct DeliveredBoard {
    wiring: Arc<Wiring>,
    board: Mutex<Board>,
}

#[derive(Default)]
struct Board {
    listed_at: Option<Instant>,
    /// Up to when each shard is delivered; `None` before that is known.
    shards: BTreeMap<String, Option<Instant>>,
}

impl DeliveredBoard {
    pub(crate) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, board: Mutex::default() }
    }

    /// A listing that began at `since` found these shards that are not drained.
    pub(crate) fn listed<'a>(&self, since: Instant, undrained: impl Iterator<Item = &'a str>) {
        let until = {
            let mut board = self.lock();
            let shards =
                undrained.map(|shard| (shard.to_owned(), board.shards.get(shard).copied().flatten())).collect();
            board.shards = shards;
            board.listed_at = Some(since);
            // Without shards there is no read that could report it; else the next read does.
            if board.shards.is_empty() { board.until() } else { None }
        };
        self.report(until);
    }

    /// All records of a shard that were made before `until` are delivered.
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

/// The counts of one mapping, in records. The names are AWS's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCount {
    /// `PolledEventCount`: read from the stream.
    pub polled: usize,
    /// `FilteredOutEventCount`: matched by no filter.
    pub filtered_out: usize,
    /// `InvokedEventCount`: handed to the function; retries count again.
    pub invoked: usize,
    /// `FailedInvokeEventCount`: of invocations that failed, also of those that reported failures.
    pub failed_invoke: usize,
    /// `DroppedEventCount`: given up on without a trace.
    pub dropped: usize,
    /// `OnFailureDestinationDeliveredEventCount`: given up on, with a failure record in the destination.
    pub on_failure_delivered: usize,
    /// `IteratorAge`: the greatest age of the last record of a batch.
    pub iterator_age_max: Duration,
}

/// The counts of mappings, by their names.
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

    fn filtered_out(&self, mapping: &str, n_records: usize) {
        self.count(mapping, |counts| counts.filtered_out += n_records);
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
