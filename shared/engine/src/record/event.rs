//! The event: a batch of raw records, and their origin.
//!
//! It is read as raw records, not as the types of `aws_lambda_events`; [`record`](crate::record) explains why.

use std::borrow::Cow;

use keys::{item::Item, layout::Layout};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::record::{Decoded, EventError};

/// The origin of a batch, as far as the event states it: the stream and the shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// ARN of the stream.
    pub stream_arn: Option<String>,
    /// Name of the shard; only events of tumbling windows have it.
    pub shard: Option<String>,
}

/// An undecoded batch.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Its raw records.
    pub records: Vec<&'a RawValue>,
    /// Its origin.
    pub lane: Lane,
    /// JSON of the state of its tumbling window, which the response must return; `None` if there is no window.
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
    /// Divides an event into its records.
    ///
    /// # Errors
    ///
    /// [`EventError`] if the text is no event of stream records. The last event of a tumbling window may have none.
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

    /// Its records in their order, each decoded alone.
    #[must_use]
    pub fn decoded(&self, layout: &Layout) -> Vec<Decoded<'a>> {
        self.records.iter().map(|record| Decoded::of(layout, record.get())).collect()
    }
}

/// The stream that a record names.
fn source(record: &str) -> Option<String> {
    serde_json::from_str::<RecordSource>(record).ok()?.event_source_arn
}

// ---- A stream record in an event's JSON ----

/// A record in the event.
#[derive(Deserialize)]
pub(crate) struct Record<'a> {
    #[serde(rename = "eventID")]
    pub(crate) event_id: String,
    #[serde(rename = "eventName", borrow)]
    pub(crate) event_name: Cow<'a, str>,
    /// The ARN of the stream, which identifies the table if there are several.
    #[serde(rename = "eventSourceARN", borrow, default)]
    pub(crate) event_source_arn: Option<Cow<'a, str>>,
    /// Who made the change, if it was no client.
    #[serde(rename = "userIdentity", borrow, default)]
    pub(crate) user_identity: Option<UserIdentity<'a>>,
    #[serde(borrow)]
    pub(crate) dynamodb: StreamRecord<'a>,
}

/// Who made the change of a record, if it was no client.
#[derive(Deserialize)]
pub(crate) struct UserIdentity<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(crate) identity_type: Option<Cow<'a, str>>,
    #[serde(rename = "principalId", borrow, default)]
    pub(crate) principal_id: Option<Cow<'a, str>>,
}

impl UserIdentity<'_> {
    /// True if this is DynamoDB itself, which removes items by their time to live. Source: DynamoDB developer guide,
    /// "DynamoDB Streams and Time to Live".
    pub(crate) fn is_time_to_live(&self) -> bool {
        self.identity_type.as_deref() == Some("Service")
            && self.principal_id.as_deref() == Some("dynamodb.amazonaws.com")
    }
}

/// The part under `dynamodb`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StreamRecord<'a> {
    pub(crate) keys: Option<Item>,
    pub(crate) new_image: Option<Item>,
    pub(crate) old_image: Option<Item>,
    pub(crate) sequence_number: String,
    /// Since the epoch; AWS writes seconds.
    pub(crate) approximate_creation_date_time: Option<f64>,
    /// The images in the stream; some emulators do not state it.
    #[serde(borrow, default)]
    pub(crate) stream_view_type: Option<Cow<'a, str>>,
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
