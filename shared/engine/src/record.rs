//! Stream records, decoded one by one.
//!
//! An event is cut into raw records before any is read, so that one that does not decode fails alone. The whole record
//! is kept as it came, for parking.

use derive::change::{Change, Images};
use keys::{item::Item, layout::Layout};
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event that is no batch of stream records. Nothing of it was handled.
#[derive(Debug, thiserror::Error)]
#[error("the event is no batch of DynamoDB stream records: it wants an object with a list `Records`")]
pub struct EventError(#[source] serde_json::Error);

/// A record that does not decode. Names what is wrong, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct RecordError {
    /// What is wrong.
    pub why: String,
}

/// What can be told of a record that may not decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Id of the event.
    pub id: Option<String>,
    /// Its sequence number.
    pub sequence_number: Option<String>,
    /// When the write was made, in milliseconds since the epoch.
    pub created_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "eventID")]
    event_id: String,
    #[serde(rename = "eventName")]
    event_name: String,
    dynamodb: StreamRecord,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StreamRecord {
    keys: Option<Item>,
    new_image: Option<Item>,
    old_image: Option<Item>,
    sequence_number: String,
    /// In seconds since the epoch.
    approximate_creation_date_time: Option<f64>,
}

/// The raw records of an event.
///
/// # Errors
///
/// [`EventError`] when it is no event of stream records.
pub fn records(event: &str) -> Result<Vec<&RawValue>, EventError> {
    serde_json::from_str::<Event<'_>>(event).map(|event| event.records).map_err(EventError)
}

/// Decodes a record.
///
/// # Errors
///
/// [`RecordError`] that says what is wrong with it.
pub fn decode(layout: &Layout, record: &RawValue) -> Result<Change, RecordError> {
    let error = |why: &str| RecordError { why: why.to_owned() };
    let record: Record = serde_json::from_str(record.get()).map_err(|source| RecordError { why: reason(&source) })?;
    let stream_record = record.dynamodb;
    let keys = stream_record.keys.ok_or_else(|| error("the record has no keys"))?;
    let key = layout.key(&keys).ok_or_else(|| RecordError {
        why: format!("the record's keys are not {} and {} of type S", layout.pk, layout.sk),
    })?;
    let images = match (record.event_name.as_str(), stream_record.old_image, stream_record.new_image) {
        ("INSERT", _, Some(new)) => Images::Inserted(new),
        ("MODIFY", Some(old), Some(new)) => Images::Modified { old, new },
        ("REMOVE", Some(old), _) => Images::Removed(old),
        ("INSERT" | "MODIFY" | "REMOVE", ..) => {
            return Err(error("an image is missing; the stream's view type must be NEW_AND_OLD_IMAGES"));
        }
        _ => return Err(error("the event name is none of INSERT, MODIFY and REMOVE")),
    };
    let created_ms = stream_record.approximate_creation_date_time.map(milliseconds);
    Ok(Change { id: record.event_id, sequence_number: stream_record.sequence_number, created_ms, key, images })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates; no time is negative")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// What can be told of a record, whether it decodes or not.
#[must_use]
pub fn head(record: &RawValue) -> Head {
    let value: serde_json::Value = serde_json::from_str(record.get()).unwrap_or_default();
    let text = |pointer: &str| value.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
    let created = value.pointer("/dynamodb/ApproximateCreationDateTime").and_then(serde_json::Value::as_f64);
    Head {
        id: text("/eventID"),
        sequence_number: text("/dynamodb/SequenceNumber"),
        created_ms: created.map(milliseconds),
    }
}

/// Why JSON does not decode, without the values that serde's own messages quote.
fn reason(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "a value is missing or not of the form of a stream record",
        _ => "it is not JSON",
    };
    format!("the record does not decode: {what}, at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            pk: "PK".into(),
            sk: "SK".into(),
            entity_type: "EntityType".into(),
            time_to_live: None,
            indexes: Vec::new(),
        }
    }

    fn decoded(json: &str) -> Result<Change, String> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        decode(&layout(), raw).map_err(|error| error.to_string())
    }

    const KEYS: &str = r#""Keys": {"PK": {"S": "a"}, "SK": {"S": "b"}}"#;

    fn record(name: &str, rest: &str) -> String {
        format!(r#"{{"eventID": "1", "eventName": "{name}", "dynamodb": {{{KEYS}, "SequenceNumber": "100", {rest}}}}}"#)
    }

    #[test]
    fn a_record_with_both_images_is_a_change() {
        let images = r#""OldImage": {"A": {"N": "1"}}, "NewImage": {"A": {"N": "2"}}"#;
        let change = decoded(&record("MODIFY", images)).unwrap();
        assert_eq!((change.key.pk.as_str(), change.sequence_number.as_str()), ("a", "100"));
        assert!(matches!(change.images, Images::Modified { .. }));
    }

    #[test]
    fn what_does_not_decode_says_why_and_holds_no_value() {
        let error = decoded(&record("INSERT", r#""NewImage": {"PK": {"Q": "secret"}}"#)).unwrap_err();
        assert!(error.starts_with("the record does not decode: a value is missing or not of the form"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let error = decoded(&record("MODIFY", r#""NewImage": {}"#)).unwrap_err();
        assert_eq!(error, "an image is missing; the stream's view type must be NEW_AND_OLD_IMAGES");
        let error = decoded(
            r#"{"eventID":"1","eventName":"INSERT","dynamodb":{"Keys":{"id":{"S":"a"}},"SequenceNumber":"1"}}"#,
        );
        assert_eq!(error.unwrap_err(), "the record's keys are not PK and SK of type S");
    }

    #[test]
    fn a_head_is_read_from_a_record_that_does_not_decode() {
        let raw: &RawValue = serde_json::from_str(r#"{"eventID": "7", "dynamodb": {"SequenceNumber": "42"}}"#).unwrap();
        assert_eq!(head(raw), Head { id: Some("7".into()), sequence_number: Some("42".into()), created_ms: None });
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_decoder_panic(text in ".*") {
            if let Ok(records) = records(&text) {
                for record in records {
                    let _decoded = decode(&layout(), record);
                }
            }
        }
    }
}
