//! The records of one shard that were read and not yet delivered.
//!
//! They leave in order, as batches that keep the batch size and Lambda's payload limit.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::event::{EVENT_OVERHEAD_BYTES, LambdaRecord};
use crate::mapping::Mapping;

/// The largest event, in bytes. Source: Lambda's limit on the payload of a synchronous invocation.
const PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;

/// What `DynamoDB` Local rounds creation times down to.
const ROUNDING_SECONDS: u64 = 60;

/// A record that waits for its batch.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) record: LambdaRecord,
    /// When it was read: the batching window counts from here.
    read_at: Instant,
    /// When its age counts from.
    age_from: SystemTime,
}

impl Held {
    /// A record read at this instant, at this time of day.
    pub(crate) fn new(record: LambdaRecord, read_at: Instant, now: SystemTime) -> Self {
        let age_from = age_from(record.created, now);
        Self { record, read_at, age_from }
    }

    /// Whether the record is older than this, in milliseconds.
    pub(crate) fn is_older(&self, age_ms_max: u64, now: SystemTime) -> bool {
        now.duration_since(self.age_from).is_ok_and(|age| age > Duration::from_millis(age_ms_max))
    }

    fn bytes(&self) -> usize {
        self.record.json.len() + 1
    }
}

/// A record's age counts from its creation. A creation on the whole minute may be `DynamoDB` Local's rounding, so there
/// it counts from the end of that minute, or from now when that is earlier.
fn age_from(created: Option<SystemTime>, now: SystemTime) -> SystemTime {
    let Some(created) = created else { return now };
    let seconds = created.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_secs());
    if seconds.is_ok_and(|seconds| seconds.is_multiple_of(ROUNDING_SECONDS)) {
        (created + Duration::from_secs(ROUNDING_SECONDS)).min(now.max(created))
    } else {
        created
    }
}

/// The records that wait, oldest first.
#[derive(Debug)]
pub(crate) struct Buffer {
    held: VecDeque<Held>,
    bytes: usize,
    batch_size: usize,
    window: Duration,
}

impl Buffer {
    pub(crate) fn new(mapping: &Mapping) -> Self {
        let window = Duration::from_millis(mapping.batching_window_ms);
        Self { held: VecDeque::new(), bytes: 0, batch_size: mapping.batch_size.max(1), window }
    }

    pub(crate) fn push(&mut self, held: Held) {
        self.bytes += held.bytes();
        self.held.push_back(held);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the window of the oldest record ends, `None` when nothing waits.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.held.front().map(|held| held.read_at + self.window)
    }

    /// The next batch if one is due: full by count or by bytes, its window over, or `flush` because no more will come.
    pub(crate) fn take_due(&mut self, now: Instant, flush: bool) -> Option<Vec<Held>> {
        let is_full = self.held.len() >= self.batch_size || EVENT_OVERHEAD_BYTES + self.bytes >= PAYLOAD_BYTES_MAX;
        let is_due = self.due_at().is_some_and(|due| due <= now);
        if self.is_empty() || !(is_full || is_due || flush) {
            return None;
        }
        let mut batch = Vec::new();
        let mut bytes = EVENT_OVERHEAD_BYTES;
        // A single record over the limit goes alone: the function's refusal is clearer than ours.
        while let Some(held) = self.held.pop_front_if(|held| {
            batch.is_empty() || (batch.len() < self.batch_size && bytes + held.bytes() <= PAYLOAD_BYTES_MAX)
        }) {
            bytes += held.bytes();
            self.bytes -= held.bytes();
            batch.push(held);
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, Held, PAYLOAD_BYTES_MAX};
    use crate::event::LambdaRecord;
    use crate::tests::world::mapping;
    use std::time::{Duration, SystemTime};
    use tokio::time::Instant;

    fn held(created_s: u64, now_s: u64, n_bytes: usize) -> Held {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let record =
            LambdaRecord { sequence_number: "1".into(), created: Some(at(created_s)), json: "x".repeat(n_bytes) };
        Held::new(record, Instant::now(), at(now_s))
    }

    fn sizes(buffer: &mut Buffer, flush: bool) -> Vec<usize> {
        std::iter::from_fn(|| buffer.take_due(Instant::now(), flush)).map(|batch| batch.len()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_cut_by_count() {
        let mut buffer = Buffer::new(&crate::mapping::Mapping { batch_size: 2, batching_window_ms: 1, ..mapping() });
        (0..5).for_each(|_| buffer.push(held(1, 1, 10)));
        assert_eq!(sizes(&mut buffer, false), [2, 2]);
        assert_eq!(sizes(&mut buffer, true), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_cut_by_the_payload_limit() {
        let mut buffer = Buffer::new(&crate::mapping::Mapping { batching_window_ms: 1, ..mapping() });
        (0..3).for_each(|_| buffer.push(held(1, 1, PAYLOAD_BYTES_MAX / 2 - 20)));
        assert_eq!(sizes(&mut buffer, false), [2]);
        buffer.push(held(1, 1, PAYLOAD_BYTES_MAX + 1));
        assert_eq!(sizes(&mut buffer, false), [1, 1], "a record over the limit goes alone");
    }

    #[tokio::test(start_paused = true)]
    async fn an_age_counts_from_creation_unless_that_may_be_rounded_to_the_minute() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(held(601, 650, 1).is_older(48_000, at(650)));
        assert!(!held(600, 650, 1).is_older(48_000, at(650)));
        assert!(held(600, 650, 1).is_older(48_000, at(699)));
        assert!(held(600, 1000, 1).is_older(48_000, at(1000)));
    }
}
