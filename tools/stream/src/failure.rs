//! The on-failure record, as Lambda writes it: which records a mapping discarded, and why; and its destinations.
//!
//! Format and names are Lambda's (U5, LS). Times of records have no milliseconds. `responseContext` is absent if the
//! records were too old. `functionError` is null if the function answered and reported failures. Only S3 gets the
//! event; SQS and SNS get the rest.

use std::{
    io,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use aws_sdk_dynamodbstreams::primitives::{DateTime, DateTimeFormat};
use futures::future::BoxFuture;
use keys::fnv;
use serde::Serialize;

use crate::batch::Held;

/// Why records were discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscardCondition {
    /// `RetryAttemptsExhausted`.
    Exhausted {
        /// Whether the last invocation ended in an error, not in a response that reported failures.
        is_function_error: bool,
    },
    /// `RecordAgeExceeded`.
    TooOld,
}

/// Records that are discarded together.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) mapping: &'a str,
    pub(crate) stream_arn: &'a str,
    pub(crate) shard: &'a str,
    pub(crate) condition: DiscardCondition,
    /// `approximateInvokeCount`.
    pub(crate) n_invocations: u32,
    pub(crate) records: &'a [Held],
    /// `payload`: the event of these records; `None` if the destination does not get it.
    pub(crate) payload: Option<String>,
    pub(crate) now: SystemTime,
}

impl Failure<'_> {
    /// `aws/lambda/<mapping UUID>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random>`
    pub(crate) fn key(&self, random: u128) -> String {
        let time = seconds_text(self.now).replace(':', ".");
        let time = time.trim_end_matches('Z');
        let day = time.split('T').next().unwrap_or_default().replace('-', "/");
        let (mapping, random) = (uuid_text(mapping_hash(self.mapping, self.stream_arn), 8), uuid_text(random, 4));
        format!("aws/lambda/{mapping}/{shard}/{day}/{time}-{random}", shard = self.shard)
    }

    /// The failure record as JSON text.
    pub(crate) fn body(&self, random: u128) -> Result<String, serde_json::Error> {
        let (condition, response_context) = match self.condition {
            DiscardCondition::Exhausted { is_function_error } => {
                let function_error = is_function_error.then_some("Unhandled");
                let context = ResponseContext { status_code: 200, executed_version: "$LATEST", function_error };
                ("RetryAttemptsExhausted", Some(context))
            }
            DiscardCondition::TooOld => ("RecordAgeExceeded", None),
        };
        let (first, last) = (self.records.first(), self.records.last());
        let sequence_number = |held: Option<&Held>| held.map(|held| held.record.sequence_number.clone());
        let arrival = |held: Option<&Held>| held.and_then(|held| held.record.created).map(seconds_text);
        serde_json::to_string(&FailureText {
            request_context: RequestContext {
                request_id: uuid_text(random, 4),
                function_arn: self.function_arn(),
                condition,
                approximate_invoke_count: self.n_invocations,
            },
            response_context,
            version: "1.0",
            timestamp: millis_text(self.now),
            batch_info: BatchInfo {
                shard_id: self.shard,
                start_sequence_number: sequence_number(first),
                end_sequence_number: sequence_number(last),
                approximate_arrival_of_first_record: arrival(first),
                approximate_arrival_of_last_record: arrival(last),
                batch_size: self.records.len(),
                stream_arn: self.stream_arn,
            },
            payload: self.payload.as_deref(),
        })
    }

    /// The function's ARN, in the stream's region and account.
    fn function_arn(&self) -> String {
        let mut parts = self.stream_arn.split(':').skip(3);
        let (region, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        format!("arn:aws:lambda:{region}:{account}:function:{name}", name = self.mapping)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureText<'a> {
    request_context: RequestContext,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_context: Option<ResponseContext>,
    version: &'static str,
    timestamp: String,
    #[serde(rename = "DDBStreamBatchInfo")]
    batch_info: BatchInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    request_id: String,
    function_arn: String,
    condition: &'static str,
    approximate_invoke_count: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseContext {
    status_code: u16,
    executed_version: &'static str,
    function_error: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchInfo<'a> {
    shard_id: &'a str,
    start_sequence_number: Option<String>,
    end_sequence_number: Option<String>,
    approximate_arrival_of_first_record: Option<String>,
    approximate_arrival_of_last_record: Option<String>,
    batch_size: usize,
    stream_arn: &'a str,
}

/// `2019-11-14T00:13:49Z`. Empty if the time has no such text (before year -9999).
fn seconds_text(time: SystemTime) -> String {
    DateTime::from_secs(DateTime::from(time).secs()).fmt(DateTimeFormat::DateTime).unwrap_or_default()
}

/// `2019-11-14T00:13:49.717Z`
fn millis_text(time: SystemTime) -> String {
    let ms = DateTime::from(time).subsec_nanos() / 1_000_000;
    format!("{}.{ms:03}Z", seconds_text(time).trim_end_matches('Z'))
}

/// A hash of the mapping's identity (FNV-1a, 128 bits), so that its UUID is the same in every run. A recreated table
/// has another stream, and so another UUID. Stable: the destination's keys contain it.
fn mapping_hash(name: &str, stream_arn: &str) -> u128 {
    // Neither text contains a zero byte, so the separator is unambiguous.
    fnv::hash_128(name.bytes().chain([0]).chain(stream_arn.bytes()))
}

/// 128 bits as the text of a UUID of this version.
fn uuid_text(bits: u128, version: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (version << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

// ---- Destinations ----

/// An on-failure destination. It gets the body that Lambda would send to the mapping's type of destination, and the key
/// that Lambda would write to S3. On AWS, a queue or a topic gets no key.
pub trait Destination: Send + Sync {
    /// Stores one failure record.
    ///
    /// The mapping continues only after this succeeded. After an error it tries again with the same key.
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>>;
}

/// A destination that writes one file per failure record. The path is the key that S3 would have: `aws/lambda/<mapping
/// UUID>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random UUID>`.
///
/// A file is complete or absent. The UUID of a mapping depends only on its name and its stream.
#[derive(Debug, Clone)]
pub struct FolderDestination {
    folder: PathBuf,
}

impl FolderDestination {
    /// Stores records below this folder, which the first record creates.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl Destination for FolderDestination {
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let key = Path::new(&key);
            if !key.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the key leads out of the folder"));
            }
            let path = self.folder.join(key);
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            let mut part = path.clone().into_os_string();
            part.push(".part");
            tokio::fs::write(&part, body).await?;
            tokio::fs::rename(&part, &path).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use expect_test::expect;
    use tokio::time::Instant;

    use super::{Destination as _, DiscardCondition, Failure, FolderDestination};
    use crate::{
        batch::Held,
        event::{LambdaRecord, event_text},
    };

    fn check(condition: DiscardCondition, expected: &expect_test::Expect) {
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(1_573_690_399);
        let now = created + Duration::from_millis(30_717);
        let records = ["800000000003126276362", "800000000003126276363"].map(|number| {
            let json = format!(r#"{{"dynamodb":{{"SequenceNumber":"{number}"}}}}"#);
            let record = LambdaRecord { sequence_number: number.to_owned(), created: Some(created), json };
            Held::new(record, Instant::now(), now)
        });
        let failure = Failure {
            mapping: "aggregate",
            stream_arn: "arn:aws:dynamodb:us-east-2:123456789012:table/app/stream/2019-11-14T00:04:06.388",
            shard: "shardId-00000001573689847184-864758bb",
            condition,
            n_invocations: 4,
            records: &records,
            payload: Some(event_text(records.iter().map(|held| &held.record))),
            now,
        };
        expected.assert_eq(&format!("{}\n{}\n", failure.key(1), failure.body(2).unwrap()));
    }

    /// Source: U5, LS.
    #[test]
    fn records_that_used_up_their_attempts_have_the_shape_that_lambda_writes_to_s3() {
        check(
            DiscardCondition::Exhausted { is_function_error: true },
            &expect![[r#"
                aws/lambda/cb9882c2-6d90-8911-b443-7765b65bb5c7/shardId-00000001573689847184-864758bb/2019/11/14/2019-11-14T00.13.49-00000000-0000-4000-8000-000000000001
                {"requestContext":{"requestId":"00000000-0000-4000-8000-000000000002","functionArn":"arn:aws:lambda:us-east-2:123456789012:function:aggregate","condition":"RetryAttemptsExhausted","approximateInvokeCount":4},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0","timestamp":"2019-11-14T00:13:49.717Z","DDBStreamBatchInfo":{"shardId":"shardId-00000001573689847184-864758bb","startSequenceNumber":"800000000003126276362","endSequenceNumber":"800000000003126276363","approximateArrivalOfFirstRecord":"2019-11-14T00:13:19Z","approximateArrivalOfLastRecord":"2019-11-14T00:13:19Z","batchSize":2,"streamArn":"arn:aws:dynamodb:us-east-2:123456789012:table/app/stream/2019-11-14T00:04:06.388"},"payload":"{\"Records\":[{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276362\"}},{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276363\"}}]}"}
            "#]],
        );
        check(
            DiscardCondition::Exhausted { is_function_error: false },
            &expect![[r#"
                aws/lambda/cb9882c2-6d90-8911-b443-7765b65bb5c7/shardId-00000001573689847184-864758bb/2019/11/14/2019-11-14T00.13.49-00000000-0000-4000-8000-000000000001
                {"requestContext":{"requestId":"00000000-0000-4000-8000-000000000002","functionArn":"arn:aws:lambda:us-east-2:123456789012:function:aggregate","condition":"RetryAttemptsExhausted","approximateInvokeCount":4},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":null},"version":"1.0","timestamp":"2019-11-14T00:13:49.717Z","DDBStreamBatchInfo":{"shardId":"shardId-00000001573689847184-864758bb","startSequenceNumber":"800000000003126276362","endSequenceNumber":"800000000003126276363","approximateArrivalOfFirstRecord":"2019-11-14T00:13:19Z","approximateArrivalOfLastRecord":"2019-11-14T00:13:19Z","batchSize":2,"streamArn":"arn:aws:dynamodb:us-east-2:123456789012:table/app/stream/2019-11-14T00:04:06.388"},"payload":"{\"Records\":[{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276362\"}},{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276363\"}}]}"}
            "#]],
        );
    }

    /// Source: LS.
    #[test]
    fn records_that_were_too_old_have_no_response_context() {
        check(
            DiscardCondition::TooOld,
            &expect![[r#"
                aws/lambda/cb9882c2-6d90-8911-b443-7765b65bb5c7/shardId-00000001573689847184-864758bb/2019/11/14/2019-11-14T00.13.49-00000000-0000-4000-8000-000000000001
                {"requestContext":{"requestId":"00000000-0000-4000-8000-000000000002","functionArn":"arn:aws:lambda:us-east-2:123456789012:function:aggregate","condition":"RecordAgeExceeded","approximateInvokeCount":4},"version":"1.0","timestamp":"2019-11-14T00:13:49.717Z","DDBStreamBatchInfo":{"shardId":"shardId-00000001573689847184-864758bb","startSequenceNumber":"800000000003126276362","endSequenceNumber":"800000000003126276363","approximateArrivalOfFirstRecord":"2019-11-14T00:13:19Z","approximateArrivalOfLastRecord":"2019-11-14T00:13:19Z","batchSize":2,"streamArn":"arn:aws:dynamodb:us-east-2:123456789012:table/app/stream/2019-11-14T00:04:06.388"},"payload":"{\"Records\":[{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276362\"}},{\"dynamodb\":{\"SequenceNumber\":\"800000000003126276363\"}}]}"}
            "#]],
        );
    }

    #[tokio::test]
    async fn a_failure_record_is_a_file_under_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        let key = "aws/lambda/id/shard/2026/11/21/2026-11-21T10.00.00-uuid";
        destination.put(key.to_owned(), "{}".to_owned()).await.unwrap();
        let path = folder.path().join("failures").join(key);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_key_cannot_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        assert!(destination.put("../x".to_owned(), String::new()).await.is_err());
        assert!(destination.put("/x".to_owned(), String::new()).await.is_err());
    }
}
