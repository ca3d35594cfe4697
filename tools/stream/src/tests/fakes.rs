//! What stands in for the outside: a stream in memory, and an HTTP server.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

use aws_sdk_dynamodbstreams::{
    primitives::DateTime,
    types::{AttributeValue, OperationType, Record, StreamRecord, StreamViewType},
};
use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use crate::{
    event::order,
    source::{ApiError, IteratorAt, ListedShard, RecordPage, ShardPage, StreamApi},
};

/// A simple but faithful stream: shards that split, end and are trimmed, iterators that expire, pages, outages. Clones
/// share one stream.
#[derive(Clone, Default)]
pub(crate) struct MemoryStream {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    shards: Vec<Shard>,
    n_written: u64,
    page_shards: Option<usize>,
    /// Iterators of earlier generations have expired.
    generation: u64,
    outages: VecDeque<ApiError>,
    is_deleted: bool,
    calls: Vec<String>,
    n_records_read: usize,
    n_reads: usize,
}

struct Shard {
    id: String,
    parent: Option<String>,
    records: Vec<Record>,
    n_trimmed: usize,
    is_closed: bool,
}

impl MemoryStream {
    pub(crate) fn open(&self, id: &str, parent: Option<&str>) {
        let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
        self.state().shards.push(Shard { id, parent, records: Vec::new(), n_trimmed: 0, is_closed: false });
    }

    /// Closes a shard and opens its children.
    pub(crate) fn split(&self, id: &str, children: &[&str]) {
        self.state().shard(id).is_closed = true;
        for child in children {
            self.open(child, Some(id));
        }
    }

    /// Writes an `INSERT` for each of `n_records` new items. Sequence numbers count from 1 over the whole stream.
    pub(crate) fn insert(&self, id: &str, n_records: usize, now: SystemTime) {
        (0..n_records).for_each(|_| self.write(id, OperationType::Insert, None, now, |record| record));
    }

    /// Writes an `INSERT` of this item.
    pub(crate) fn touch(&self, id: &str, item: &str, now: SystemTime) {
        self.write(id, OperationType::Insert, Some(item), now, |record| record);
    }

    /// Writes a `MODIFY` from one number to another.
    pub(crate) fn modify(&self, id: &str, old: &str, new: &str, now: SystemTime) {
        let number = |text: &str| AttributeValue::N(text.to_owned());
        self.write(id, OperationType::Modify, None, now, |record| {
            record.old_image("n", number(old)).new_image("n", number(new))
        });
    }

    fn write(
        &self,
        id: &str,
        operation: OperationType,
        item: Option<&str>,
        now: SystemTime,
        images: impl FnOnce(
            aws_sdk_dynamodbstreams::types::builders::StreamRecordBuilder,
        ) -> aws_sdk_dynamodbstreams::types::builders::StreamRecordBuilder,
    ) {
        let mut state = self.state();
        state.n_written += 1;
        let sequence_number = state.n_written.to_string();
        let item = item.map_or_else(|| format!("item {sequence_number}"), str::to_owned);
        let change = StreamRecord::builder()
            .approximate_creation_date_time(DateTime::from_secs(DateTime::from(now).secs()))
            .keys("id", AttributeValue::S(item))
            .sequence_number(&sequence_number)
            .stream_view_type(StreamViewType::NewAndOldImages);
        let change = images(change).build();
        let record = Record::builder().event_id(format!("event {sequence_number}")).event_name(operation);
        let shard = state.shard(id);
        assert!(!shard.is_closed, "a closed shard takes no records");
        shard.records.push(record.dynamodb(change).build());
    }

    /// Trims the oldest records of a shard. A closed shard that is trimmed completely is no longer listed.
    pub(crate) fn trim(&self, id: &str, n_records: usize) {
        let mut state = self.state();
        let shard = state.shard(id);
        shard.n_trimmed += n_records;
        if shard.is_closed && shard.n_trimmed >= shard.records.len() {
            state.shards.retain(|shard| shard.id != id);
        }
    }

    pub(crate) fn list_by(&self, page_shards: usize) {
        self.state().page_shards = Some(page_shards);
    }

    pub(crate) fn expire_iterators(&self) {
        self.state().generation += 1;
    }

    /// The next `n_times` reads fail.
    pub(crate) fn fail(&self, error: &ApiError, n_times: usize) {
        self.state().outages.extend(std::iter::repeat_n(error.clone(), n_times));
    }

    pub(crate) fn delete(&self) {
        self.state().is_deleted = true;
    }

    /// The calls so far, without the reads.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    pub(crate) fn n_reads(&self) -> usize {
        self.state().n_reads
    }

    pub(crate) fn n_records_read(&self) -> usize {
        self.state().n_records_read
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn shard(&mut self, id: &str) -> &mut Shard {
        self.shards.iter_mut().find(|shard| shard.id == id).unwrap()
    }

    fn found(&mut self, id: &str) -> Result<&mut Shard, ApiError> {
        let is_deleted = self.is_deleted;
        let shard = self.shards.iter_mut().find(|shard| shard.id == id && !is_deleted);
        shard.ok_or(ApiError::NotFound { message: id.to_owned() })
    }

    fn list(&mut self, after: Option<&str>) -> Result<ShardPage, ApiError> {
        self.calls.push(format!("list after {after:?}"));
        if self.is_deleted {
            return Err(ApiError::NotFound { message: "stream".to_owned() });
        }
        let start = after.map_or(0, |after| self.shards.iter().position(|shard| shard.id == after).unwrap() + 1);
        let end = self.page_shards.map_or(self.shards.len(), |page| (start + page).min(self.shards.len()));
        let page = &self.shards[start..end];
        let shards =
            page.iter().map(|shard| ListedShard { id: shard.id.clone(), parent: shard.parent.clone() }).collect();
        let last_evaluated = (end < self.shards.len()).then(|| page.last().unwrap().id.clone());
        Ok(ShardPage { shards, last_evaluated })
    }

    fn iterator(&mut self, id: &str, at: &IteratorAt) -> Result<String, ApiError> {
        self.calls.push(format!("{id} at {at:?}"));
        let generation = self.generation;
        let shard = self.found(id)?;
        let index = match at {
            IteratorAt::TrimHorizon => shard.n_trimmed,
            IteratorAt::Latest => shard.records.len(),
            IteratorAt::After(after) => {
                shard.records.iter().take_while(|record| order(sequence_number(record)) <= order(after)).count()
            }
        };
        if index < shard.n_trimmed { Err(ApiError::Trimmed) } else { Ok(format!("{id} {index} {generation}")) }
    }

    fn read(&mut self, iterator: &str, limit: usize) -> Result<RecordPage, ApiError> {
        self.n_reads += 1;
        if let Some(outage) = self.outages.pop_front() {
            return Err(outage);
        }
        let [id, index, generation] = iterator.split(' ').collect::<Vec<_>>().try_into().unwrap();
        if generation.parse() != Ok(self.generation) {
            return Err(ApiError::ExpiredIterator);
        }
        let shard = self.found(id)?;
        let start: usize = index.parse().unwrap();
        if start < shard.n_trimmed {
            return Err(ApiError::Trimmed);
        }
        let end = (start + limit).min(shard.records.len());
        let is_end = shard.is_closed && end == shard.records.len();
        let next = (!is_end).then(|| format!("{id} {end} {generation}"));
        let records: Arc<[Record]> = shard.records[start..end].into();
        self.n_records_read += records.len();
        Ok(RecordPage::new(Instant::now(), records, next))
    }
}

fn sequence_number(record: &Record) -> &str {
    record.dynamodb().unwrap().sequence_number().unwrap()
}

impl StreamApi for MemoryStream {
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
        async move { self.state().list(after) }.boxed()
    }

    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
        async move { self.state().iterator(shard, at) }.boxed()
    }

    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
        async move { self.state().read(iterator, limit) }.boxed()
    }
}

/// An HTTP server on the loopback interface that gives a fixed list of answers, one per connection.
pub(crate) struct Loopback {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

/// An HTTP answer. The server closes the connection if the text is empty instead.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

impl Loopback {
    /// Serves the answers, then stops listening.
    pub(crate) async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        if answers.is_empty() {
            drop(listener);
        } else {
            tokio::spawn(serve(listener, answers, Arc::clone(&requests)));
        }
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, answers: Vec<String>, requests: Arc<Mutex<Vec<String>>>) {
    for answer in answers {
        let (mut connection, _) = listener.accept().await.unwrap();
        let request = request(&mut connection).await;
        requests.lock().unwrap().push(request);
        connection.write_all(answer.as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
    }
}

async fn request(connection: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let n = connection.read(&mut chunk).await.unwrap();
        text.extend_from_slice(&chunk[..n]);
        let read = String::from_utf8(text.clone()).unwrap();
        let Some((head, body)) = read.split_once("\r\n\r\n") else {
            assert!(n > 0, "the connection closed inside of the request");
            continue;
        };
        let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return read;
        }
    }
}
