//! Buffered records of one lane: read, but not yet delivered.
//!
//! Records leave in order, in batches. A batch respects the batch size and Lambda's payload limit, and never mixes
//! tumbling windows.
//!
//! # Sequence
//!
//! The order of sequence numbers.
//!
//! Sequence numbers are decimal integers of up to 40 digits. Some emulators pad them with zeros; AWS does not. So they
//! compare neither as text (`"820…"` sorts after `"1683…"`) nor as machine integers.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{
    event::{EVENT_OVERHEAD_BYTES, LambdaRecord},
    mapping::Mapping,
    window::{ATTRIBUTES_BYTES_MAX, STATE_BYTES_MAX, Window},
};

/// The largest event, in bytes. Source: Lambda's limit on the payload of a synchronous invocation.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;

/// `DynamoDB` Local rounds creation times down to a multiple of this.
const ROUNDING_SECONDS: u64 = 60;

/// A buffered record.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) record: LambdaRecord,
    /// When the record was read. Its batching window starts here.
    read_at: Instant,
    /// The record's age counts from this time.
    age_from: SystemTime,
    /// The creation time, or the time of the read if the creation time is missing or in the future.
    arrived: SystemTime,
}

impl Held {
    /// `read_at` and `now` are the same moment, on the monotonic clock and on the wall clock.
    pub(crate) fn new(record: LambdaRecord, read_at: Instant, now: SystemTime) -> Self {
        let age_from = age_from(record.created, now);
        // A creation time far in the future would open a window that never ends.
        let arrived = record.created.map_or(now, |created| created.min(now));
        Self { record, read_at, age_from, arrived }
    }

    /// Whether the record's age exceeds `age_ms_max`.
    pub(crate) fn is_older(&self, age_ms_max: u64, now: SystemTime) -> bool {
        now.duration_since(self.age_from).is_ok_and(|age| age > Duration::from_millis(age_ms_max))
    }

    /// The time since the record's creation; `None` without a creation time.
    pub(crate) fn age(&self, now: SystemTime) -> Option<Duration> {
        self.record.created.map(|created| now.duration_since(created).unwrap_or_default())
    }

    /// The record's tumbling window; `None` if `length_seconds` is 0.
    pub(crate) fn window(&self, length_seconds: u64) -> Option<Window> {
        Window::of(self.arrived, length_seconds)
    }

    /// The record's size in an event, with one comma.
    pub(crate) fn bytes(&self) -> usize {
        self.record.json.len() + 1
    }
}

/// The start of a record's age: its creation time. `DynamoDB` Local rounds creation times down to the minute, so a
/// creation time on a whole minute may be up to a minute too early. Such an age counts from the end of that minute, or
/// from `now` if that is earlier.
fn age_from(created: Option<SystemTime>, now: SystemTime) -> SystemTime {
    let Some(created) = created else { return now };
    let seconds = created.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_secs());
    if seconds.is_ok_and(|seconds| seconds.is_multiple_of(ROUNDING_SECONDS)) {
        let rounded = created.checked_add(Duration::from_secs(ROUNDING_SECONDS)).unwrap_or(created);
        rounded.min(now.max(created))
    } else {
        created
    }
}

/// Buffered records, oldest first.
#[derive(Debug)]
pub(crate) struct Buffer {
    held: VecDeque<Held>,
    bytes: usize,
    batch_size: usize,
    /// The most bytes of records in a batch.
    batch_bytes_max: usize,
    batching_window: Duration,
    tumbling_window_seconds: u64,
}

impl Buffer {
    pub(crate) fn new(mapping: &Mapping) -> Self {
        let tumbling_window_seconds = mapping.tumbling_window_seconds;
        // Room for the state is always reserved, because the state may grow between two attempts of a batch.
        let window_bytes = if tumbling_window_seconds > 0 { STATE_BYTES_MAX + ATTRIBUTES_BYTES_MAX } else { 0 };
        Self {
            held: VecDeque::new(),
            bytes: 0,
            batch_size: mapping.batch_size.max(1),
            batch_bytes_max: PAYLOAD_BYTES_MAX - EVENT_OVERHEAD_BYTES - window_bytes,
            batching_window: Duration::from_millis(mapping.batching_window_ms),
            tumbling_window_seconds,
        }
    }

    pub(crate) fn push(&mut self, held: Held) {
        self.bytes += held.bytes();
        self.held.push_back(held);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Bytes of all buffered records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest record's batching window ends; `None` if the buffer is empty.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.held.front().map(|held| held.read_at + self.batching_window)
    }

    /// Returns the next batch if it is due. A batch is due if it is full (by count or by bytes), if its batching window
    /// is over, if a record of another tumbling window follows, or if `flush` says that no more records will come.
    pub(crate) fn take_due(&mut self, now: Instant, flush: bool) -> Option<Vec<Held>> {
        let is_full = self.held.len() >= self.batch_size || self.bytes >= self.batch_bytes_max;
        let is_due = self.due_at().is_some_and(|due| due <= now);
        let length_seconds = self.tumbling_window_seconds;
        let window = self.held.front()?.window(length_seconds);
        let is_cut = self.held.back().is_some_and(|last| last.window(length_seconds) != window);
        if !(is_full || is_due || is_cut || flush) {
            return None;
        }
        let mut batch = Vec::new();
        let mut bytes = 0;
        // A single record over the limit is sent alone: the function's refusal is clearer than one from here.
        while let Some(held) = self.held.pop_front_if(|held| {
            let has_room = batch.len() < self.batch_size && bytes + held.bytes() <= self.batch_bytes_max;
            batch.is_empty() || (has_room && held.window(length_seconds) == window)
        }) {
            bytes += held.bytes();
            self.bytes -= held.bytes();
            batch.push(held);
        }
        Some(batch)
    }
}

// ---- The order of sequence numbers ----

/// The sort key of a sequence number. Sequence numbers are in the order of these keys.
///
/// ```
/// use stream::batch::order;
/// assert!(order("820400000000000001192334") < order("1683700000000000001135967"));
/// assert_eq!(order("000000000000000000042"), order("42"));
/// ```
#[must_use]
pub fn order(sequence_number: &str) -> (usize, &str) {
    let digits = sequence_number.trim_start_matches('0');
    (digits.len(), digits)
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
    async fn a_record_whose_time_is_to_come_is_in_the_window_of_its_arrival() {
        // The last whole minute that fits in an `i64` of seconds.
        let last_s = u64::try_from(i64::MAX).unwrap() / 60 * 60;
        for ahead_s in [2_300_000_000, last_s] {
            assert_eq!(held(ahead_s, 61, 10).window(30), held(61, 61, 10).window(30));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_cut_by_count() {
        let mut buffer = Buffer::new(&crate::mapping::Mapping { batch_size: 2, batching_window_ms: 1, ..mapping() });
        (0..5).for_each(|_| buffer.push(held(1, 1, 10)));
        assert_eq!(sizes(&mut buffer, false), [2, 2]);
        assert_eq!(sizes(&mut buffer, true), [1]);
    }

    /// Source: U2.
    #[tokio::test(start_paused = true)]
    async fn a_batch_is_cut_by_the_payload_limit() {
        let mut buffer = Buffer::new(&crate::mapping::Mapping { batching_window_ms: 1, ..mapping() });
        (0..3).for_each(|_| buffer.push(held(1, 1, PAYLOAD_BYTES_MAX / 2 - 20)));
        assert_eq!(sizes(&mut buffer, false), [2]);
        buffer.push(held(1, 1, PAYLOAD_BYTES_MAX + 1));
        assert_eq!(sizes(&mut buffer, false), [1, 1], "a record over the limit goes alone");
    }

    /// The state of a window may grow to a megabyte between two attempts of a batch.
    #[tokio::test(start_paused = true)]
    async fn a_batch_in_a_tumbling_window_leaves_room_for_the_state() {
        let mapping = crate::mapping::Mapping { tumbling_window_seconds: 60, batching_window_ms: 1, ..mapping() };
        let mut buffer = Buffer::new(&mapping);
        (0..3).for_each(|_| buffer.push(held(1, 1, PAYLOAD_BYTES_MAX / 2 - 20)));
        assert_eq!(sizes(&mut buffer, true), [1, 1, 1]);
        (0..3).for_each(|_| buffer.push(held(1, 1, (PAYLOAD_BYTES_MAX - 1024 * 1024) / 2 - 2 * 1024)));
        assert_eq!(sizes(&mut buffer, true), [2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_cut_where_the_tumbling_window_changes_and_is_due_then() {
        let mapping = crate::mapping::Mapping { tumbling_window_seconds: 60, batching_window_ms: 1, ..mapping() };
        let mut buffer = Buffer::new(&mapping);
        (58..=60).for_each(|created_s| buffer.push(held(created_s, 61, 10)));
        assert_eq!(sizes(&mut buffer, false), [2]);
        assert_eq!(sizes(&mut buffer, true), [1]);
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
