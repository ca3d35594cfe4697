//! The event: a batch of raw records, and what it says of where they come from.
//!
//! It is read raw, and not into the types of `aws_lambda_events`; [`record`](crate::record) says why.

use keys::layout::Layout;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::record::{Decoded, EventError};

/// A lane: one stream shard seen by one consumer, as far as an event says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// ARN of the stream.
    pub stream_arn: Option<String>,
    /// Name of the shard, which only events of tumbling windows have.
    pub shard: Option<String>,
}

/// A batch as it came.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Its records, as they are written.
    pub records: Vec<&'a RawValue>,
    /// The lane that it came on.
    pub lane: Lane,
    /// JSON of the state of its tumbling window, to be given back; `None` when it came without a window.
    pub state: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent<'a> {
    #[serde(rename = "Records", borrow)]
    records: Option<Vec<&'a RawValue>>,
    shard_id: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    window: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RecordSource {
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

impl<'a> Event<'a> {
    /// Cuts an event into its records.
    ///
    /// # Errors
    ///
    /// [`EventError`] when it is no event of stream records. The last event of a tumbling window may have none.
    pub fn parse(text: &'a str) -> Result<Self, EventError> {
        let wire: WireEvent<'a> = serde_json::from_str(text).map_err(EventError)?;
        let has_window = wire.window.is_some() || wire.state.is_some();
        let records = match wire.records {
            Some(records) => records,
            None if has_window => Vec::new(),
            None => return Err(EventError(serde::de::Error::missing_field("Records"))),
        };
        let first = || records.first().and_then(|record| source(record.get()));
        let lane = Lane { stream_arn: wire.event_source_arn.or_else(first), shard: wire.shard_id };
        let state = has_window.then(|| wire.state.map_or("{}", RawValue::get));
        Ok(Self { records, lane, state })
    }

    /// Its records in their order, each decoded by itself.
    #[must_use]
    pub fn decoded(&self, layout: &Layout) -> Vec<Decoded<'a>> {
        self.records.iter().map(|record| Decoded::of(layout, record.get())).collect()
    }
}

/// The stream that a record names.
fn source(record: &str) -> Option<String> {
    serde_json::from_str::<RecordSource>(record).ok()?.event_source_arn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_event_names_no_shard_and_its_stream_by_its_records() {
        let event = Event::parse(r#"{"Records": [{"eventSourceARN": "arn:s"}, {}]}"#).unwrap();
        assert_eq!((event.records.len(), event.state), (2, None));
        assert_eq!(event.lane, Lane { stream_arn: Some("arn:s".to_owned()), shard: None });
    }

    #[test]
    fn an_event_of_a_tumbling_window_names_its_shard_and_brings_its_state() {
        let text = r#"{"Records": [], "window": {}, "state": {"a": 1}, "shardId": "shardId-1",
            "eventSourceARN": "arn:s", "isFinalInvokeForWindow": true}"#;
        let event = Event::parse(text).unwrap();
        assert_eq!(event.state, Some(r#"{"a": 1}"#));
        assert_eq!(event.lane, Lane { stream_arn: Some("arn:s".to_owned()), shard: Some("shardId-1".to_owned()) });
    }

    #[test]
    fn the_last_event_of_a_window_may_have_no_records() {
        let event = Event::parse(r#"{"window": {}, "shardId": "s", "isFinalInvokeForWindow": true}"#).unwrap();
        assert_eq!((event.records.len(), event.state), (0, Some("{}")));
    }

    #[test]
    fn what_has_no_records_is_no_event() {
        for text in ["{}", "[]", "7", "{\"Records\": 7}", "", "{\"Records\": null}"] {
            assert!(Event::parse(text).is_err(), "{text}");
        }
    }
}
