//! Tumbling windows: the window of a record, and the members of an event beside its records.
//!
//! Pure. A window covers approximate arrival times, which for `DynamoDB` are creation times. Windows are aligned to
//! 1970-01-01T00:00:00Z: with 120 s, the record of 07:05:30 is in the window from 07:04 to 07:06.
//!
//! Source: U6, for the event and the response. It does not say how windows are aligned; every window in its samples
//! starts at a multiple of its length.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodbstreams::primitives::{DateTime, DateTimeFormat};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::{LambdaRecord, event_text};

/// The largest state with which a window continues, in bytes of its JSON text as the function wrote it.
///
/// Source: "Your state can be a maximum of 1 MB per shard." (U6). Reading 1 MB as 1,024 × 1,024 bytes is our decision,
/// as for the payload limit.
pub(crate) const STATE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes reserved for an event's members other than its records and its state.
///
/// Fixed names and values take about 250 bytes, a stream's ARN at most 1,024 and a shard's id at most 65
/// (`DescribeStream`).
pub(crate) const ATTRIBUTES_BYTES_MAX: usize = 2 * 1024;

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

    use super::{ATTRIBUTES_BYTES_MAX, Attributes, Phase, STATE_BYTES_MAX, State, Window, seconds_text};
    use crate::event::LambdaRecord;

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
