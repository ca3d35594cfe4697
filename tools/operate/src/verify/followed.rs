//! Follows the table's stream for a verification, and knows how far the functions have read it.
//!
//! Under `ripple dev`, the event source mappings of the functions store their positions in the ledger's table, and the
//! stream is read from there. On the real AWS no position can be read, so the stream is followed from its newest
//! record. There counts are [proven by the ledger](crate::verify), so the stream is also read once from its oldest
//! record. For everything else, the functions are assumed to have handled all changes older than twice their iterator
//! age.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use engine::{
    clock::{Clock as _, SystemClock},
    record::{Event, EventError},
};
use futures::future::{BoxFuture, select_all};
use store::Store;
use stream::{
    checkpoint::{CheckpointError, Checkpoints, MemoryCheckpoints, Position},
    event::order,
    failure::FolderDestination,
    filter::Filters,
    function::{FunctionError, LambdaFunction},
    mapping::{BATCH_SIZE_MAX, Mapping, StartingPosition, TUMBLING_WINDOW_SECONDS_MAX},
    poller::{EventSourceMapping, StreamError},
    progress::Observer,
    source::Stream,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinError, JoinHandle},
};

use crate::{
    OperateError,
    checkpoints::LedgerCheckpoints,
    tables::{Deployment, TableStream},
    verify::{Following, Retained, ShardRecords, spool::Spool},
};

/// Wait for the functions beyond twice the iterator age, in seconds.
pub(super) const AGE_MARGIN_S: u64 = 60;

/// Name of the mapping. Its positions are in the verification's own file.
const NAME: &str = "verify";

/// The response for a finished batch. The mapping has tumbling windows, since only their events name the shard, so
/// Lambda expects a state.
const DONE: &str = r#"{"state":{}}"#;

/// Wait after an empty read of the stream, in milliseconds: for an emulator, and for AWS, where Lambda reads four times
/// a second.
const IDLE_POLL_MS: u64 = 20;
const AWS_POLL_MS: u64 = 500;

/// Wait beyond twice the iterator age, in milliseconds.
const MARGIN_MS: u64 = 30_000;

/// How long the stream on AWS may return empty pages although it has records, in milliseconds.
const EMPTY_PAGES_MS: u64 = 10_000;

/// How the functions' progress is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressSource {
    /// The positions of their mappings, as `ripple dev` stores them.
    Positions,
    /// Their iterator age on AWS, in milliseconds, as the operator gave it; `None` if it was not given.
    Age(Option<u64>),
}

/// A stream that is followed as long as this lives.
struct Followed {
    shared: Arc<FollowedState>,
    handled: ProgressSource,
    /// The stream, to read it again.
    stream: Stream,
    mapping: Mapping,
    _stop: watch::Sender<bool>,
    watching: AbortHandle,
    following: AbortHandle,
    /// Ends when the stream cannot be followed; `None` once a caller waits for it.
    task: Option<JoinHandle<Result<(), StreamError>>>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.watching.abort();
        self.following.abort();
    }
}

#[derive(Default)]
struct FollowedState {
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// Records that arrived and were not returned yet.
    records: Vec<ShardRecords>,
    /// Confirmations for those batches, and for those that were returned last.
    came: Vec<oneshot::Sender<()>>,
    given: Vec<oneshot::Sender<()>>,
    /// Position in each shard.
    seen: BTreeMap<String, Position>,
    /// All records up to this time have arrived.
    delivered_ms: u64,
    /// Positions that the functions must pass before `handled_ms` can rise.
    ahead: Option<Ahead>,
    /// All changes up to this time are handled.
    handled_ms: u64,
}

/// Position in each shard when all records up to a time had arrived. It stays until the functions have passed it: they
/// are always a little behind a stream that never runs empty.
#[derive(Clone)]
struct Ahead {
    until_ms: u64,
    seen: BTreeMap<String, Position>,
}

impl FollowedState {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    /// Follows a stream from the position in the file, or from the functions' position.
    async fn start<S: Store + 'static>(
        table_stream: &TableStream,
        handled: ProgressSource,
        spool: &Spool,
        ledger: LedgerCheckpoints<S>,
    ) -> Result<Self, OperateError> {
        let shared = Arc::new(FollowedState::default());
        let positions = handled == ProgressSource::Positions;
        let readers = if positions { present(&ledger).await? } else { Vec::new() };
        let ledger = Arc::new(ledger);
        let checkpoints = Arc::new(Positions {
            shared: Arc::clone(&shared),
            spool: spool.clone(),
            ledger: Arc::clone(&ledger),
            readers: readers.clone(),
        });
        let starting_position = if positions { StartingPosition::TrimHorizon } else { StartingPosition::Latest };
        let mapping = Mapping { starting_position, ..mapping(&table_stream.arn, !positions) };
        let (stop, stopped) = watch::channel(false);
        let source = EventSourceMapping::new(
            mapping.clone(),
            &table_stream.stream,
            Arc::new(Taking(Arc::clone(&shared))),
            checkpoints,
            Arc::new(FolderDestination::new(std::env::temp_dir())),
            Arc::new(Watching(Arc::clone(&shared))),
        );
        let task = tokio::spawn(source.run(stopped));
        let watching = tokio::spawn(watch_positions(Arc::clone(&shared), ledger, readers)).abort_handle();
        let (stream, following) = (table_stream.stream.clone(), task.abort_handle());
        Ok(Self { shared, handled, stream, mapping, _stop: stop, watching, following, task: Some(task) })
    }

    fn records(&self) -> Vec<ShardRecords> {
        let mut state = self.shared.state();
        for taken in std::mem::take(&mut state.given) {
            // The batch may have been dropped.
            let _nobody_waits = taken.send(()).is_err();
        }
        state.given = std::mem::take(&mut state.came);
        std::mem::take(&mut state.records)
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        let margin_ms = if self.handled == ProgressSource::Positions { 0 } else { EMPTY_PAGES_MS };
        self.shared.state().delivered_ms > moment_ms.saturating_add(margin_ms)
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        match self.handled {
            ProgressSource::Positions => Some(self.shared.state().handled_ms > moment_ms),
            ProgressSource::Age(age_ms) => Some(is_past(age_ms?, moment_ms, SystemClock.now_ms())),
        }
    }

    fn is_typed(&self) -> bool {
        self.handled != ProgressSource::Positions
    }
}

/// A mapping that delivers every record of a stream once, each batch with the name of its shard.
fn mapping(stream_arn: &str, is_aws: bool) -> Mapping {
    Mapping {
        name: NAME.to_owned(),
        stream_arn: stream_arn.to_owned(),
        batch_size: BATCH_SIZE_MAX,
        batching_window_ms: 0,
        tumbling_window_seconds: TUMBLING_WINDOW_SECONDS_MAX,
        parallelization_factor: 1,
        retry_attempts_max: None,
        record_age_ms_max: None,
        report_batch_item_failures: false,
        filters: Filters::default(),
        on_failure: None,
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: if is_aws { AWS_POLL_MS } else { IDLE_POLL_MS },
    }
}

/// True if enough time has passed since a moment that functions of this iterator age have passed it.
fn is_past(age_ms: u64, moment_ms: u64, now_ms: u64) -> bool {
    let wait_ms = age_ms.saturating_mul(2).saturating_add(MARGIN_MS);
    now_ms > moment_ms.saturating_add(wait_ms)
}

/// Receives the records of the stream.
struct Taking(Arc<FollowedState>);

impl LambdaFunction for Taking {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let unhandled = |message: String| FunctionError::Unhandled { message };
            let records = shard_records(&event).map_err(|error| unhandled(error.to_string()))?;
            let (taken, is_taken) = oneshot::channel();
            {
                let mut state = self.0.state();
                state.records.push(records);
                state.came.push(taken);
            }
            // Its position is stored after the content of its records is.
            is_taken.await.map_err(|_| unhandled("the verification has ended".to_owned()))?;
            Ok(DONE.to_owned())
        })
    }
}

/// The records of an event with a tumbling window, which names its shard.
fn shard_records(event: &str) -> Result<ShardRecords, EventError> {
    let Event { records, lane, .. } = Event::parse(event)?;
    let records = records.iter().map(|record| record.get().to_owned()).collect();
    Ok(ShardRecords { lane: Arc::new(lane), records })
}

/// The millisecond before a moment, since the epoch.
fn ms_before(moment: Instant) -> u64 {
    let ago_ms = u64::try_from(moment.elapsed().as_millis()).unwrap_or(u64::MAX);
    SystemClock.now_ms().saturating_sub(ago_ms.saturating_add(1))
}

/// Notes the time up to which all records have arrived.
struct Watching(Arc<FollowedState>);

impl Observer for Watching {
    fn delivered(&self, _mapping: &str, until: Instant) {
        let until_ms = ms_before(until);
        let mut state = self.0.state();
        state.delivered_ms = state.delivered_ms.max(until_ms);
        if state.ahead.is_none() {
            state.ahead = Some(Ahead { until_ms, seen: state.seen.clone() });
        }
    }

    fn trouble(&self, _mapping: &str, message: &str) {
        tracing::warn!(message, "the table's stream cannot be followed just now");
    }
}

// ---- positions ----

/// The sets of functions that together handle all derivations.
const READERS: [&[&str]; 2] = [&["combined"], &["aggregate", "propagate"]];

/// Poll interval for the functions' positions.
const POSITIONS_POLL: Duration = Duration::from_millis(50);

/// Positions: loaded from the file, or else from the functions; stored in the file.
struct Positions<S> {
    shared: Arc<FollowedState>,
    spool: Spool,
    ledger: Arc<LedgerCheckpoints<S>>,
    readers: Vec<&'static [&'static str]>,
}

impl<S: Store> Checkpoints for Positions<S> {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        Box::pin(async move {
            let mut position = self.spool.load(mapping, shard).await?;
            if position.is_none() {
                position = first(&self.ledger, &self.readers, shard).await?;
            }
            if let Some(position) = &position {
                self.shared.state().seen.insert(shard.to_owned(), position.clone());
            }
            Ok(position)
        })
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        self.shared.state().seen.insert(shard.to_owned(), position.clone());
        self.spool.save(mapping, shard, position)
    }
}

/// The sets of functions that have read the stream.
async fn present<S: Store>(ledger: &LedgerCheckpoints<S>) -> Result<Vec<&'static [&'static str]>, OperateError> {
    let mut present = Vec::new();
    for readers in READERS {
        for name in readers {
            if ledger.has_any(name).await? {
                present.push(readers);
                break;
            }
        }
    }
    Ok(present)
}

/// The least position of these functions in a shard; `None` if one of them has none.
async fn first<S: Store>(
    ledger: &LedgerCheckpoints<S>,
    readers: &[&'static [&'static str]],
    shard: &str,
) -> Result<Option<Position>, CheckpointError> {
    let mut least: Option<Position> = None;
    for name in readers.concat() {
        let Some(position) = ledger.load(name, shard).await? else { return Ok(None) };
        least = match least {
            Some(least) if covers(&position, &least) => Some(least),
            _ => Some(position),
        };
    }
    Ok(least)
}

/// True if a position is at or after another.
fn covers(position: &Position, other: &Position) -> bool {
    match (position, other) {
        (Position::Ended, _) => true,
        (Position::After(_), Position::Ended) => false,
        (Position::After(position), Position::After(other)) => order(position) >= order(other),
    }
}

/// Notes when the functions have reached the positions that this stream was seen at.
async fn watch_positions<S: Store>(
    shared: Arc<FollowedState>,
    ledger: Arc<LedgerCheckpoints<S>>,
    readers: Vec<&'static [&'static str]>,
) {
    loop {
        let ahead = shared.state().ahead.clone();
        if let Some(Ahead { until_ms, seen }) = ahead {
            // If the stream never had a record, nothing has to be handled.
            let mut is_past = readers.is_empty() && seen.is_empty();
            for names in &readers {
                is_past = is_past || are_past(&ledger, names, &seen).await.unwrap_or(false);
            }
            if is_past {
                let mut state = shared.state();
                state.handled_ms = state.handled_ms.max(until_ms);
                state.ahead = None;
            }
        }
        tokio::time::sleep(POSITIONS_POLL).await;
    }
}

/// True if all these functions have passed these positions.
async fn are_past<S: Store>(
    ledger: &LedgerCheckpoints<S>,
    names: &[&str],
    seen: &BTreeMap<String, Position>,
) -> Result<bool, CheckpointError> {
    for (shard, seen) in seen {
        for name in names {
            let position = ledger.load(name, shard).await?;
            if !position.is_some_and(|position| covers(&position, seen)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

// ---- The streams of several tables, as one ----

/// The streams of several tables.
pub(super) struct FollowedStreams(Vec<Followed>);

impl FollowedStreams {
    /// Follows all streams of the tables.
    pub(super) async fn start<S: Store + 'static>(
        opened: &Deployment<S>,
        handled: ProgressSource,
        spool: &Spool,
    ) -> Result<Self, OperateError> {
        let mut all = Vec::new();
        for stream in &opened.streams {
            let ledger = LedgerCheckpoints::new(Arc::clone(&opened.store), opened.schema.layout.clone(), &stream.arn);
            all.push(Followed::start(stream, handled, spool, ledger).await?);
        }
        Ok(Self(all))
    }

    /// Ends when one of the streams cannot be followed.
    pub(super) fn ended(&mut self) -> impl Future<Output = Result<Result<(), StreamError>, JoinError>> + use<> {
        let all: Vec<_> = self.0.iter_mut().filter_map(|followed| followed.task.take()).collect();
        async {
            if all.is_empty() {
                return std::future::pending().await;
            }
            select_all(all).await.0
        }
    }
}

/// Records before a moment are returned or handled if that holds for every stream.
impl Following for FollowedStreams {
    fn records(&self) -> Vec<ShardRecords> {
        self.0.iter().flat_map(Followed::records).collect()
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.0.iter().all(|followed| followed.has_given(moment_ms))
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        self.0.iter().try_fold(true, |all, followed| Some(followed.is_handled(moment_ms)? && all))
    }

    fn is_typed(&self) -> bool {
        self.0.iter().any(Followed::is_typed)
    }

    fn retained(&self, until_ms: u64) -> Box<dyn Retained + '_> {
        let read = |followed: &Followed| {
            let until_ms = until_ms.saturating_add(EMPTY_PAGES_MS);
            RetainedRecords::read(followed.mapping.clone(), &followed.stream, until_ms)
        };
        Box::new(RetainedStreams(self.0.iter().map(read).collect()))
    }
}

// ---- The records that a stream still has, read from its oldest record, besides following it ----

/// Time without a response after which a stream counts as unreadable.
const SILENCE: Duration = Duration::from_mins(5);

/// The records that a stream still has.
struct RetainedRecords {
    records: mpsc::Receiver<ShardRecords>,
    /// All records up to this time were returned, in milliseconds since the epoch.
    delivered_ms: watch::Receiver<u64>,
    until_ms: u64,
    reading: JoinHandle<Result<(), StreamError>>,
    _stop: watch::Sender<bool>,
}

impl Drop for RetainedRecords {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl RetainedRecords {
    /// Begins to read with this mapping, up to all changes before a moment.
    fn read(mapping: Mapping, stream: &Stream, until_ms: u64) -> Self {
        let mapping = Mapping { starting_position: StartingPosition::TrimHorizon, ..mapping };
        // The function waits until the batch is taken, so memory has one batch of each shard.
        let (give, records) = mpsc::channel(1);
        let (report, delivered_ms) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let mapping = EventSourceMapping::new(
            mapping,
            stream,
            Arc::new(Giving(give)),
            Arc::new(MemoryCheckpoints::default()),
            Arc::new(FolderDestination::new(std::env::temp_dir())),
            Arc::new(Reporting(report)),
        );
        let reading = tokio::spawn(mapping.run(stopped));
        Self { records, delivered_ms, until_ms, reading, _stop: stop }
    }

    async fn next(&mut self) -> io::Result<Option<ShardRecords>> {
        loop {
            if *self.delivered_ms.borrow_and_update() > self.until_ms {
                // Records returned before that are in the channel already.
                return Ok(self.records.try_recv().ok());
            }
            tokio::select! {
                records = self.records.recv() => return Ok(records),
                _ = self.delivered_ms.changed() => {}
                ended = &mut self.reading => {
                    let why = match ended {
                        Ok(Err(error)) => io::Error::other(error),
                        Err(error) => io::Error::other(error),
                        Ok(Ok(())) => io::Error::other("it is read no more"),
                    };
                    return Err(why);
                }
                () = tokio::time::sleep(SILENCE) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the stream gives nothing"));
                }
            }
        }
    }
}

/// The records that the streams of several tables still have, one stream after another.
pub(crate) struct RetainedStreams(Vec<RetainedRecords>);

impl<S> Deployment<S> {
    /// Begins to read all records that the streams still have.
    pub(crate) fn retained(&self) -> RetainedStreams {
        let margin_ms = if self.is_aws { EMPTY_PAGES_MS } else { 0 };
        let until_ms = SystemClock.now_ms().saturating_add(margin_ms);
        let read = |of: &TableStream| RetainedRecords::read(mapping(&of.arn, self.is_aws), &of.stream, until_ms);
        RetainedStreams(self.streams.iter().map(read).collect())
    }
}

impl Retained for RetainedStreams {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(async move {
            while let Some(stream) = self.0.last_mut() {
                if let Some(records) = stream.next().await? {
                    return Ok(Some(records));
                }
                self.0.pop();
            }
            Ok(None)
        })
    }
}

/// Passes the records to their reader.
struct Giving(mpsc::Sender<ShardRecords>);

impl LambdaFunction for Giving {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let unhandled = |message: String| FunctionError::Unhandled { message };
            let records = shard_records(&event).map_err(|error| unhandled(error.to_string()))?;
            self.0.send(records).await.map_err(|_| unhandled("nobody reads any more".to_owned()))?;
            Ok(DONE.to_owned())
        })
    }
}

/// Reports the time up to which all records were returned.
struct Reporting(watch::Sender<u64>);

impl Observer for Reporting {
    fn delivered(&self, _mapping: &str, until: Instant) {
        let until_ms = ms_before(until);
        self.0.send_if_modified(|stored| {
            let is_later = until_ms > *stored;
            *stored = (*stored).max(until_ms);
            is_later
        });
    }

    fn trouble(&self, _mapping: &str, message: &str) {
        tracing::warn!(message, "the table's stream cannot be read again just now");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_covers_those_before_it() {
        let after = |number: &str| Position::After(number.to_owned());
        assert!(covers(&after("1683700000000000001135967"), &after("820400000000000001192334")));
        assert!(!covers(&after("9"), &after("10")) && covers(&after("010"), &after("10")));
        assert!(covers(&Position::Ended, &after("10")) && !covers(&after("10"), &Position::Ended));
    }

    #[test]
    fn functions_are_past_what_is_older_than_twice_their_age_and_half_a_minute() {
        assert!(!is_past(60_000, 1_000, 151_000) && is_past(60_000, 1_000, 151_001));
        assert!(!is_past(u64::MAX, 0, 1_000_000), "it is never so long ago");
    }
}
