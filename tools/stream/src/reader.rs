//! Reads one shard to its end and passes its records to the lanes for delivery.
//!
//! Each shard has its own task. So shards progress independently, a batch never mixes them, and a shard whose lanes are
//! all busy is not read further.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::batch::Held;
use crate::delivered::DeliveredBoard;
use crate::event::Reading;
use crate::frontier::Frontier;
use crate::lanes::Lanes;
use crate::poller::{Stop, Stopped};
use crate::source::{IteratorAt, RecordPage};
use crate::source::{PageSource, ShardRead};
use crate::wiring::Wiring;

/// Why a reader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The shard is closed and all of its records are done. Its checkpoint says so.
    Drained,
    /// The stream does not know the shard.
    Lost,
    /// A stop was requested.
    Stopped,
}

/// The reader of one shard.
pub(crate) struct ShardReader {
    wiring: Arc<Wiring>,
    source: PageSource,
    frontier: Arc<Frontier>,
    lanes: Lanes,
    stop: Stop,
}

impl ShardReader {
    pub(crate) fn new(
        wiring: Arc<Wiring>,
        delivered: Arc<DeliveredBoard>,
        shard: String,
        at: IteratorAt,
        stop: Stop,
    ) -> Self {
        let frontier = Arc::new(Frontier::new(Arc::clone(&wiring), delivered, shard.clone()));
        let lanes = Lanes::new(&wiring, &shard, &frontier, &stop);
        let source = PageSource::new(Arc::clone(&wiring), shard, at, stop.clone());
        Self { wiring, source, frontier, lanes, stop }
    }

    /// Reads until the shard ends, is lost, or a stop is requested. Then finishes the running invocations.
    pub(crate) async fn run(mut self) -> End {
        let end = self.drain().await;
        self.lanes.until_stopped().await;
        end.unwrap_or(End::Stopped)
    }

    async fn drain(&mut self) -> Result<End, Stopped> {
        loop {
            let n_records_max = self.lanes.room();
            let Some(ShardRead { started_at, page, is_full }) =
                self.lanes.beside(self.source.read(n_records_max)).await??
            else {
                self.lanes.until_empty().await?;
                self.lanes.end_window().await?;
                return Ok(End::Lost);
            };
            let (is_empty, is_closed) = (page.records.is_empty(), page.next.is_none());
            self.take(&page);
            // The children of a closed shard may have records that are older than this read.
            let until = if is_closed { None } else { self.holds_all_until(&page, is_full) };
            self.frontier.read(until, &mut self.stop).await?;
            if is_closed {
                self.lanes.until_empty().await?;
                self.lanes.end_window().await?;
                self.frontier.ended(&mut self.stop).await?;
                return Ok(End::Drained);
            }
            self.lanes.until_room().await?;
            if is_empty && self.lanes.are_empty() {
                self.lanes.end_window_if_over(started_at).await?;
            }
            // A page that is not full had all existing records. Without a pause, the reader would read each record as
            // it comes and keep the database busy.
            if !is_full {
                let pause = self.pause();
                self.lanes.beside(self.stop.sleep(pause)).await??;
            }
        }
    }

    /// Passes a page's records to the lanes, and passes over those that the function does not get.
    fn take(&mut self, page: &RecordPage) {
        let (read_at, now) = (Instant::now(), (self.wiring.clock)());
        let (mut n_equal, mut filtered_out) = (0, Vec::new());
        for (record, reading) in page.readings(&self.wiring.mapping.stream_arn) {
            match reading {
                Ok(Reading::Deliver(delivered)) if self.wiring.mapping.filters.matches(&delivered.json) => {
                    self.lanes.push(record, Held::new(delivered.clone(), read_at, now));
                    continue;
                }
                Ok(Reading::Deliver(passed_over)) => filtered_out.push(passed_over.json.as_str()),
                Ok(Reading::Equal) => n_equal += 1,
                Err(error) => self.wiring.trouble(&format!("{error}; it is left out")),
            }
            if let Some(sequence_number) = record.dynamodb().and_then(|change| change.sequence_number()) {
                self.frontier.pass(sequence_number);
            }
        }
        let (observer, name) = (&self.wiring.observer, &self.wiring.mapping.name);
        let n_polled = page.records.len() - n_equal;
        if n_polled > 0 {
            observer.polled(name, n_polled);
        }
        if !filtered_out.is_empty() {
            observer.filtered_out(name, &filtered_out);
        }
        if n_equal > 0 {
            observer.dropped_equal(name, n_equal);
        }
    }

    /// A time for which no later page has records of the shard that were created before it; `None` if it is unknown.
    fn holds_all_until(&self, page: &RecordPage, is_full: bool) -> Option<Instant> {
        if !is_full {
            return Some(page.started);
        }
        let created = page.readings(&self.wiring.mapping.stream_arn).filter_map(|(_, reading)| match reading {
            Ok(Reading::Deliver(record)) => record.created,
            Ok(Reading::Equal) | Err(_) => None,
        });
        // A creation time in the future proves nothing.
        let ago = (self.wiring.clock)().duration_since(created.last()?).ok()?;
        Some(Instant::now().checked_sub(ago)?.min(page.started))
    }

    /// The wait after a read that returned all existing records, at most until a batching window ends.
    fn pause(&self) -> Duration {
        let poll = Duration::from_millis(self.wiring.mapping.idle_poll_ms);
        let window = self.lanes.due_at().map(|due| due.saturating_duration_since(Instant::now()));
        window.map_or(poll, |window| window.min(poll))
    }
}
