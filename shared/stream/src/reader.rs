//! Reads one shard to its end and delivers what it finds.
//!
//! One task per shard, so shards go on independently, a batch never mixes them, and a shard whose batch is retried is
//! not read further.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::api::{ApiError, IteratorAt, RecordPage};
use crate::backoff::Backoff;
use crate::batch::{Buffer, Held};
use crate::checkpoint::Position;
use crate::delivery::Delivery;
use crate::event::{Reading, read};
use crate::quiet::Quiet;
use crate::stop::{Stop, Stopped};
use crate::wiring::{Complaint, Wiring};

/// The most records that one `GetRecords` returns. Source: `GetRecords`, `Limit`.
const READ_RECORDS_MAX: usize = 1_000;

/// Why a reader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The shard is closed and all of it is done; its checkpoint says so.
    Drained,
    /// The stream does not know the shard.
    Lost,
    /// Stopping was asked for.
    Stopped,
}

/// The reader of one shard.
pub(crate) struct Reader {
    wiring: Arc<Wiring>,
    quiet: Arc<Quiet>,
    shard: String,
    /// Where a new iterator starts: behind the last record read, which may be ahead of the checkpoint.
    at: IteratorAt,
    iterator: Option<String>,
    buffer: Buffer,
    delivery: Delivery,
    stop: Stop,
    complaint: Complaint,
}

/// One read that worked.
struct Read {
    started: Instant,
    /// The same as a time of day.
    started_at: SystemTime,
    page: RecordPage,
}

impl Reader {
    pub(crate) fn new(wiring: Arc<Wiring>, quiet: Arc<Quiet>, shard: String, at: IteratorAt, stop: Stop) -> Self {
        let buffer = Buffer::new(&wiring.mapping);
        let delivery = Delivery::new(Arc::clone(&wiring), shard.clone(), stop.clone());
        Self { wiring, quiet, shard, at, iterator: None, buffer, delivery, stop, complaint: Complaint::default() }
    }

    /// Reads until the shard ends, is lost, or stopping is asked for.
    pub(crate) async fn run(mut self) -> End {
        self.drain().await.unwrap_or(End::Stopped)
    }

    async fn drain(&mut self) -> Result<End, Stopped> {
        loop {
            let Some(Read { started, started_at, page }) = self.read().await? else {
                self.quiet.busy(&self.shard);
                self.deliver_due(true).await?;
                self.delivery.end_window().await?;
                return Ok(End::Lost);
            };
            let (is_empty, is_closed) = (page.records.is_empty(), page.next.is_none());
            if !is_empty || is_closed {
                self.quiet.busy(&self.shard);
            }
            self.take(page).await?;
            self.deliver_due(is_closed).await?;
            if is_closed {
                self.delivery.end_window().await?;
                self.delivery.save(&Position::Ended).await?;
                return Ok(End::Drained);
            }
            if is_empty {
                if self.buffer.is_empty() {
                    self.quiet.quiet(&self.shard, started);
                    // It has no records, so the shard stays quiet meanwhile: see `Observer::idle`.
                    self.delivery.end_window_if_over(started_at).await?;
                }
                self.stop.sleep(self.pause()).await?;
            }
        }
    }

    /// One page, for as long as it takes; `None` when the shard is lost.
    async fn read(&mut self) -> Result<Option<Read>, Stopped> {
        let mut backoff = Backoff::new();
        loop {
            let (started, started_at) = (Instant::now(), (self.wiring.clock)());
            let mut stop = self.stop.clone();
            let error = match stop.or(self.try_read()).await? {
                Ok(page) => {
                    self.complaint.over();
                    return Ok(Some(Read { started, started_at, page }));
                }
                Err(ApiError::NotFound { .. }) => return Ok(None),
                Err(error) => error,
            };
            self.recover(&error);
            self.stop.sleep(backoff.wait()).await?;
        }
    }

    async fn try_read(&mut self) -> Result<RecordPage, ApiError> {
        let iterator = match &self.iterator {
            Some(iterator) => iterator.clone(),
            None => self.wiring.api.iterator(&self.shard, &self.at).await?,
        };
        let iterator = self.iterator.insert(iterator);
        let limit = self.wiring.mapping.batch_size.min(READ_RECORDS_MAX);
        self.wiring.api.records(iterator, limit).await
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
                self.complaint.tell(&self.wiring, &format!("shard {shard} cannot be read, trying again: {error}"));
            }
            ApiError::NotFound { .. } | ApiError::Transient { .. } => {
                self.complaint.tell(&self.wiring, &format!("shard {shard} cannot be read, trying again: {error}"));
            }
        }
    }

    /// Takes a page's records into the buffer.
    async fn take(&mut self, page: RecordPage) -> Result<(), Stopped> {
        self.iterator = page.next;
        let (read_at, now) = (Instant::now(), (self.wiring.clock)());
        let mut n_equal = 0;
        for record in &page.records {
            match read(record, &self.wiring.mapping.stream_arn) {
                Ok(Reading::Deliver(record)) => self.buffer.push(Held::new(record, read_at, now)),
                Ok(Reading::Equal) => n_equal += 1,
                Err(error) => self.wiring.trouble(&format!("{error}; it is left out")),
            }
        }
        let last = page.records.iter().rev().find_map(|record| record.dynamodb()?.sequence_number());
        if let Some(last) = last {
            self.at = IteratorAt::After(last.to_owned());
        }
        if n_equal == 0 {
            return Ok(());
        }
        self.wiring.observer.dropped_equal(&self.wiring.mapping.name, n_equal);
        match (&self.at, self.buffer.is_empty()) {
            // Nothing will be delivered that could move the checkpoint behind them.
            (IteratorAt::After(last), true) => self.delivery.save(&Position::After(last.clone())).await,
            _ => Ok(()),
        }
    }

    async fn deliver_due(&mut self, flush: bool) -> Result<(), Stopped> {
        while let Some(batch) = self.buffer.take_due(Instant::now(), flush) {
            self.delivery.deliver(batch).await?;
        }
        Ok(())
    }

    /// The wait after an empty read, at most until the batching window ends.
    fn pause(&self) -> Duration {
        let poll = Duration::from_millis(self.wiring.mapping.idle_poll_ms);
        let window = self.buffer.due_at().map(|due| due.saturating_duration_since(Instant::now()));
        window.map_or(poll, |window| window.min(poll))
    }
}
