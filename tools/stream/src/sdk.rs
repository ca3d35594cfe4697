//! The Streams API through the AWS SDK.

use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{Shard, ShardIteratorType};
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::progress::NOTHING_RESPONDS;
use crate::source::{ApiError, IteratorAt, ListedShard, RecordPage, ShardPage, StreamApi};
use crate::wiring::chain;

/// A stream that is read with an SDK client.
pub(crate) struct SdkStream {
    client: Client,
    stream_arn: String,
}

impl SdkStream {
    pub(crate) fn new(client: Client, stream_arn: String) -> Self {
        Self { client, stream_arn }
    }
}

impl StreamApi for SdkStream {
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
        Box::pin(async move {
            let request = self.client.describe_stream().stream_arn(&self.stream_arn);
            let output = request.set_exclusive_start_shard_id(after.map(str::to_owned)).send().await;
            let description = output.map_err(|error| classify(&error))?.stream_description;
            Ok(description.map_or_else(ShardPage::default, |description| ShardPage {
                shards: description.shards.unwrap_or_default().into_iter().filter_map(listed).collect(),
                last_evaluated: description.last_evaluated_shard_id,
            }))
        })
    }

    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
        Box::pin(async move {
            let request = self.client.get_shard_iterator().stream_arn(&self.stream_arn).shard_id(shard);
            let request = match at {
                IteratorAt::TrimHorizon => request.shard_iterator_type(ShardIteratorType::TrimHorizon),
                IteratorAt::Latest => request.shard_iterator_type(ShardIteratorType::Latest),
                IteratorAt::After(sequence_number) => {
                    request.shard_iterator_type(ShardIteratorType::AfterSequenceNumber).sequence_number(sequence_number)
                }
            };
            let output = request.send().await.map_err(|error| classify(&error))?;
            output.shard_iterator.ok_or_else(|| ApiError::Transient { message: format!("no iterator for {shard}") })
        })
    }

    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
        Box::pin(async move {
            let started = Instant::now();
            let request = self.client.get_records().shard_iterator(iterator).set_limit(i32::try_from(limit).ok());
            let output = request.send().await.map_err(|error| classify(&error))?;
            Ok(RecordPage::new(started, output.records.unwrap_or_default().into(), output.next_shard_iterator))
        })
    }
}

fn listed(shard: Shard) -> Option<ListedShard> {
    Some(ListedShard { id: shard.shard_id?, parent: shard.parent_shard_id })
}

/// Classifies an error by its code, not by its type: a validation error has no type in this API, and DynamoDB Local
/// sends codes that the model does not have.
fn classify<E>(error: &SdkError<E>) -> ApiError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let code = error.code().unwrap_or_default();
    let message = match error.message() {
        Some(message) if !code.is_empty() => format!("{code}: {message}"),
        _ if matches!(error, SdkError::DispatchFailure(_) | SdkError::TimeoutError(_)) => NOTHING_RESPONDS.to_owned(),
        _ => chain(error),
    };
    match code {
        "ExpiredIteratorException" => ApiError::ExpiredIterator,
        "TrimmedDataAccessException" => ApiError::Trimmed,
        "ResourceNotFoundException" => ApiError::NotFound { message },
        "ValidationException"
        | "AccessDeniedException"
        | "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "MissingAuthenticationTokenException" => ApiError::Refused { message },
        _ => ApiError::Transient { message },
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::config::retry::RetryConfig;
    use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
    use aws_sdk_dynamodbstreams::{Client, Config};

    use super::SdkStream;
    use crate::event::{Reading, read};
    use crate::source::{ApiError, IteratorAt, ListedShard, StreamApi as _};
    use crate::tests::loopback::{Loopback, answer};

    fn stream(url: &str) -> SdkStream {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(url)
            .retry_config(RetryConfig::disabled())
            .build();
        SdkStream::new(Client::from_conf(config), "arn:aws:dynamodb:eu-west-1:0:table/app/stream/1".to_owned())
    }

    fn ok(body: &str) -> String {
        answer("200 OK", "Content-Type: application/x-amz-json-1.0\r\n", body)
    }

    fn refusal(code: &str) -> String {
        let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"because"}}"#);
        answer("400 Bad Request", "Content-Type: application/x-amz-json-1.0\r\n", &body)
    }

    #[tokio::test]
    async fn shards_come_with_their_parents_and_where_the_next_page_starts() {
        let server = Loopback::start(vec![ok(r#"{"StreamDescription":{"Shards":[
                {"ShardId":"a","SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"2"}},
                {"ShardId":"b","ParentShardId":"a"}],"LastEvaluatedShardId":"b"}}"#)])
        .await;
        let page = stream(&server.url()).shards(Some("z")).await.unwrap();
        assert_eq!(page.last_evaluated.as_deref(), Some("b"));
        assert_eq!(page.shards[0], ListedShard { id: "a".into(), parent: None });
        assert_eq!(page.shards[1], ListedShard { id: "b".into(), parent: Some("a".into()) });
        assert!(server.requests()[0].contains(r#""ExclusiveStartShardId":"z""#));
    }

    #[tokio::test]
    async fn an_iterator_is_asked_for_at_its_position() {
        let server = Loopback::start(vec![ok(r#"{"ShardIterator":"i"}"#)]).await;
        let iterator = stream(&server.url()).iterator("a", &IteratorAt::After("42".into())).await.unwrap();
        assert_eq!(iterator, "i");
        let request = &server.requests()[0];
        assert!(request.contains(r#""ShardIteratorType":"AFTER_SEQUENCE_NUMBER""#), "{request}");
        assert!(request.contains(r#""SequenceNumber":"42""#), "{request}");
    }

    #[tokio::test]
    async fn a_ttl_removal_of_dynoxide_is_known_though_its_identity_reads_as_empty() {
        let server =
            Loopback::start(vec![ok(r#"{"Records":[{"eventID":"e","eventName":"REMOVE","awsRegion":"dynoxide",
                "userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},
                "dynamodb":{"ApproximateCreationDateTime":1480642020,"Keys":{"id":{"S":"x"}},
                    "SequenceNumber":"100000000000000000042","SizeBytes":76,"StreamViewType":"NEW_AND_OLD_IMAGES"}}],
                "NextShardIterator":"next"}"#)])
            .await;
        let page = stream(&server.url()).records("i", 100).await.unwrap();
        assert_eq!(page.next.as_deref(), Some("next"));
        assert!(server.requests()[0].contains(r#""Limit":100"#));
        let Reading::Deliver(record) = read(&page.records[0], "arn").unwrap() else { panic!("not delivered") };
        assert!(record.json.contains(r#""principalId":"dynamodb.amazonaws.com","type":"Service""#), "{}", record.json);
        assert!(record.json.contains(r#""SizeBytes":3"#), "{}", record.json);
    }

    #[tokio::test]
    async fn errors_say_what_to_do_about_them() {
        let cases = [
            ("ExpiredIteratorException", ApiError::ExpiredIterator),
            ("TrimmedDataAccessException", ApiError::Trimmed),
            ("ResourceNotFoundException", ApiError::NotFound { message: "ResourceNotFoundException: because".into() }),
            ("ValidationException", ApiError::Refused { message: "ValidationException: because".into() }),
            ("LimitExceededException", ApiError::Transient { message: "LimitExceededException: because".into() }),
        ];
        for (code, expected) in cases {
            let server = Loopback::start(vec![refusal(code)]).await;
            assert_eq!(stream(&server.url()).records("i", 1).await.unwrap_err(), expected);
        }
        let url = Loopback::start(Vec::new()).await.url();
        assert!(matches!(stream(&url).shards(None).await, Err(ApiError::Transient { .. })));
    }
}
