//! Captured records, from a file in one of three forms:
//!
//! | form | recognized by | stream | shard |
//! |---|---|---|---|
//! | a Lambda event | `Records` | each record's `eventSourceARN` | only in that of a tumbling window |
//! | a page of `GetRecords` | records without `eventSourceARN` | not included | not included |
//! | an on-failure record in S3 | `DDBStreamBatchInfo`, `payload` | included | included |
//!
//! The records of a page are [converted](page) to those of an event; the others stay as they are. A page's records must
//! decode: the tool that printed them may have lost a part, and a parked remainder would keep the complete record,
//! which the stream may still deliver, from being applied.

mod page;

use engine::{
    batch::replay::Origin,
    record::event::{Event, Lane},
    record::{EventError, RecordError, decode},
};
use keys::layout::Layout;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The records, in Lambda's form.
    pub(crate) records: Vec<Box<RawValue>>,
    /// The source of the records.
    pub(crate) origin: Origin,
}

/// A file without records.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error("it is not JSON")]
    Json(#[source] serde_json::Error),
    #[error(
        "it is none of a Lambda event, a page of GetRecords and an on-failure record of a DynamoDB stream as Lambda \
         writes it to S3"
    )]
    Neither,
    #[error(
        "it is an on-failure record in the form that Lambda sends to SQS and SNS: only the form that it writes to S3 \
         holds the records, in `payload`; while the stream holds them (24 hours), GetRecords gives them, {from} to \
         {to} of the shard {shard}"
    )]
    NoPayload { from: String, to: String, shard: String },
    #[error("its payload cannot be read")]
    Payload(#[source] EventError),
    #[error("its record {number} is of {source_name}, not of aws:dynamodb")]
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top {
    #[serde(rename = "DDBStreamBatchInfo")]
    batch: Option<FailureInfo>,
    request_context: Option<IgnoredAny>,
    payload: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailureInfo {
    shard_id: Option<String>,
    stream_arn: Option<String>,
    start_sequence_number: Option<String>,
    end_sequence_number: Option<String>,
}

/// The fields that show which form a record has.
///
/// It is looser than the record type of `aws_lambda_events`, so that a foreign or damaged record can be named too.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sort {
    event_source: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
    dynamodb: Option<IgnoredAny>,
}

impl Capture {
    /// Reads the text of a file. `given` supplies the stream and shard if the file lacks them.
    pub(crate) fn read(text: &str, given: &Lane, layout: &Layout) -> Result<Self, CaptureError> {
        let top: Top = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => CaptureError::Neither,
            _ => CaptureError::Json(error),
        })?;
        match top {
            Top { batch: Some(batch), payload, .. } => Self::failure(batch, payload.as_deref(), given, layout),
            Top { request_context: Some(_), .. } => Err(CaptureError::Neither),
            _ => Self::event(&Event::parse(text).map_err(|_| CaptureError::Neither)?, given, layout),
        }
    }

    fn failure(batch: FailureInfo, payload: Option<&str>, given: &Lane, layout: &Layout) -> Result<Self, CaptureError> {
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let Some(payload) = payload else {
            return Err(CaptureError::NoPayload {
                from: or_unknown(batch.start_sequence_number),
                to: or_unknown(batch.end_sequence_number),
                shard: or_unknown(batch.shard_id),
            });
        };
        let lane = Lane { stream_arn: batch.stream_arn, shard: batch.shard_id };
        let event = Event::parse(payload).map_err(CaptureError::Payload)?;
        let mut capture = Self::event(&event, &or(lane, given), layout)?;
        capture.origin.was_given_up = true;
        Ok(capture)
    }

    fn event(event: &Event<'_>, given: &Lane, layout: &Layout) -> Result<Self, CaptureError> {
        let lane = or(event.lane.clone(), given);
        let shaped = |(at, record): (usize, &&RawValue)| {
            let number = at + 1;
            let record = serde_json::from_str(record.get()).map_err(|_| CaptureError::NoChange { number })?;
            shaped(number, record, lane.stream_arn.as_deref(), layout)
        };
        let records = event.records.iter().enumerate().map(shaped).collect::<Result<_, _>>()?;
        Ok(Self { records, origin: Origin { lane, was_given_up: false } })
    }
}

fn or(lane: Lane, given: &Lane) -> Lane {
    Lane {
        stream_arn: lane.stream_arn.or_else(|| given.stream_arn.clone()),
        shard: lane.shard.or_else(|| given.shard.clone()),
    }
}

/// Converts one record to Lambda's form. Records are numbered from 1.
fn shaped(
    number: usize,
    record: &RawValue,
    stream_arn: Option<&str>,
    layout: &Layout,
) -> Result<Box<RawValue>, CaptureError> {
    let sort: Sort = serde_json::from_str(record.get()).map_err(|_| CaptureError::NoChange { number })?;
    match sort {
        Sort { event_source: Some(source_name), .. } if source_name != "aws:dynamodb" => {
            Err(CaptureError::Foreign { number, source_name })
        }
        Sort { dynamodb: None, .. } => Err(CaptureError::NoChange { number }),
        Sort { event_source_arn: Some(_), .. } => Ok(record.to_owned()),
        Sort { event_source_arn: None, .. } => {
            let record = page::shaped(record, stream_arn).map_err(|text| CaptureError::NoTime { number, text })?;
            decode(layout, record.get()).map_err(|why| CaptureError::Undecodable { number, why })?;
            Ok(record)
        }
    }
}

#[cfg(test)]
mod tests;
