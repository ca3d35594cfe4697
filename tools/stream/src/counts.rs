//! What a mapping counts: `CloudWatch`'s metrics of an event source mapping, as far as they are counts.
//!
//! AWS counts them where `MetricsConfig` has `EventCount`, and `IteratorAge` always. Here they are counted from what an
//! [`Observer`] hears, whatever `MetricsConfig` says.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::progress::{Invocation, InvocationOutcome, Observer};

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
