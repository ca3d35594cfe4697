//! Reads the pages of one shard in order, retrying until each read succeeds; and the Streams API below it.
//!
//! # One stream that several mappings read
//!
//! A page that one mapping has read is given to the others, with the records as converted for Lambda. On AWS each event
//! source mapping has its own readers. Here all mappings share the processors with the functions and the database.
//!
//! *Keeps true*: sharing a page does not change what a mapping reads, because an iterator returns the same records at
//! each use. Only a page that has records or ends its shard is shared. An empty page is valid only for the request that
//! read it, because records may have come since. A mapping that asks for fewer records than a page has reads for
//! itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::SystemTime,
};

use aws_sdk_dynamodbstreams::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    types::{Record, Shard, ShardIteratorType},
};
use futures::future::BoxFuture;
use thiserror::Error;
use tokio::{sync::OnceCell, time::Instant};

use crate::{
    event::{Reading, StreamEventError, read},
    poller::{Complaint, Stop, Stopped, Waits, Wiring, chain},
    progress::NOTHING_RESPONDS,
};

/// The most records that one `GetRecords` returns. Source: `GetRecords`, `Limit`.
const READ_RECORDS_MAX: usize = 1_000;

/// The next page of a shard.
pub(crate) struct PageSource {
    wiring: Arc<Wiring>,
    shard: String,
    /// Where a new iterator starts: after the last record read, which may be ahead of the checkpoint.
    at: IteratorAt,
    iterator: Option<String>,
    stop: Stop,
    complaint: Complaint,
}

pub(crate) struct ShardRead {
    /// When the read began, on the wall clock.
    pub(crate) started_at: SystemTime,
    pub(crate) page: RecordPage,
    /// Whether the page has as many records as requested. If so, more may exist already.
    pub(crate) is_full: bool,
}

impl PageSource {
    pub(crate) fn new(wiring: Arc<Wiring>, shard: String, at: IteratorAt, stop: Stop) -> Self {
        Self { wiring, shard, at, iterator: None, stop, complaint: Complaint::default() }
    }

    /// Reads one page of at most `n_records_max` records, retrying until it succeeds. `None` if the shard is lost.
    pub(crate) async fn read(&mut self, n_records_max: usize) -> Result<Option<ShardRead>, Stopped> {
        let mut backoff = Waits::default();
        loop {
            let started_at = (self.wiring.clock)();
            let mut stop = self.stop.clone();
            let error = match stop.or(self.try_read(n_records_max)).await? {
                Ok(page) => {
                    self.complaint.over();
                    self.step_behind(&page);
                    let is_full = page.records.len() >= self.limit(n_records_max);
                    return Ok(Some(ShardRead { started_at, page, is_full }));
                }
                Err(ApiError::NotFound { .. }) => return Ok(None),
                Err(error) => error,
            };
            self.recover(&error);
            self.stop.sleep(backoff.wait()).await?;
        }
    }

    async fn try_read(&mut self, n_records_max: usize) -> Result<RecordPage, ApiError> {
        let iterator = match &self.iterator {
            Some(iterator) => iterator.clone(),
            None => self.wiring.api.iterator(&self.shard, &self.at).await?,
        };
        let limit = self.limit(n_records_max);
        self.wiring.api.records(self.iterator.insert(iterator), limit).await
    }

    fn limit(&self, n_records_max: usize) -> usize {
        self.wiring.mapping.batch_size.min(READ_RECORDS_MAX).min(n_records_max.max(1))
    }

    fn step_behind(&mut self, page: &RecordPage) {
        self.iterator.clone_from(&page.next);
        let last = page.records.iter().rev().find_map(|record| record.dynamodb()?.sequence_number());
        if let Some(last) = last {
            self.at = IteratorAt::After(last.to_owned());
        }
    }

    /// Prepares the next attempt after an error.
    fn recover(&mut self, error: &ApiError) {
        let shard = &self.shard;
        match error {
            ApiError::ExpiredIterator => {
                self.iterator = None;
                if self.at == IteratorAt::Latest {
                    let message = format!("{error}; shard {shard} goes on at its newest record, records may be lost");
                    self.wiring.trouble(&message);
                }
            }
            ApiError::Trimmed => {
                self.iterator = None;
                if self.at != IteratorAt::TrimHorizon {
                    self.at = IteratorAt::TrimHorizon;
                    let message = format!("{error}; shard {shard} goes on at its oldest record, records may be lost");
                    self.wiring.trouble(&message);
                }
            }
            // A new iterator, because DynamoDB Local refuses iterators that it gave out earlier.
            ApiError::Refused { .. } => {
                self.iterator = None;
                self.complaint.report(&self.wiring, &format!("shard {shard} cannot be read, trying again: {error}"));
            }
            ApiError::NotFound { .. } | ApiError::Transient { .. } => {
                self.complaint.report(&self.wiring, &format!("shard {shard} cannot be read, trying again: {error}"));
            }
        }
    }
}

// ---- The Streams API ----

/// One stream.
pub trait StreamApi: Send + Sync {
    /// One page of the stream's shards, behind the shard `after`.
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>>;

    /// An iterator over a shard.
    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>>;

    /// The records at an iterator, at most `limit`.
    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>>;
}

/// One page of shards.
#[derive(Debug, Clone, Default)]
pub struct ShardPage {
    /// The shards.
    pub shards: Vec<ListedShard>,
    /// `LastEvaluatedShardId`: where the next page starts, `None` on the last.
    pub last_evaluated: Option<String>,
}

/// A shard in a listing, without its ending sequence number: dynoxide also writes one for an open shard, so it means
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedShard {
    /// Its id.
    pub id: String,
    /// The id of its parent.
    pub parent: Option<String>,
}

/// Where an iterator starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IteratorAt {
    /// At the oldest record.
    TrimHorizon,
    /// Behind the newest record.
    Latest,
    /// Behind the record with this sequence number.
    After(String),
}

/// One page of records.
#[derive(Debug, Clone)]
pub struct RecordPage {
    /// When the read began: what was written later may be missing, however late the page is given to another mapping.
    pub(crate) started: Instant,
    pub(crate) records: Arc<[Record]>,
    /// `NextShardIterator`; `None` if the shard is closed and this was its last page.
    pub(crate) next: Option<String>,
    /// The records as converted for Lambda, from the first use on. All mappings with this page share them.
    readings: Arc<OnceLock<Vec<Result<Reading, StreamEventError>>>>,
}

impl RecordPage {
    /// The records of a read that began at this time, and where the next read goes on.
    #[must_use]
    pub fn new(started: Instant, records: Arc<[Record]>, next: Option<String>) -> Self {
        Self { started, records, next, readings: Arc::default() }
    }

    /// The records, each with its conversion for Lambda. All mappings with this page have the same stream ARN.
    pub(crate) fn readings(
        &self,
        stream_arn: &str,
    ) -> impl Iterator<Item = (&Record, &Result<Reading, StreamEventError>)> {
        let readings = self.readings.get_or_init(|| self.records.iter().map(|one| read(one, stream_arn)).collect());
        self.records.iter().zip(readings)
    }
}

/// Why a call failed. The variants say what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiError {
    /// Take a new iterator behind the last position.
    #[error("the shard iterator has expired")]
    ExpiredIterator,
    /// The position is older than the stream. Continue at the oldest record.
    #[error("the records behind the last position are trimmed")]
    Trimmed,
    /// The stream or the shard does not exist.
    #[error("not found: {message}")]
    NotFound {
        /// What the service said.
        message: String,
    },
    /// The call as it is will be refused again.
    #[error("refused: {message}")]
    Refused {
        /// What the service said.
        message: String,
    },
    /// Try again later.
    #[error("{message}")]
    Transient {
        /// What the service said.
        message: String,
    },
}

// ---- The API through the AWS SDK ----

/// A stream that is read with an SDK client.
struct SdkStream {
    client: Client,
    stream_arn: String,
}

impl SdkStream {
    fn new(client: Client, stream_arn: String) -> Self {
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

// ---- One stream that several mappings read ----

/// The number of pages that are kept. A mapping that is further behind reads for itself.
const PAGES_MAX: usize = 4;

/// A stream that mappings read.
#[derive(Clone)]
pub struct Stream {
    pub(crate) api: Arc<dyn StreamApi>,
}

impl Stream {
    /// A stream of AWS or of an emulator.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodbstreams::Client, arn: &str) -> Self {
        let api = SdkStream::new(client, arn.to_owned());
        Self { api: Arc::new(ReadOnce::new(api)) }
    }

    /// A stream of anything else, such as one in memory.
    #[must_use]
    pub fn over(api: Arc<dyn StreamApi>) -> Self {
        Self { api }
    }
}

/// A page that was read or is being read.
type SharedPage = Arc<OnceCell<RecordPage>>;

/// Reads each page once.
pub(crate) struct ReadOnce<A> {
    inner: A,
    /// By iterator, the newest last.
    pages: Mutex<VecDeque<(String, SharedPage)>>,
}

impl<A: StreamApi> ReadOnce<A> {
    pub(crate) fn new(inner: A) -> Self {
        Self { inner, pages: Mutex::default() }
    }

    /// The page at an iterator, already read or still to be read.
    fn page(&self, iterator: &str) -> SharedPage {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = pages.iter().find(|(at, _)| at == iterator) {
            return Arc::clone(page);
        }
        if pages.len() >= PAGES_MAX {
            pages.pop_front();
        }
        let page = SharedPage::default();
        pages.push_back((iterator.to_owned(), Arc::clone(&page)));
        page
    }

    fn forget(&self, iterator: &str) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).retain(|(at, _)| at != iterator);
    }
}

impl<A: StreamApi> StreamApi for ReadOnce<A> {
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
        self.inner.shards(after)
    }

    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
        self.inner.iterator(shard, at)
    }

    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
        Box::pin(async move {
            let (shared, mut is_read_here) = (self.page(iterator), false);
            let page = shared.get_or_try_init(|| {
                is_read_here = true;
                self.inner.records(iterator, limit)
            });
            let page = page.await;
            let is_for_others = page.as_ref().is_ok_and(|page| !page.records.is_empty() || page.next.is_none());
            if !is_for_others {
                self.forget(iterator);
            }
            match page {
                Ok(page) if is_read_here || (is_for_others && page.records.len() <= limit) => Ok(page.clone()),
                Ok(_) => self.inner.records(iterator, limit).await,
                Err(error) => Err(error),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use aws_sdk_dynamodbstreams::{
        Client, Config,
        config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    };
    use futures::future::{BoxFuture, join};

    use super::{ApiError, IteratorAt, ListedShard, PAGES_MAX, ReadOnce, RecordPage, SdkStream, ShardPage, StreamApi};
    use crate::{
        event::{Reading, read},
        tests::fakes::{Loopback, MemoryStream, answer},
    };

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

    /// A stream whose reads take a while, so that another request can come during a read.
    struct Slow(MemoryStream);

    impl StreamApi for Slow {
        fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
            self.0.shards(after)
        }

        fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
            self.0.iterator(shard, at)
        }

        fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.0.records(iterator, limit).await
            })
        }
    }

    async fn at_the_oldest(n_records: usize) -> (ReadOnce<Slow>, String) {
        let stream = MemoryStream::default();
        stream.open("a", None);
        stream.insert("a", n_records, SystemTime::UNIX_EPOCH);
        let iterator = stream.iterator("a", &IteratorAt::TrimHorizon).await.unwrap();
        (ReadOnce::new(Slow(stream)), iterator)
    }

    #[tokio::test]
    async fn a_page_is_read_once_by_whoever_asks_at_once_or_later() {
        let (stream, iterator) = at_the_oldest(3).await;
        let (one, other) = join(stream.records(&iterator, 10), stream.records(&iterator, 10)).await;
        let (one, other, later) = (one.unwrap(), other.unwrap(), stream.records(&iterator, 3).await.unwrap());
        assert_eq!([one.records.len(), other.records.len(), later.records.len()], [3, 3, 3]);
        assert_eq!((&one.next, &one.next), (&other.next, &later.next));
        assert_eq!(stream.inner.0.n_records_read(), 3);
        // The records are converted for Lambda only once, too.
        let [made, taken] = [&one, &later].map(|page| page.readings("arn").next().unwrap().1);
        assert!(std::ptr::eq(made, taken));
    }

    #[tokio::test]
    async fn a_page_without_records_is_read_again() {
        let (stream, iterator) = at_the_oldest(0).await;
        // An empty page proves nothing for a request that came during the read.
        let (one, other) = join(stream.records(&iterator, 10), stream.records(&iterator, 10)).await;
        assert!(one.unwrap().records.is_empty() && other.unwrap().records.is_empty());
        assert_eq!(stream.inner.0.n_reads(), 2);
        stream.inner.0.insert("a", 2, SystemTime::UNIX_EPOCH);
        assert_eq!(stream.records(&iterator, 10).await.unwrap().records.len(), 2);
    }

    #[tokio::test]
    async fn who_asks_for_fewer_records_than_were_read_gets_no_more_than_that() {
        let (stream, iterator) = at_the_oldest(3).await;
        assert_eq!(stream.records(&iterator, 10).await.unwrap().records.len(), 3);
        assert_eq!(stream.records(&iterator, 2).await.unwrap().records.len(), 2);
    }

    #[tokio::test]
    async fn who_is_behind_by_more_pages_than_are_kept_reads_for_itself() {
        let (stream, first) = at_the_oldest(PAGES_MAX + 1).await;
        let mut iterator = first.clone();
        for _ in 0..=PAGES_MAX {
            iterator = stream.records(&iterator, 1).await.unwrap().next.unwrap();
        }
        assert_eq!(stream.records(&first, 1).await.unwrap().records.len(), 1);
        assert_eq!(stream.inner.0.n_records_read(), PAGES_MAX + 2);
    }

    #[tokio::test]
    async fn a_read_that_failed_is_made_again() {
        let (stream, iterator) = at_the_oldest(1).await;
        stream.inner.0.fail(&ApiError::ExpiredIterator, 1);
        assert!(stream.records(&iterator, 1).await.is_err());
        assert_eq!(stream.records(&iterator, 1).await.unwrap().records.len(), 1);
    }
}
