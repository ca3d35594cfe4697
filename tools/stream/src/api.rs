//! The part of the Streams API that a mapping needs, small enough that a stream in memory can stand in for it.

use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodbstreams::types::Record;
use futures::future::BoxFuture;
use thiserror::Error;
use tokio::time::Instant;

use crate::event::{Reading, StreamEventError, read};

/// One stream.
pub(crate) trait StreamApi: Send + Sync {
    /// One page of the stream's shards, behind the shard `after`.
    fn shards<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>>;

    /// An iterator over a shard.
    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>>;

    /// The records at an iterator, at most `limit`.
    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>>;
}

/// One page of shards.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShardPage {
    pub(crate) shards: Vec<ListedShard>,
    /// `LastEvaluatedShardId`: where the next page starts, `None` on the last.
    pub(crate) last_evaluated: Option<String>,
}

/// A shard as the stream lists it. Its ending sequence number is left out on purpose: dynoxide writes one on the open
/// shard, so it means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedShard {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
}

/// Where an iterator starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IteratorAt {
    TrimHorizon,
    Latest,
    After(String),
}

/// One page of records.
#[derive(Debug, Clone)]
pub(crate) struct RecordPage {
    /// When the read began: what was written later may be missing, however late the page is given to another mapping.
    pub(crate) started: Instant,
    pub(crate) records: Arc<[Record]>,
    /// `NextShardIterator`: `None` means that the shard is closed and this was all of it.
    pub(crate) next: Option<String>,
    /// The records as Lambda's, once somebody has asked: whoever shares the page has them too.
    readings: Arc<OnceLock<Vec<Result<Reading, StreamEventError>>>>,
}

impl RecordPage {
    pub(crate) fn new(started: Instant, records: Arc<[Record]>, next: Option<String>) -> Self {
        Self { started, records, next, readings: Arc::default() }
    }

    /// The records, each with what it is for Lambda. All who share the page name the same stream.
    pub(crate) fn readings(
        &self,
        stream_arn: &str,
    ) -> impl Iterator<Item = (&Record, &Result<Reading, StreamEventError>)> {
        let readings = self.readings.get_or_init(|| self.records.iter().map(|one| read(one, stream_arn)).collect());
        self.records.iter().zip(readings)
    }
}

/// Why a call failed, by what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ApiError {
    /// Take a new iterator behind the last position.
    #[error("the shard iterator has expired")]
    ExpiredIterator,
    /// The position is older than the stream: go on at its oldest record.
    #[error("the records behind the last position are trimmed")]
    Trimmed,
    /// The stream or the shard is not there.
    #[error("not found: {message}")]
    NotFound { message: String },
    /// The call as it is will be refused again.
    #[error("refused: {message}")]
    Refused { message: String },
    /// Try again later.
    #[error("{message}")]
    Transient { message: String },
}
