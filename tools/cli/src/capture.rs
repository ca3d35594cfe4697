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

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use engine::{
    record::{Event, EventError, Lane, RecordError, decode},
    redrive::Origin,
};
use keys::layout::Layout;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use crate::exit::is_manifest;

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
        *created = seconds(text).ok_or_else(|| text.to_owned())?.into();
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

/// Parses an ISO 8601 time with its offset as seconds since the epoch. A space may replace the `T`, as Python prints
/// it.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let text = text.replacen(' ', "T", 1);
    DateTime::from_str(&text, DateTimeFormat::DateTimeWithOffset).ok().map(|time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn times_are_read_with_their_offset() {
        for same in [
            "2024-01-15T10:30:00Z",
            "2024-01-15T10:30:00.000Z",
            "2024-01-15T10:30:00+00:00",
            "2024-01-15T11:30:00+01:00",
            "2024-01-15 05:00:00-05:30",
        ] {
            assert_eq!(seconds(same), Some(1_705_314_600.0), "{same}");
        }
        assert_eq!(seconds("2024-01-15T10:30:00.500000+00:00"), Some(1_705_314_600.5));
        for none in ["", "noon", "2024-01-15", "2024-01-15T10:30:00", "1705314600"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }

    const ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/ripple/stream/2024-01-15T09:00:00.000";

    fn lane(stream: Option<&str>, shard: Option<&str>) -> Lane {
        Lane { stream_arn: stream.map(str::to_owned), shard: shard.map(str::to_owned) }
    }

    fn read(file: &Value, given: &Lane) -> Capture {
        Capture::read(&file.to_string(), given, &catalogue::schema().layout).unwrap()
    }

    fn error(file: &str) -> CaptureError {
        Capture::read(file, &Lane::default(), &catalogue::schema().layout).unwrap_err()
    }

    fn records(capture: &Capture) -> Vec<Value> {
        capture.records.iter().map(|record| serde_json::from_str(record.get()).unwrap()).collect()
    }

    /// A record of `GetRecords` for a removal by time to live.
    fn of_the_api(created: &Value) -> Value {
        json!({
            "eventID": "1", "eventName": "REMOVE", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-1",
            "dynamodb": {"ApproximateCreationDateTime": created, "Keys": {"PK": {"S": "a"}, "SK": {"S": "b"}},
                "OldImage": {"PK": {"S": "a"}, "SK": {"S": "b"}}, "SequenceNumber": "100", "SizeBytes": 9,
                "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
        })
    }

    fn of_an_event() -> Value {
        let mut record = of_the_api(&json!(1_705_314_600.0));
        record["userIdentity"] = json!({"principalId": "dynamodb.amazonaws.com", "type": "Service"});
        record["eventSourceARN"] = json!(ARN);
        record
    }

    #[test]
    fn an_event_is_taken_as_it_is() {
        let capture = read(&json!({"Records": [of_an_event()]}), &lane(Some("another"), None));
        assert_eq!(records(&capture), [of_an_event()]);
        assert_eq!((capture.origin.lane, capture.origin.was_given_up), (lane(Some(ARN), None), false));

        let window =
            json!({"Records": [of_an_event()], "shardId": "s-1", "eventSourceARN": ARN, "window": {}, "state": {}});
        assert_eq!(read(&window, &lane(None, Some("another"))).origin.lane, lane(Some(ARN), Some("s-1")));
    }

    #[test]
    fn a_page_is_shaped_into_an_event_whoever_printed_it() {
        let times = [
            json!(1_705_314_600),
            json!(1_705_314_600.0),
            json!("2024-01-15T11:30:00+01:00"),
            json!("2024-01-15T10:30:00.000Z"),
            json!("2024-01-15 10:30:00+00:00"),
        ];
        for time in times {
            let page = json!({"Records": [of_the_api(&time)], "NextShardIterator": "AAAA"});
            let capture = read(&page, &lane(Some(ARN), Some("s-1")));
            let mut records = records(&capture);
            let created = &mut records[0]["dynamodb"]["ApproximateCreationDateTime"];
            *created = json!(created.as_f64());
            assert_eq!(records, [of_an_event()], "{time}");
            assert_eq!(capture.origin.lane, lane(Some(ARN), Some("s-1")));
        }
        let unnamed = records(&read(&json!({"Records": [of_the_api(&json!(0))]}), &Lane::default()));
        assert_eq!(unnamed[0].get("eventSourceARN"), None);
    }

    #[test]
    fn an_on_failure_record_holds_its_event_and_names_the_shard() {
        let failure = |payload: Option<String>| {
            let mut failure = json!({
                "requestContext": {"condition": "RetryAttemptsExhausted"}, "version": "1.0",
                "DDBStreamBatchInfo": {"shardId": "s-1", "startSequenceNumber": "100", "endSequenceNumber": "200",
                    "batchSize": 1, "streamArn": ARN},
            });
            failure["payload"] = json!(payload);
            failure
        };
        let capture = read(&failure(Some(json!({"Records": [of_an_event()]}).to_string())), &Lane::default());
        assert_eq!(records(&capture), [of_an_event()]);
        assert_eq!((capture.origin.lane, capture.origin.was_given_up), (lane(Some(ARN), Some("s-1")), true));
        let of_a_window = json!({"Records": [of_an_event()], "shardId": "s-2", "window": {}}).to_string();
        assert_eq!(read(&failure(Some(of_a_window)), &Lane::default()).origin.lane.shard.as_deref(), Some("s-2"));

        let message = error(&failure(None).to_string()).to_string();
        assert_eq!(
            message,
            format!(
                "it is a failure record without the records: Lambda writes them only to S3, in `payload`, and a pipe of \
                 EventBridge nowhere; while the stream {ARN} holds them (24 hours), GetRecords gives them, 100 to 200 of the \
                 shard s-1"
            )
        );
        assert_eq!(error(&failure(Some("[".to_owned())).to_string()).to_string(), "its payload cannot be read");
    }

    #[test]
    fn what_is_none_of_them_says_why() {
        let none = "unknown format: give a Lambda event, a list of its records, a page of GetRecords, or an on-failure record of a \
                    DynamoDB stream as Lambda writes it to S3";
        let mut kinesis = of_an_event();
        kinesis["eventSource"] = json!("aws:kinesis");
        for (file, why) in [
            (String::new(), "it is not JSON"),
            ("{\"Records\": [".to_owned(), "it is not JSON"),
            ("7".to_owned(), none),
            ("[]".to_owned(), none),
            ("{}".to_owned(), none),
            (json!({"records": []}).to_string(), none),
            (json!({"requestContext": {}, "payload": "{}"}).to_string(), none),
            (
                json!({"Records": [of_an_event(), kinesis]}).to_string(),
                "its record 2 is of aws:kinesis, not of aws:dynamodb: it lacks the sequence number and the shard by which a \
                 ledger knows a change; give the records of the table's own stream",
            ),
            (
                json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "{}"}}]}).to_string(),
                "its record 1 is of aws:sns, not of aws:dynamodb: give the message that it holds, as a file",
            ),
            (of_an_event().to_string(), "it is a single record; put it into a list: { \"Records\": [ … ] }"),
            (json!({"Records": [7]}).to_string(), "its record 1 is not a stream record: it has no `dynamodb`"),
            ("[7]".to_owned(), "its record 1 is not a stream record: it has no `dynamodb`"),
            (json!({"Records": [{"s3": {}}]}).to_string(), "its record 1 is not a stream record: it has no `dynamodb`"),
            (
                json!({"Records": [of_the_api(&json!("noon"))]}).to_string(),
                "its record 1 has an ApproximateCreationDateTime that is not a time: noon",
            ),
        ] {
            assert_eq!(error(&file).to_string(), why, "{file}");
        }
    }

    /// The text of a file of the case `19-other-envelopes`.
    fn envelope(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/19-other-envelopes");
        std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
    }

    #[test]
    fn what_a_pipe_hands_to_a_function_is_read_and_every_other_envelope_is_named() {
        let list = Capture::raw(&envelope("event-pipes.json"), &Lane::default()).unwrap();
        let stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/\
                      dynamodb-streams-test-experiment-NewOldTable-7U1U2U9UKTB7/stream/2020-07-16T21:40:16.952";
        assert_eq!((list.records.len(), list.streams), (1, [stream.to_owned()].into()));
        assert_eq!(list.origin.lane, lane(Some(stream), None));
        for (file, why) in [
            ("event.json", "its record 1 is of aws:kinesis, not of aws:dynamodb: it lacks the sequence number"),
            ("event-firehose.json", "it is an event of Firehose; it lacks the sequence number"),
            ("kinesis-record.json", "it is a change in the form of Kinesis Data Streams; it lacks the sequence number"),
            ("pipes-failure.json", "it is a failure record without the records: Lambda writes them only to S3"),
            ("sqs-failure.json", "it is a failure record without the records: Lambda writes them only to S3"),
        ] {
            let message = error(&envelope(file)).to_string();
            assert!(message.starts_with(why), "{file}: {message}");
        }
        let message = error(&envelope("pipes-failure.json")).to_string();
        let where_to_read = "1234567800000000001234567891 to 1234567800000000001234567899 of the shard \
                             shardId-00000001234567891234-aaa1abcd";
        assert!(message.ends_with(where_to_read), "{message}");
    }

    #[test]
    fn a_page_that_lost_something_when_it_was_printed_is_refused_and_an_event_is_left_to_the_engine() {
        // Python's notation for bytes.
        let binary = json!({"B": "b'Zm9v'"});
        let mut printed = of_the_api(&json!(0));
        printed["dynamodb"]["OldImage"]["Picture"] = binary.clone();
        let message = error(&json!({"Records": [of_the_api(&json!(0)), printed]}).to_string()).to_string();
        assert_eq!(
            message,
            "its record 2 cannot be read; binary values must be base64, as the AWS command line prints them"
        );
        let mut of_an_event = of_an_event();
        of_an_event["dynamodb"]["OldImage"]["Picture"] = binary;
        assert_eq!(records(&read(&json!({"Records": [of_an_event]}), &Lane::default())), [of_an_event]);
    }
}
