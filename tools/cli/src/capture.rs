//! Captured records, from a file in one of four forms:
//!
//! | form | recognized by | stream | shard |
//! |---|---|---|---|
//! | a Lambda event | `Records` | each record's `eventSourceARN` | only with a tumbling window |
//! | the input of a function from an `EventBridge` pipe | a list of such records | each record's `eventSourceARN` | not included |
//! | a page of `GetRecords` | records without `eventSourceARN` | not included | not included |
//! | an on-failure record in S3 | `DDBStreamBatchInfo`, `payload` | included | included |
//!
//! The records of a page are converted to records of an event; all others stay as they are. A page's records must
//! decode, because the tool that printed them may have lost a part. A damaged record would be parked, and the complete
//! record, which the stream may still deliver, would then not be applied.
//!
//! For a form without records of a table's stream, the error names the form and the file to give instead.
//!
//! # Page
//!
//! Converts a record of `GetRecords` to a record of a Lambda event.
//!
//! The differences, apart from the stream's ARN, which only the event contains:
//!
//! | field | the API prints | an event has |
//! |---|---|---|
//! | `userIdentity` | `PrincipalId`, `Type` | `principalId`, `type` |
//! | `ApproximateCreationDateTime` | seconds since the epoch; ISO 8601 by version 2 of the AWS command line and by SDKs | seconds since the epoch |
//!
//! Binary values are base64 in both, as the AWS command line prints them.

use std::collections::BTreeSet;

use engine::{
    record::{
        EventError, RecordError, decode,
        event::{Event, Lane},
    },
    redrive::replay::Origin,
};
use keys::layout::Layout;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use crate::{exit::is_manifest, words};

/// Why a change from Kinesis Data Streams cannot be replayed, and what to do.
const OF_KINESIS: &str = "it lacks the sequence number and the shard by which a ledger knows a change; give the records of \
                          the table's own stream";

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The records, in Lambda's form.
    pub(crate) records: Vec<Box<RawValue>>,
    /// The source of the records.
    pub(crate) origin: Origin,
    /// The streams that the records name.
    pub(crate) streams: BTreeSet<String>,
    /// Numbers of the records that come from a page, counted from 1.
    of_page: Vec<usize>,
}

/// Why a file has no usable records.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error("it is not JSON")]
    Json(#[source] serde_json::Error),
    #[error(
        "it is a manifest: `ripple check --explain` takes it; give a captured event, and the manifest with --config"
    )]
    Manifest,
    #[error(
        "unknown format: give a Lambda event, a list of its records, a page of GetRecords, or an on-failure record of a DynamoDB \
         stream as Lambda writes it to S3"
    )]
    Neither,
    #[error("it is {what}; {instead}")]
    Other { what: &'static str, instead: &'static str },
    #[error(
        "it is a failure record without the records: Lambda writes them only to S3, in `payload`, and a pipe of EventBridge \
         nowhere; while the stream {stream} holds them (24 hours), GetRecords gives them, {from} to {to} of the shard \
         {shard}"
    )]
    NoPayload { stream: String, from: String, to: String, shard: String },
    #[error("its payload cannot be read")]
    Payload(#[source] EventError),
    #[error("its record {number} is of {source_name}, not of aws:dynamodb{}", hint(.source_name))]
    Foreign { number: usize, source_name: String },
    #[error("its record {number} is not a stream record: it has no `dynamodb`")]
    NoChange { number: usize },
    #[error("its record {number} has an ApproximateCreationDateTime that is not a time: {text}")]
    NoTime { number: usize, text: String },
    #[error("its record {number} cannot be read; binary values must be base64, as the AWS command line prints them")]
    Undecodable {
        number: usize,
        #[source]
        why: RecordError,
    },
}

/// What to do about records of another service.
fn hint(source_name: &str) -> String {
    match source_name {
        "aws:kinesis" => format!(": {OF_KINESIS}"),
        "aws:sqs" | "aws:sns" => ": give the message that it holds, as a file".to_owned(),
        "aws:s3" => ": give the object that it names, as a file".to_owned(),
        _ => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top {
    #[serde(rename = "DDBStreamBatchInfo")]
    batch: Option<FailureInfo>,
    #[serde(rename = "KinesisBatchInfo")]
    kinesis_batch: Option<IgnoredAny>,
    request_context: Option<IgnoredAny>,
    payload: Option<String>,
    delivery_stream_arn: Option<IgnoredAny>,
    record_format: Option<IgnoredAny>,
    dynamodb: Option<IgnoredAny>,
    #[serde(rename = "detail-type")]
    detail_type: Option<IgnoredAny>,
    #[serde(rename = "TopicArn")]
    topic_arn: Option<IgnoredAny>,
}

impl Top {
    /// The error for a form without records, with the file to give instead.
    fn other(&self) -> Option<CaptureError> {
        let (what, instead) = match self {
            Self { delivery_stream_arn: Some(_), .. } => ("an event of Firehose", OF_KINESIS),
            Self { kinesis_batch: Some(_), .. } => ("a failure record of Kinesis Data Streams", OF_KINESIS),
            Self { record_format: Some(_), .. } => ("a change in the form of Kinesis Data Streams", OF_KINESIS),
            Self { dynamodb: Some(_), .. } => ("a single record", "put it into a list: { \"Records\": [ … ] }"),
            Self { topic_arn: Some(_), .. } => ("a message of SNS", "give what its `Message` holds, as a file"),
            Self { detail_type: Some(_), .. } => ("an event of EventBridge", "give what its `detail` holds, as a file"),
            _ => return None,
        };
        Some(CaptureError::Other { what, instead })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailureInfo {
    shard_id: Option<String>,
    stream_arn: Option<String>,
    start_sequence_number: Option<String>,
    end_sequence_number: Option<String>,
}

/// The fields that identify the form of a record.
///
/// It is looser than the record type of `aws_lambda_events`, so that an error can also name a foreign or damaged
/// record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sort {
    #[serde(alias = "EventSource")]
    event_source: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
    dynamodb: Option<IgnoredAny>,
}

impl Capture {
    /// Reads the text of a file. `given` supplies the stream and shard if the file lacks them.
    pub(crate) fn read(text: &str, given: &Lane, layout: &Layout) -> Result<Self, CaptureError> {
        let capture = Self::raw(text, given)?;
        for number in &capture.of_page {
            if let Some(record) = capture.records.get(number - 1) {
                decode(layout, record.get()).map_err(|why| CaptureError::Undecodable { number: *number, why })?;
            }
        }
        Ok(capture)
    }

    /// Reads the text of a file without decoding its records.
    pub(crate) fn raw(text: &str, given: &Lane) -> Result<Self, CaptureError> {
        if is_manifest(text) {
            return Err(CaptureError::Manifest);
        }
        if text.trim_start().starts_with('[') {
            let event = format!("{{\"Records\":{text}}}");
            serde_json::from_str::<IgnoredAny>(text).map_err(json_or_neither)?;
            let event = Event::parse(&event).map_err(|_| CaptureError::Neither)?;
            return if event.records.is_empty() { Err(CaptureError::Neither) } else { Self::event(&event, given) };
        }
        let top: Top = serde_json::from_str(text).map_err(json_or_neither)?;
        match top {
            Top { batch: Some(batch), payload, .. } => Self::failure(batch, payload.as_deref(), given),
            top => match (top.other(), top.request_context) {
                (Some(other), _) => Err(other),
                (None, Some(_)) => Err(CaptureError::Neither),
                (None, None) => Self::event(&Event::parse(text).map_err(|_| CaptureError::Neither)?, given),
            },
        }
    }

    fn failure(batch: FailureInfo, payload: Option<&str>, given: &Lane) -> Result<Self, CaptureError> {
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let Some(payload) = payload else {
            return Err(CaptureError::NoPayload {
                stream: or_unknown(batch.stream_arn),
                from: or_unknown(batch.start_sequence_number),
                to: or_unknown(batch.end_sequence_number),
                shard: or_unknown(batch.shard_id),
            });
        };
        let lane = Lane { stream_arn: batch.stream_arn, shard: batch.shard_id };
        let event = Event::parse(payload).map_err(CaptureError::Payload)?;
        let mut capture = Self::event(&event, &or(lane, given))?;
        capture.origin.was_given_up = true;
        Ok(capture)
    }

    fn event(event: &Event<'_>, given: &Lane) -> Result<Self, CaptureError> {
        let lane = or(event.lane.clone(), given);
        let (mut records, mut streams, mut of_page) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (at, record) in event.records.iter().enumerate() {
            let number = at + 1;
            let sort: Sort = serde_json::from_str(record.get()).map_err(|_| CaptureError::NoChange { number })?;
            match sort {
                Sort { event_source: Some(source_name), .. } if source_name != "aws:dynamodb" => {
                    return Err(CaptureError::Foreign { number, source_name });
                }
                Sort { dynamodb: None, .. } => return Err(CaptureError::NoChange { number }),
                Sort { event_source_arn: Some(stream), .. } => {
                    streams.insert(stream);
                    records.push((*record).to_owned());
                }
                Sort { event_source_arn: None, .. } => {
                    streams.extend(lane.stream_arn.clone());
                    of_page.push(number);
                    let record = shaped(record, lane.stream_arn.as_deref());
                    records.push(record.map_err(|text| CaptureError::NoTime { number, text })?);
                }
            }
        }
        Ok(Self { records, origin: Origin { lane, was_given_up: false }, streams, of_page })
    }
}

fn json_or_neither(error: serde_json::Error) -> CaptureError {
    match error.classify() {
        serde_json::error::Category::Data => CaptureError::Neither,
        _ => CaptureError::Json(error),
    }
}

fn or(lane: Lane, given: &Lane) -> Lane {
    Lane {
        stream_arn: lane.stream_arn.or_else(|| given.stream_arn.clone()),
        shard: lane.shard.or_else(|| given.shard.clone()),
    }
}

// ---- Converts a record of `GetRecords` to a record of a Lambda event ----

/// Converts one record. The error is the text of an unreadable time.
fn shaped(record: &RawValue, stream_arn: Option<&str>) -> Result<Box<RawValue>, String> {
    // A record that is not an object, or cannot be serialized, stays as it is. It does not decode, and the caller
    // reports that.
    let Ok(Value::Object(mut fields)) = serde_json::from_str(record.get()) else { return Ok(record.to_owned()) };
    fields.entry("eventSource").or_insert_with(|| "aws:dynamodb".into());
    if let Some(arn) = stream_arn {
        fields.insert("eventSourceARN".to_owned(), arn.into());
    }
    if let Some(identity) = fields.remove("userIdentity").as_ref().and_then(Value::as_object).map(recased) {
        fields.insert("userIdentity".to_owned(), identity);
    }
    if let Some(created) = fields.get_mut("dynamodb").and_then(|it| it.get_mut("ApproximateCreationDateTime"))
        && let Some(text) = created.as_str()
    {
        *created = words::seconds(text).ok_or_else(|| text.to_owned())?.into();
    }
    Ok(serde_json::value::to_raw_value(&fields).unwrap_or_else(|_| record.to_owned()))
}

fn recased(identity: &Map<String, Value>) -> Value {
    let lower = |name: &String| {
        let mut letters = name.chars();
        letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect::<String>()
    };
    Value::Object(identity.iter().map(|(name, value)| (lower(name), value.clone())).collect())
}

#[cfg(test)]
mod tests;
