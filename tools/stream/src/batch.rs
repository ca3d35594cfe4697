//! Buffered records of one lane, read but not yet delivered, and the tumbling windows that they belong to.
//!
//! Records leave in order, in batches. A batch respects the batch size and Lambda's payload limit, and never mixes
//! tumbling windows.
//!
//! # Tumbling windows
//!
//! A window covers approximate arrival times, which for `DynamoDB` are creation times. Windows are aligned to
//! 1970-01-01T00:00:00Z: with 120 s, the record of 07:05:30 is in the window from 07:04 to 07:06.
//!
//! Source: U6, for the event and the response. It does not say how windows are aligned; every window in its samples
//! starts at a multiple of its length.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodbstreams::primitives::{DateTime, DateTimeFormat};
use serde_json::{Value, value::RawValue};
use tokio::time::Instant;

use crate::{
    event::{EVENT_OVERHEAD_BYTES, LambdaRecord, event_text},
    mapping::Mapping,
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

// ---- Tumbling windows: the window of a record, and the members of an event beside its records. Pure ----

/// The largest state with which a window continues, in bytes of its JSON text as the function wrote it.
///
/// Source: "Your state can be a maximum of 1 MB per shard." (U6). Reading 1 MB as 1,024 × 1,024 bytes is our decision,
/// as for the payload limit.
const STATE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes reserved for an event's members other than its records and its state.
///
/// Fixed names and values take about 250 bytes, a stream's ARN at most 1,024 and a shard's id at most 65
/// (`DescribeStream`).
const ATTRIBUTES_BYTES_MAX: usize = 2 * 1024;

/// One tumbling window, with its start and without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Seconds since 1970-01-01T00:00:00Z.
    start_seconds: u64,
    length_seconds: u64,
}

impl Window {
    /// The window of a time; `None` if `length_seconds` is 0, which means no windows.
    pub(crate) fn of(time: SystemTime, length_seconds: u64) -> Option<Self> {
        let time_seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let n_before = time_seconds.checked_div(length_seconds)?;
        Some(Self { start_seconds: n_before * length_seconds, length_seconds })
    }

    pub(crate) fn is_over(self, now: SystemTime) -> bool {
        now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since >= Duration::from_secs(self.end_seconds()))
    }

    fn end_seconds(self) -> u64 {
        self.start_seconds.saturating_add(self.length_seconds)
    }
}

/// `2020-12-09T07:04:00Z`. Empty if the time has no such text (after year 9999).
fn seconds_text(seconds: u64) -> String {
    let time = DateTime::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    time.fmt(DateTimeFormat::DateTime).unwrap_or_default()
}

/// The state of a window: the text of a JSON object, exactly as the function wrote it, because a number may have more
/// digits than a float.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State(String);

impl State {
    /// The state at the start of a window.
    pub(crate) fn empty() -> Self {
        Self("{}".to_owned())
    }

    /// The `state` of a response; `None` if it is missing or not an object.
    pub(crate) fn of_response(response: &str) -> Option<Self> {
        let response: BTreeMap<String, &RawValue> = serde_json::from_str(response).ok()?;
        // Valid JSON that starts with a brace is an object.
        let state = response.get("state")?.get();
        state.starts_with('{').then(|| Self(state.to_owned()))
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.0.len() > STATE_BYTES_MAX
    }
}

/// The position of an invocation in its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Records; more may follow.
    Aggregate,
    /// The final invocation, at the window's end.
    Final,
    /// The final invocation, because the state is too large to continue.
    TerminatedEarly,
}

/// The members of an event in a window, except its records.
#[derive(Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) window: Window,
    pub(crate) state: &'a State,
    pub(crate) shard: &'a str,
    pub(crate) stream_arn: &'a str,
    pub(crate) phase: Phase,
}

impl Attributes<'_> {
    /// The event of these records. Its keys are in the order of AWS's sample.
    pub(crate) fn event_text<'a>(&self, records: impl IntoIterator<Item = &'a LambdaRecord>) -> String {
        let records = event_text(records);
        // Without the closing brace of the event.
        let records = records.strip_suffix('}').unwrap_or(&records);
        let Self { window, state: State(state), shard, stream_arn, phase } = self;
        let (start, end) = (seconds_text(window.start_seconds), seconds_text(window.end_seconds()));
        let window = format!(r#""window":{{"start":"{start}","end":"{end}"}},"state":{state}"#);
        let (shard, stream_arn) = (Value::from(*shard), Value::from(*stream_arn));
        let source = format!(r#""shardId":{shard},"eventSourceARN":{stream_arn}"#);
        let (is_final, is_early) = (*phase != Phase::Aggregate, *phase == Phase::TerminatedEarly);
        let ending = format!(r#""isFinalInvokeForWindow":{is_final},"isWindowTerminatedEarly":{is_early}"#);
        format!("{records},{window},{source},{ending}}}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use expect_test::expect;
    use tokio::time::Instant;

    use super::{
        ATTRIBUTES_BYTES_MAX, Attributes, Buffer, Held, PAYLOAD_BYTES_MAX, Phase, STATE_BYTES_MAX, State, Window,
        seconds_text,
    };
    use crate::{event::LambdaRecord, tests::mapping};

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

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn span(time_seconds: u64, length_seconds: u64) -> String {
        let window = Window::of(at(time_seconds), length_seconds).unwrap();
        format!("{} to {}", seconds_text(window.start_seconds), seconds_text(window.end_seconds()))
    }

    /// AWS's samples have windows from 07:04 to 07:06 and from 17:00 to 17:05.
    #[test]
    fn windows_are_aligned_and_a_time_on_the_edge_is_in_the_later_one() {
        assert_eq!(span(1_607_497_475, 120), "2020-12-09T07:04:00Z to 2020-12-09T07:06:00Z");
        assert_eq!(span(1_596_128_400, 300), "2020-07-30T17:00:00Z to 2020-07-30T17:05:00Z");
        assert_eq!(span(1_596_128_699, 300), "2020-07-30T17:00:00Z to 2020-07-30T17:05:00Z");
        assert_eq!(span(1_596_128_700, 300), "2020-07-30T17:05:00Z to 2020-07-30T17:10:00Z");
        assert_eq!(Window::of(at(1_596_128_400), 0), None);
    }

    #[test]
    fn a_window_is_over_at_its_end_and_not_before() {
        let window = Window::of(at(120), 60).unwrap();
        assert!(!window.is_over(at(180) - Duration::from_millis(1)));
        assert!(window.is_over(at(180)));
    }

    /// The keys, their order and their values are those of `DynamodbTimeWindowEvent` in AWS's page.
    /// Source: U6.
    #[test]
    fn an_event_in_a_window_has_the_shape_of_the_sample_of_aws() {
        let records = ["111", "222"].map(|number| LambdaRecord {
            sequence_number: number.to_owned(),
            created: None,
            json: format!(r#"{{"eventID":"{number}"}}"#),
        });
        let attributes = Attributes {
            window: Window::of(at(1_596_128_400), 300).unwrap(),
            state: &State::of_response(r#"{"state": {"1": "state1"}}"#).unwrap(),
            shard: "shard123456789",
            stream_arn: "stream-ARN",
            phase: Phase::Aggregate,
        };
        let check = |text: String, expected: expect_test::Expect| expected.assert_eq(&format!("{text}\n"));
        check(
            attributes.event_text(&records),
            expect![[r#"
                {"Records":[{"eventID":"111"},{"eventID":"222"}],"window":{"start":"2020-07-30T17:00:00Z","end":"2020-07-30T17:05:00Z"},"state":{"1": "state1"},"shardId":"shard123456789","eventSourceARN":"stream-ARN","isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}
            "#]],
        );
        check(
            Attributes { phase: Phase::Final, ..attributes }.event_text(&[]),
            expect![[r#"
                {"Records":[],"window":{"start":"2020-07-30T17:00:00Z","end":"2020-07-30T17:05:00Z"},"state":{"1": "state1"},"shardId":"shard123456789","eventSourceARN":"stream-ARN","isFinalInvokeForWindow":true,"isWindowTerminatedEarly":false}
            "#]],
        );
        let longest = Attributes { shard: &"s".repeat(65), stream_arn: &"a".repeat(1_024), ..attributes };
        assert!(longest.event_text(&[]).len() < ATTRIBUTES_BYTES_MAX);
    }

    /// "If the response does not contain a `state` property, Lambda considers this a failed invocation." Requiring an
    /// object is our decision: AWS's responses and events have no other type.
    #[test]
    fn a_state_is_an_object_and_stays_as_the_function_wrote_it() {
        let state = |response: &str| State::of_response(response).map(|State(text)| text);
        assert_eq!(state(r#"{"state":{},"batchItemFailures":[]}"#).unwrap(), "{}");
        let digits = r#"{ "n" : 12345678901234567890.50 }"#;
        assert_eq!(state(&format!(r#" {{"batchItemFailures":null,"state": {digits} }}"#)).unwrap(), digits);
        for response in [
            "",
            "null",
            "{}",
            "[]",
            r#"[{"n":1}]"#,
            r#"{"batchItemFailures":[]}"#,
            r#"{"state":null}"#,
            r#"{"state":"{}"}"#,
            r#"{"state":[]}"#,
            r#"{"state":{}"#,
        ] {
            assert_eq!(state(response), None, "{response:?}");
        }
    }

    #[test]
    fn a_state_of_a_megabyte_is_not_too_large_and_a_byte_more_is() {
        let state = |n_bytes| State(format!(r#"{{"a":"{}"}}"#, "x".repeat(n_bytes - 8)));
        assert!(!state(STATE_BYTES_MAX).is_too_large());
        assert!(state(STATE_BYTES_MAX + 1).is_too_large());
    }
}
