//! Converts stream records to the event that Lambda sends.
//!
//! Pure. Each record is read once ([`read`]) and its JSON is kept, so a retry sends the same bytes. Deviations of the
//! emulators are corrected here:
//!
//! | field | emulators | here |
//! |---|---|---|
//! | a `MODIFY` that changes nothing | dynoxide writes it | [`Reading::Equal`]: AWS writes no such record |
//! | `userIdentity` | keys that the SDK does not know, so it reads as empty | Lambda's `principalId` and `type` |
//! | `SizeBytes` | length of the JSON text | item size of keys and images, by DynamoDB's rule |
//! | `eventSourceARN` | not in `GetRecords` | the stream's ARN |
//! | `eventVersion` | varies | `"1.1"` |
//!
//! Images are compared only if the record has both. With another view type than `NEW_AND_OLD_IMAGES`, every record is
//! delivered.
//!
//! `ApproximateCreationDateTime` is not corrected: AWS and dynoxide round it down to the second, `DynamoDB` Local to
//! the minute.

use std::time::{Duration, SystemTime};

use aws_sdk_dynamodbstreams::primitives::DateTime;
use aws_sdk_dynamodbstreams::types::{Identity, OperationType, Record, StreamRecord, StreamViewType};
use keys::{size::item_bytes, value::same_item};
use serde::Serialize;
use thiserror::Error;

use crate::value::{Item, held, wire};

/// The version in live events. Source: LS.
const EVENT_VERSION: &str = "1.1";

/// [`event_text`] puts these around the records, and [`EVENT_OVERHEAD_BYTES`] counts them.
const EVENT_OPEN: &str = r#"{"Records":["#;
const EVENT_CLOSE: &str = "]}";

/// Bytes of an event without its records. Each record adds its length and one comma.
pub const EVENT_OVERHEAD_BYTES: usize = EVENT_OPEN.len() + EVENT_CLOSE.len();

/// One record of a Lambda event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LambdaRecord {
    /// The record's sequence number, as in the stream.
    pub sequence_number: String,
    /// `ApproximateCreationDateTime`.
    pub created: Option<SystemTime>,
    /// The record's JSON text.
    pub json: String,
}

/// The result of reading a stream record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A record to deliver.
    Deliver(LambdaRecord),
    /// A `MODIFY` whose images are equal by value. AWS does not write such a record.
    Equal,
}

/// Why a stream record cannot be converted.
#[derive(Debug, Error)]
pub enum StreamEventError {
    /// It has no sequence number, so neither a response nor a checkpoint could name it.
    #[error("a stream record has no sequence number")]
    NoSequenceNumber,
    /// It cannot be written as JSON.
    #[error("stream record {sequence_number} cannot be written as JSON")]
    Json {
        /// The record's sequence number.
        sequence_number: String,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Reads one stream record.
///
/// # Errors
///
/// [`StreamEventError`] if the record has no sequence number or cannot be written as JSON.
pub fn read(record: &Record, stream_arn: &str) -> Result<Reading, StreamEventError> {
    let change = record.dynamodb().ok_or(StreamEventError::NoSequenceNumber)?;
    let sequence_number = change.sequence_number().ok_or(StreamEventError::NoSequenceNumber)?.to_owned();
    if let (Some(OperationType::Modify), Some(new), Some(old)) =
        (record.event_name(), change.new_image(), change.old_image())
        && same_item(&held(new), &held(old))
    {
        return Ok(Reading::Equal);
    }
    match serde_json::to_string(&RecordText::of(record, change, stream_arn)) {
        Ok(json) => Ok(Reading::Deliver(LambdaRecord { sequence_number, created: created(change), json })),
        Err(source) => Err(StreamEventError::Json { sequence_number, source }),
    }
}

/// The event of one batch, without tumbling windows. `Records` is its only key; nothing in it names the shard.
pub fn event_text<'a>(records: impl IntoIterator<Item = &'a LambdaRecord>) -> String {
    let mut text = String::from(EVENT_OPEN);
    for (index, record) in records.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&record.json);
    }
    text.push_str(EVENT_CLOSE);
    text
}

fn created(change: &StreamRecord) -> Option<SystemTime> {
    let seconds = u64::try_from(change.approximate_creation_date_time()?.secs()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Bytes of the keys and images, by DynamoDB's item size rule. Checked against records from AWS (LS).
fn size_bytes(change: &StreamRecord) -> usize {
    [change.keys(), change.new_image(), change.old_image()]
        .into_iter()
        .flatten()
        .map(|item| item_bytes(&held(item)))
        .sum()
}

/// A record as Lambda writes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordText<'a> {
    #[serde(rename = "eventID")]
    event_id: &'a str,
    event_name: &'a str,
    event_version: &'static str,
    event_source: &'static str,
    aws_region: &'a str,
    dynamodb: ChangeText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_identity: Option<IdentityText<'a>>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    approximate_creation_date_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<ItemText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<ItemText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<ItemText<'a>>,
    sequence_number: &'a str,
    size_bytes: usize,
    stream_view_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdentityText<'a> {
    principal_id: &'a str,
    r#type: &'a str,
}

/// Serialises an item's attributes in the order of their names.
struct ItemText<'a>(&'a Item);

impl Serialize for ItemText<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        wire(self.0).serialize(serializer)
    }
}

impl<'a> RecordText<'a> {
    fn of(record: &'a Record, change: &'a StreamRecord, stream_arn: &'a str) -> Self {
        let event_name = record.event_name();
        Self {
            event_id: record.event_id().unwrap_or_default(),
            event_name: event_name.map(OperationType::as_str).unwrap_or_default(),
            event_version: EVENT_VERSION,
            event_source: "aws:dynamodb",
            aws_region: record.aws_region().or_else(|| stream_arn.split(':').nth(3)).unwrap_or_default(),
            dynamodb: ChangeText {
                approximate_creation_date_time: change.approximate_creation_date_time().map(DateTime::as_secs_f64),
                keys: change.keys().map(ItemText),
                new_image: change.new_image().map(ItemText),
                old_image: change.old_image().map(ItemText),
                sequence_number: change.sequence_number().unwrap_or_default(),
                size_bytes: size_bytes(change),
                stream_view_type: change.stream_view_type().map(StreamViewType::as_str).unwrap_or_default(),
            },
            user_identity: record.user_identity().and_then(|identity| identity_text(identity, event_name)),
            event_source_arn: stream_arn,
        }
    }
}

/// The identity with Lambda's keys. Only removals by time to live have an identity. An identity that reads as empty on
/// a `REMOVE` had keys that the SDK does not know, so it is the TTL service's.
fn identity_text<'a>(identity: &'a Identity, event_name: Option<&OperationType>) -> Option<IdentityText<'a>> {
    match (identity.principal_id(), identity.r#type()) {
        (None, None) if event_name != Some(&OperationType::Remove) => None,
        (principal_id, r#type) => Some(IdentityText {
            principal_id: principal_id.unwrap_or("dynamodb.amazonaws.com"),
            r#type: r#type.unwrap_or("Service"),
        }),
    }
}

#[cfg(test)]
mod tests;
