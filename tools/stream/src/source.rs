//! The pages of one shard, read one after the other for as long as it takes.

use std::sync::Arc;
use std::time::SystemTime;

use crate::api::{ApiError, IteratorAt, RecordPage};
use crate::poller::Waits;
use crate::poller::{Stop, Stopped};
use crate::wiring::{Complaint, Wiring};

/// The most records that one `GetRecords` returns. Source: `GetRecords`, `Limit`.
const READ_RECORDS_MAX: usize = 1_000;

/// Where the next page of a shard comes from.
pub(crate) struct PageSource {
    wiring: Arc<Wiring>,
    shard: String,
    /// Where a new iterator starts: behind the last record read, which may be ahead of the checkpoint.
    at: IteratorAt,
    iterator: Option<String>,
    stop: Stop,
    complaint: Complaint,
}

/// One read that worked.
pub(crate) struct ShardRead {
    /// When it began, as a time of day.
    pub(crate) started_at: SystemTime,
    pub(crate) page: RecordPage,
    /// Whether the page has as many records as were asked for, so that more may be there already.
    pub(crate) is_full: bool,
}

impl PageSource {
    pub(crate) fn new(wiring: Arc<Wiring>, shard: String, at: IteratorAt, stop: Stop) -> Self {
        Self { wiring, shard, at, iterator: None, stop, complaint: Complaint::default() }
    }

    /// One page of at most so many records, for as long as it takes; `None` when the shard is lost.
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

    /// Sets things up so that the next try can work.
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
            // A new iterator, because DynamoDB Local refuses ones that it gave out before.
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
