//! Reads one shard to its end, and delivers its records in lanes.
//!
//! Each shard has its own task. So shards progress independently, a batch never mixes them, and a shard whose lanes are
//! all busy is not read further.
//!
//! # Lanes
//!
//! A lane is one of the shard's concurrent batches; `ParallelizationFactor` is their number. Each lane has its own
//! order, batches, retries and discarded records, like a shard with a single lane. A lane that retries blocks only its
//! own items, until the records of all lanes reach the limit of [`Lanes::room`]. Then reading waits.
//!
//! All records of an item take one lane, so they stay in order. Items that share only the partition key may take
//! different lanes. Source: U2, "in-order processing at the item (partition and sort key) level". AWS does not document
//! which lane an item takes, so nothing may depend on it. Here the lane is a hash of the item's key, the same in every
//! run of one build.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use keys::number::Decimal;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    batch::{Buffer, Held, PAYLOAD_BYTES_MAX},
    checkpoint::Frontier,
    delivery::Delivery,
    event::{Item, Reading, Wire},
    mapping::LAMBDA_POLL_MS,
    poller::{Complaint, Stop, Stopped, Wiring},
    progress::DeliveredBoard,
    source::{IteratorAt, PageSource, RecordPage, ShardRead},
};

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

/// After so many reads without a record the pause doubles, up to [`LAMBDA_POLL_MS`], so that an idle service takes no
/// processor time.
const IDLE_READS: u32 = 50;

pub(crate) struct ShardReader {
    wiring: Arc<Wiring>,
    source: PageSource,
    frontier: Arc<Frontier>,
    lanes: Lanes,
    stop: Stop,
    /// Reads without a record since the last that had one.
    n_idle: u32,
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
        Self { wiring, source, frontier, lanes, stop, n_idle: 0 }
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
            self.n_idle = if is_empty { self.n_idle.saturating_add(1) } else { 0 };
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
        let poll_ms = self.wiring.mapping.idle_poll_ms;
        let idle_ms = poll_ms.saturating_mul(1 << (self.n_idle / IDLE_READS).min(8)).min(poll_ms.max(LAMBDA_POLL_MS));
        let poll = Duration::from_millis(idle_ms);
        let window = self.lanes.due_at().map(|due| due.saturating_duration_since(Instant::now()));
        window.map_or(poll, |window| window.min(poll))
    }
}

// ---- Lanes: their buffered records, and at most one running batch each ----

/// The average number of batches per lane before reading waits: the running batch and the next one.
const BATCHES_HELD_MAX: usize = 2;

pub(crate) struct Lanes {
    all: Vec<ConcurrentLane>,
    under_way: JoinSet<Delivered>,
    frontier: Arc<Frontier>,
    /// The most records in all lanes. Reading stops at this number, or at `bytes_max`.
    records_max: usize,
    bytes_max: usize,
}

struct ConcurrentLane {
    waiting: Buffer,
    /// `None` while a batch is running, because the batch's task owns it.
    delivery: Option<Delivery>,
    /// Records and bytes of the running batch, as they were at its start.
    n_under_way: usize,
    bytes_under_way: usize,
}

/// The end of a lane's batch.
struct Delivered {
    lane: usize,
    delivery: Delivery,
    outcome: Result<(), Stopped>,
}

impl Lanes {
    pub(crate) fn new(wiring: &Arc<Wiring>, shard: &str, frontier: &Arc<Frontier>, stop: &Stop) -> Self {
        let n_lanes = wiring.mapping.parallelization_factor;
        let unavailable = Arc::new(Complaint::default());
        let all = (0..n_lanes).map(|_| {
            let (wiring, frontier, stop) = (Arc::clone(wiring), Arc::clone(frontier), stop.clone());
            let waiting = Buffer::new(&wiring.mapping);
            let delivery = Delivery::new(wiring, shard.to_owned(), frontier, Arc::clone(&unavailable), stop);
            ConcurrentLane { waiting, delivery: Some(delivery), n_under_way: 0, bytes_under_way: 0 }
        });
        Self {
            all: all.collect(),
            under_way: JoinSet::new(),
            frontier: Arc::clone(frontier),
            records_max: BATCHES_HELD_MAX * n_lanes * wiring.mapping.batch_size,
            bytes_max: BATCHES_HELD_MAX * n_lanes * PAYLOAD_BYTES_MAX,
        }
    }

    /// Buffers a record in the lane of its item, after all earlier ones.
    pub(crate) fn push(&mut self, record: &Record, held: Held) {
        let lane = lane_of(record, self.all.len());
        if let Some(lane) = self.all.get_mut(lane) {
            self.frontier.take(&held.record.sequence_number);
            lane.waiting.push(held);
        }
    }

    /// Whether no record is buffered and no batch is running.
    fn are_empty(&self) -> bool {
        self.all.iter().all(|lane| lane.delivery.is_some() && lane.waiting.is_empty())
    }

    /// The number of records that may be read now. It is 0 while all lanes have a running batch, because no lane could
    /// start the new records. So with one lane, a shard is not read while it delivers.
    fn room(&self) -> usize {
        let is_free = self.all.iter().any(|lane| lane.delivery.is_some());
        let n_bytes: usize = self.all.iter().map(|lane| lane.waiting.bytes() + lane.bytes_under_way).sum();
        if !is_free || n_bytes >= self.bytes_max {
            return 0;
        }
        let n_held: usize = self.all.iter().map(|lane| lane.waiting.len() + lane.n_under_way).sum();
        self.records_max.saturating_sub(n_held)
    }

    /// When the first batching window of an idle lane ends; `None` if no idle lane has records.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.all.iter().filter(|lane| lane.delivery.is_some()).filter_map(|lane| lane.waiting.due_at()).min()
    }

    /// Starts the due batches, one per idle lane. With `flush`, all buffered records are due.
    fn begin_due(&mut self, flush: bool) {
        let now = Instant::now();
        for (at, lane) in self.all.iter_mut().enumerate() {
            let Some(mut delivery) = lane.delivery.take() else { continue };
            let Some(batch) = lane.waiting.take_due(now, flush) else {
                lane.delivery = Some(delivery);
                continue;
            };
            lane.n_under_way = batch.len();
            lane.bytes_under_way = batch.iter().map(Held::bytes).sum();
            self.under_way.spawn(async move {
                let outcome = delivery.deliver(batch).await;
                Delivered { lane: at, delivery, outcome }
            });
        }
    }

    /// Does some work while the lanes continue.
    pub(crate) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                Some(delivered) = self.under_way.join_next() => {
                    self.settle(delivered)?;
                    self.begin_due(false);
                }
            }
        }
    }

    /// Waits until there is room.
    async fn until_room(&mut self) -> Result<(), Stopped> {
        while let Some(delivered) = self.under_way.try_join_next() {
            self.settle(delivered)?;
        }
        self.begin_due(false);
        // Without a running batch there is room, because a lane's records beyond one batch are due.
        while self.room() == 0 && !self.under_way.is_empty() {
            let due_at = self.due_at();
            tokio::select! {
                biased;
                Some(delivered) = self.under_way.join_next() => self.settle(delivered)?,
                () = sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => {}
            }
            self.begin_due(false);
        }
        Ok(())
    }

    /// Delivers until all lanes are empty, without waiting for batching windows.
    async fn until_empty(&mut self) -> Result<(), Stopped> {
        self.begin_due(true);
        while let Some(delivered) = self.under_way.join_next().await {
            self.settle(delivered)?;
            self.begin_due(true);
        }
        Ok(())
    }

    /// Waits for the running invocations and starts no others.
    async fn until_stopped(&mut self) {
        while self.under_way.join_next().await.is_some() {}
    }

    /// Ends the open tumbling window if it is over at `now`. A lane with a running batch keeps its window.
    pub(crate) async fn end_window_if_over(&mut self, now: SystemTime) -> Result<(), Stopped> {
        for delivery in self.all.iter_mut().filter_map(|lane| lane.delivery.as_mut()) {
            delivery.end_window_if_over(now).await?;
        }
        Ok(())
    }

    /// Ends the open tumbling window.
    pub(crate) async fn end_window(&mut self) -> Result<(), Stopped> {
        for delivery in self.all.iter_mut().filter_map(|lane| lane.delivery.as_mut()) {
            delivery.end_window().await?;
        }
        Ok(())
    }

    /// Frees the lane of a finished batch. A panic continues in the shard's task.
    fn settle(&mut self, delivered: Result<Delivered, JoinError>) -> Result<(), Stopped> {
        let Delivered { lane, delivery, outcome } = match delivered.map_err(JoinError::try_into_panic) {
            Ok(delivered) => delivered,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // Only the end of the runtime cancels the task.
            Err(Err(_cancelled)) => return Err(Stopped),
        };
        if let Some(lane) = self.all.get_mut(lane) {
            lane.delivery = Some(delivery);
            (lane.n_under_way, lane.bytes_under_way) = (0, 0);
        }
        outcome
    }
}

// ---- The lane of a record: that of its item. Pure ----

/// The lane of a record, below `n_lanes`. Records without a key take the first lane; no stream has such records.
pub(crate) fn lane_of(record: &Record, n_lanes: usize) -> usize {
    let Some(keys) = record.dynamodb().and_then(|change| change.keys()) else { return 0 };
    let n_lanes = u64::try_from(n_lanes).unwrap_or(u64::MAX).max(1);
    usize::try_from(hash(keys) % n_lanes).unwrap_or_default()
}

/// Keys that are equal by value have the same hash: `2.0` and `2` are the same number.
fn hash(keys: &Item) -> u64 {
    let mut parts: Vec<_> = keys.iter().collect();
    parts.sort_by_key(|(name, _)| *name);
    let mut hasher = DefaultHasher::new();
    for (name, value) in parts {
        name.hash(&mut hasher);
        match value {
            AttributeValue::N(text) if let Some(number) = Decimal::parse(text) => number.hash(&mut hasher),
            // Writing a value as JSON cannot fail. If it did, such keys would share a lane.
            value => serde_json::to_string(&Wire(value)).unwrap_or_default().hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, StreamRecord};

    use super::lane_of;

    fn record(keys: &[(&str, AttributeValue)]) -> Record {
        let change =
            keys.iter().fold(StreamRecord::builder(), |change, (name, value)| change.keys(*name, value.clone()));
        Record::builder().dynamodb(change.build()).build()
    }

    fn text(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn number(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn an_item_has_one_lane_however_its_key_is_written() {
        for n in 0..50 {
            let sort = text(&format!("POST#{n}"));
            let one = record(&[("PK", text("USER#ann")), ("SK", sort.clone())]);
            let other = record(&[("SK", sort), ("PK", text("USER#ann"))]);
            assert_eq!(lane_of(&one, 10), lane_of(&other, 10));
            let [whole, point] = [format!("{n}"), format!("{n}.0")].map(|n| record(&[("n", number(&n))]));
            assert_eq!(lane_of(&whole, 10), lane_of(&point, 10));
        }
    }

    /// Source: U2.
    #[test]
    fn the_items_of_a_partition_spread_over_all_lanes() {
        let keys = (0..200).map(|n| record(&[("PK", text("POST#p")), ("SK", text(&format!("LIKE#{n}")))]));
        let lanes: BTreeSet<usize> = keys.map(|record| lane_of(&record, 10)).collect();
        assert_eq!(lanes, (0..10).collect());
    }

    #[test]
    fn one_lane_takes_everything_and_a_record_without_a_key_the_first() {
        assert_eq!(lane_of(&record(&[("PK", text("USER#ann"))]), 1), 0);
        assert_eq!(lane_of(&Record::builder().build(), 10), 0);
    }
}
