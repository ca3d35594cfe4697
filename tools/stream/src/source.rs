//! Reads the pages of one shard in order, retrying until each read succeeds.

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use aws_sdk_dynamodbstreams::types::Record;
use futures::future::BoxFuture;
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    event::{Reading, StreamEventError, read},
    poller::{Stop, Stopped, Waits},
    wiring::{Complaint, Wiring},
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

/// One successful read.
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
