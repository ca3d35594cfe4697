//! The table's stream as a verification follows it, and how far the functions are with it.
//!
//! Where `ripple dev` runs the functions, their event source mappings keep their positions in the ledger's table, and
//! the stream is read from there. On the real AWS nobody keeps a position that can be read: the stream is followed from
//! its newest record. There counts are [proven by the ledger](crate::verify), for which the stream is read once more
//! from its oldest record on; for all else the functions are taken to have handled what is older than their iterator
//! age, twice over.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use engine::{
    clock::{Clock as _, SystemClock},
    record::{EventError, event::Event},
};
use futures::future::{BoxFuture, select_all};
use store::Store;
use stream::{
    batch::order,
    checkpoint::{CheckpointError, Checkpoints, MemoryCheckpoints, Position},
    filter::Filters,
    function::{FunctionError, LambdaFunction},
    mapping::{BATCH_SIZE_MAX, Mapping, StartingPosition, TUMBLING_WINDOW_SECONDS_MAX},
    poller::{EventSourceMapping, StreamError},
    progress::Observer,
    response::FolderDestination,
    shared::Stream,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinError, JoinHandle},
};

use crate::{
    checkpoints::LedgerCheckpoints,
    failure::OperateError,
    tables::{Deployment, TableStream},
    verify::{Following, Retained, ShardRecords, spool::Spool},
};

/// How much longer than twice the iterator age is waited for the functions, in seconds.
pub(super) const AGE_MARGIN_S: u64 = 60;

/// Name of the mapping. Its positions are in the verification's own file.
const NAME: &str = "verify";

/// The answer that a batch is done. The mapping has tumbling windows, since only their events name the shard, so a
/// state is wanted.
const DONE: &str = r#"{"state":{}}"#;

/// Wait after an empty read of the stream, in milliseconds: of an emulator, and of the real one, which Lambda reads
/// four times a second.
const IDLE_POLL_MS: u64 = 20;
const AWS_POLL_MS: u64 = 500;

/// How much longer than twice the iterator age is waited, in milliseconds.
const MARGIN_MS: u64 = 30_000;

/// How long the real stream may give nothing though there is something, in milliseconds.
const EMPTY_PAGES_MS: u64 = 10_000;

/// How the functions' progress is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressSource {
    /// The positions of their mappings, as `ripple dev` keeps them.
    Positions,
    /// Their iterator age, in milliseconds, as somebody read it on the real AWS; nobody where it is not given.
    Age(Option<u64>),
}

/// What the stream is followed by, as long as this lives.
pub(super) struct Followed {
    shared: Arc<FollowedState>,
    handled: ProgressSource,
    /// To read it once more.
    stream: Stream,
    mapping: Mapping,
    _stop: watch::Sender<bool>,
    watching: AbortHandle,
    following: AbortHandle,
    /// Ends when the stream cannot be followed; until somebody waits for it.
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
    /// Records that came and were not given.
    records: Vec<ShardRecords>,
    /// Answers for those batches, and for those that were given last.
    came: Vec<oneshot::Sender<()>>,
    given: Vec<oneshot::Sender<()>>,
    /// How far each shard is.
    seen: BTreeMap<String, Position>,
    /// Up to when all records came.
    delivered_ms: u64,
    /// What the functions must pass next, so that more is handled.
    ahead: Option<Ahead>,
    /// Up to when all is handled.
    handled_ms: u64,
}

/// How far each shard was when all records had come that were made before a time. It stays until the functions are past
/// it: they are always a little behind a stream that is never empty.
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
    /// Follows a stream from where the file is with it, or from where the functions are.
    pub(super) async fn start<S: Store + 'static>(
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
        let again = mapping.clone();
        let mapping = EventSourceMapping::new(
            mapping,
            &table_stream.stream,
            Arc::new(Taking(Arc::clone(&shared))),
            checkpoints,
            Arc::new(FolderDestination::new(std::env::temp_dir())),
            Arc::new(Watching(Arc::clone(&shared))),
        );
        let following = tokio::spawn(mapping.run(stopped));
        let watching = tokio::spawn(watch_positions(Arc::clone(&shared), ledger, readers)).abort_handle();
        let (stream, following_task) = (table_stream.stream.clone(), following.abort_handle());
        let followed = Self {
            shared,
            handled,
            stream,
            mapping: again,
            _stop: stop,
            watching,
            following: following_task,
            task: Some(following),
        };
        Ok(followed)
    }
}

/// A mapping that gives every record of a stream once, each batch with the name of its shard.
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

impl Followed {
    fn records(&self) -> Vec<ShardRecords> {
        let mut state = self.shared.state();
        for taken in std::mem::take(&mut state.given) {
            // The batch may have been given up.
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

/// Is it so long after a moment that functions of this iterator age are past it?
fn is_past(age_ms: u64, moment_ms: u64, now_ms: u64) -> bool {
    let wait_ms = age_ms.saturating_mul(2).saturating_add(MARGIN_MS);
    now_ms > moment_ms.saturating_add(wait_ms)
}

/// Takes the records of the stream.
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
            // Its position is kept when what it says is.
            is_taken.await.map_err(|_| unhandled("the verification has ended".to_owned()))?;
            Ok(DONE.to_owned())
        })
    }
}

/// The records of an event of a tumbling window, which names its shard.
fn shard_records(event: &str) -> Result<ShardRecords, EventError> {
    let Event { records, lane, .. } = Event::parse(event)?;
    let records = records.iter().map(|record| record.get().to_owned()).collect();
    Ok(ShardRecords { lane: Arc::new(lane), records })
}

/// Notes up to when all records came.
struct Watching(Arc<FollowedState>);

impl Observer for Watching {
    fn delivered(&self, _mapping: &str, until: Instant) {
        let ago_ms = u64::try_from(until.elapsed().as_millis()).unwrap_or(u64::MAX);
        let until_ms = SystemClock.now_ms().saturating_sub(ago_ms.saturating_add(1));
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

/// The functions that handle all derivations together: one of these does.
const READERS: [&[&str]; 2] = [&["combined"], &["aggregate", "propagate"]];

/// How often it is looked how far the functions are.
const POSITIONS_POLL: Duration = Duration::from_millis(50);

/// Positions: of the file, else of the functions; kept in the file.
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

/// The readers that have been at the stream.
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

/// The least of the positions of these functions in a shard; none where one of them has none.
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

/// Is a position as far as another, or farther?
fn covers(position: &Position, other: &Position) -> bool {
    match (position, other) {
        (Position::Ended, _) => true,
        (Position::After(_), Position::Ended) => false,
        (Position::After(position), Position::After(other)) => order(position) >= order(other),
    }
}

/// Sees when the functions have come as far as the stream was seen.
async fn watch_positions<S: Store>(
    shared: Arc<FollowedState>,
    ledger: Arc<LedgerCheckpoints<S>>,
    readers: Vec<&'static [&'static str]>,
) {
    loop {
        let ahead = shared.state().ahead.clone();
        if let Some(Ahead { until_ms, seen }) = ahead {
            // Where nothing ever was in the stream, nothing is to be handled.
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

/// Are all these functions past these positions?
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
pub(in crate::verify) struct FollowedStreams(Vec<Followed>);

impl FollowedStreams {
    /// Follows all streams of the tables.
    pub(in crate::verify) async fn start<S: Store + 'static>(
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
    pub(in crate::verify) fn ended(
        &mut self,
    ) -> impl Future<Output = Result<Result<(), StreamError>, JoinError>> + use<> {
        let all: Vec<_> = self.0.iter_mut().filter_map(|followed| followed.task.take()).collect();
        async {
            if all.is_empty() {
                return std::future::pending().await;
            }
            select_all(all).await.0
        }
    }
}

/// What all of them have given or handled, they have together.
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

// ---- What a stream still holds, read once more from its oldest record on, beside what follows it ----

/// How long a stream may say nothing before it counts as one that cannot be read.
const SILENCE: Duration = Duration::from_mins(5);

/// The records that a stream still holds.
pub(crate) struct RetainedRecords {
    records: mpsc::Receiver<ShardRecords>,
    /// Up to when all was given, in milliseconds since the epoch.
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
    /// Begins to read with a mapping like this, up to all that was made before a moment.
    pub(super) fn read(mapping: Mapping, stream: &Stream, until_ms: u64) -> Self {
        let mapping = Mapping { starting_position: StartingPosition::TrimHorizon, ..mapping };
        // Held back until it is taken, so memory holds one batch of each shard.
        let (give, records) = mpsc::channel(1);
        let (report, delivered_ms) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let mapping = EventSourceMapping::new(
            mapping,
            stream,
            Arc::new(Giving(give)),
            Arc::new(MemoryCheckpoints::new()),
            Arc::new(FolderDestination::new(std::env::temp_dir())),
            Arc::new(Reporting(report)),
        );
        let reading = tokio::spawn(mapping.run(stopped));
        Self { records, delivered_ms, until_ms, reading, _stop: stop }
    }
}

impl RetainedRecords {
    async fn next(&mut self) -> io::Result<Option<ShardRecords>> {
        loop {
            if *self.delivered_ms.borrow_and_update() > self.until_ms {
                // What was given before that is there already.
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

/// The records that the streams of several tables still hold, those of one behind those of another.
pub(crate) struct RetainedStreams(pub(super) Vec<RetainedRecords>);

impl<S> Deployment<S> {
    /// Begins to read all that the streams still hold.
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

/// Gives the records to whoever reads them.
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

/// Reports up to when all was given.
struct Reporting(watch::Sender<u64>);

impl Observer for Reporting {
    fn delivered(&self, _mapping: &str, until: Instant) {
        let ago_ms = u64::try_from(until.elapsed().as_millis()).unwrap_or(u64::MAX);
        let until_ms = SystemClock.now_ms().saturating_sub(ago_ms.saturating_add(1));
        self.0.send_if_modified(|held| {
            let is_later = until_ms > *held;
            *held = (*held).max(until_ms);
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
