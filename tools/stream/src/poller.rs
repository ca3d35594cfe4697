//! The event source mapping: lists the shards, and runs a reader for each shard that may be read.
//!
//! # Example
//!
//! A parent `a` is closed and has the children `b` and `c`. The first listing starts a reader of `a` only. When all of
//! `a` is read and delivered, its checkpoint says so. The shards are listed again at once, and the readers of `b` and
//! `c` start in parallel.
//!
//! # Parents before children
//!
//! A shard waits until its parent is drained or no longer listed. A listing does not show whether a shard is closed;
//! only reading the shard to its end does (see [`ListedShard`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use keys::backoff::Backoff;
use thiserror::Error;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    checkpoint::{CheckpointError, Checkpoints, Position},
    failure::Destination,
    filter::FILTERS_DEFAULT_MAX,
    function::LambdaFunction,
    mapping::{Mapping, MappingError, StartingPosition},
    progress::{DeliveredBoard, Observer},
    shard::{End, ShardReader},
    source::{ApiError, IteratorAt, ListedShard, Stream, StreamApi},
};

/// The time between two listings, in seconds. The API allows ten calls a second.
const LISTING_SECONDS: u64 = 2;

/// The most pages of one listing, so that pages without end cannot block the mapping.
const LISTING_PAGES_MAX: usize = 1_000;

/// Why a mapping ended without a stop request.
#[derive(Debug, Error)]
pub enum StreamError {
    /// The stream does not exist. A recreated table, or a table whose stream was enabled again, has a new stream ARN.
    #[error("there is no stream {stream_arn}: does the table exist with its stream enabled, at this endpoint?")]
    NotFound {
        /// The requested ARN.
        stream_arn: String,
    },
    /// The first listing of the stream was refused.
    #[error("the stream {stream_arn} cannot be read: {message}")]
    Refused {
        /// The requested ARN.
        stream_arn: String,
        /// The service's message.
        message: String,
    },
    /// A setting is out of its range.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The positions could not be loaded at the start, and a retry would not help.
    #[error("the mapping cannot start")]
    Checkpoint(#[from] CheckpointError),
    /// The reader of a shard panicked.
    #[error("the reader of a shard ended unexpectedly")]
    Reader(#[from] JoinError),
}

/// A mapping, ready to run.
pub struct EventSourceMapping {
    wiring: Arc<Wiring>,
}

impl EventSourceMapping {
    /// A mapping over a stream that other mappings may also read. Nothing is read before [`EventSourceMapping::run`].
    #[must_use]
    pub fn new(
        mapping: Mapping,
        stream: &Stream,
        function: Arc<dyn LambdaFunction>,
        checkpoints: Arc<dyn Checkpoints>,
        destination: Arc<dyn Destination>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let api = Arc::clone(&stream.api);
        let clock = Arc::new(SystemTime::now);
        Self::over(Wiring { mapping, api, function, checkpoints, destination, observer, clock })
    }

    /// The same mapping with another time of day, such as a simulated one.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        if let Some(wiring) = Arc::get_mut(&mut self.wiring) {
            wiring.clock = Arc::new(clock);
        }
        self
    }

    /// A mapping over anything that is a stream.
    pub(crate) fn over(wiring: Wiring) -> Self {
        Self { wiring: Arc::new(wiring) }
    }

    /// Runs until `stop` becomes true or its sender is dropped. Then finishes the running invocations.
    ///
    /// A stream that cannot be reached is retried without limit, also at the start.
    ///
    /// # Errors
    ///
    /// [`StreamError`]: a retry does not help. Running invocations are then abandoned, as after a crash, and the next
    /// run delivers their batches again.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), StreamError> {
        self.wiring.mapping.check()?;
        let n_filters = self.wiring.mapping.filters.len();
        if n_filters > FILTERS_DEFAULT_MAX {
            self.wiring.trouble(&format!(
                "there are {n_filters} filters: an account has {FILTERS_DEFAULT_MAX} until its quota is raised, before this is \
                 deployed"
            ));
        }
        let delivered = Arc::new(DeliveredBoard::new(Arc::clone(&self.wiring)));
        let lineage = Lineage::new(self.wiring.mapping.starting_position);
        let complaint = Complaint::default();
        let shards =
            Shards { wiring: self.wiring, delivered, lineage, complaint, readers: JoinSet::new(), has_listed: false };
        shards.run(Stop::new(stop)).await
    }
}

/// The shards of a running mapping and their readers.
struct Shards {
    wiring: Arc<Wiring>,
    delivered: Arc<DeliveredBoard>,
    lineage: Lineage,
    readers: JoinSet<(String, End)>,
    complaint: Complaint,
    has_listed: bool,
}

impl Shards {
    async fn run(mut self, stop: Stop) -> Result<(), StreamError> {
        let mut backoff = Waits::default();
        let mut next_listing = Instant::now();
        loop {
            let mut until = stop.clone();
            tokio::select! {
                biased;
                _ = until.requested() => break,
                Some(ended) = self.readers.join_next() => {
                    let (shard, end) = ended?;
                    match end {
                        End::Drained => {
                            self.lineage.drained(&shard);
                            next_listing = Instant::now();
                        }
                        // The next listing shows whether the stream still has it.
                        End::Lost => self.lineage.lost(&shard),
                        End::Stopped => {}
                    }
                }
                () = sleep_until(next_listing) => {
                    let Ok(updated) = until.or(self.update(&stop)).await else { break };
                    let wait = if updated? {
                        backoff.reset();
                        Duration::from_secs(LISTING_SECONDS)
                    } else {
                        backoff.wait()
                    };
                    next_listing = Instant::now() + wait;
                }
            }
        }
        while let Some(ended) = self.readers.join_next().await {
            ended?;
        }
        Ok(())
    }

    /// Lists all pages of the stream's shards.
    async fn list(&self) -> Result<Vec<ListedShard>, ApiError> {
        let mut listed = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..LISTING_PAGES_MAX {
            let page = self.wiring.api.shards(after.as_deref()).await?;
            listed.extend(page.shards);
            after = page.last_evaluated;
            if after.is_none() {
                return Ok(listed);
            }
        }
        Err(ApiError::Transient { message: format!("the list of shards has more than {LISTING_PAGES_MAX} pages") })
    }

    /// Lists the shards and starts the readers that may start. Returns false if the listing must be retried. Running
    /// readers continue.
    async fn update(&mut self, stop: &Stop) -> Result<bool, StreamError> {
        let since = Instant::now();
        let listed = match self.list().await {
            Ok(listed) => listed,
            Err(error) => return self.not_listed(error),
        };
        if let Err(error) = self.enter(&listed).await {
            return self.not_entered(error);
        }
        self.complaint.over();
        self.has_listed = true;
        self.lineage.listed(&listed);
        self.delivered.listed(since, self.lineage.undrained());
        for (shard, at) in self.lineage.start_ready() {
            let (wiring, delivered) = (Arc::clone(&self.wiring), Arc::clone(&self.delivered));
            let reader = ShardReader::new(wiring, delivered, shard.clone(), at, stop.clone());
            self.readers.spawn(async move { (shard, reader.run().await) });
        }
        Ok(true)
    }

    /// Loads the positions of new shards. Enters all of them or none. Otherwise, after a failure halfway, shards of the
    /// first listing would count as later ones.
    async fn enter(&mut self, listed: &[ListedShard]) -> Result<(), CheckpointError> {
        let (checkpoints, name) = (&self.wiring.checkpoints, &self.wiring.mapping.name);
        let mut followed = BTreeSet::new();
        let mut entries = Vec::new();
        for shard in self.lineage.unknown(listed) {
            let position = checkpoints.load(name, &shard.id).await?;
            if let (StartingPosition::Latest, Some(parent)) = (self.wiring.mapping.starting_position, &shard.parent)
                && checkpoints.load(name, parent).await?.is_some()
            {
                followed.insert(&shard.id);
            }
            entries.push((shard, position));
        }
        for (shard, position) in entries {
            self.lineage.enter(shard, position, followed.contains(&shard.id));
        }
        Ok(())
    }

    /// Handles a failed listing. A permanent error ends the mapping.
    fn not_listed(&self, error: ApiError) -> Result<bool, StreamError> {
        let stream_arn = self.wiring.mapping.stream_arn.clone();
        match error {
            ApiError::NotFound { .. } => Err(StreamError::NotFound { stream_arn }),
            ApiError::Refused { message } if !self.has_listed => Err(StreamError::Refused { stream_arn, message }),
            error => {
                self.complaint.report(&self.wiring, &format!("the stream cannot be listed, trying again: {error}"));
                Ok(false)
            }
        }
    }

    /// Handles positions that could not be loaded. At the start, a permanent error means a wrong setting and ends the
    /// mapping.
    fn not_entered(&self, error: CheckpointError) -> Result<bool, StreamError> {
        if matches!(error, CheckpointError::Lasting(_)) && !self.has_listed {
            return Err(error.into());
        }
        let why = error.line();
        self.complaint.report(&self.wiring, &format!("new shards cannot be read yet, trying again: {why}"));
        Ok(false)
    }
}

// ---- The wait between two attempts ----

/// Our choice, because AWS does not document its waits. The longest is short, because a developer waits.
const BACKOFF: Backoff = Backoff { ms_min: 100, ms_max: 5_000 };

/// Waits that double from 100 ms to 5 s.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    n_done: u32,
}

impl Waits {
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = Duration::from_millis(BACKOFF.ms(self.n_done));
        self.n_done = self.n_done.saturating_add(1);
        wait
    }

    /// Resets after a success: the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

// ---- The request to stop ----

/// A stop was requested. The receiver of this error returns at once and leaves nothing half done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// The receiver of the stop request. A dropped sender counts as the request, because it can send none.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    /// Fails if a stop was requested.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if *self.0.borrow() || self.0.has_changed().is_err() { Err(Stopped) } else { Ok(()) }
    }

    /// Waits for the stop request.
    pub(crate) async fn requested(&mut self) -> Stopped {
        // An error means that the sender was dropped, which counts as the request.
        drop(self.0.wait_for(|is_requested| *is_requested).await);
        Stopped
    }

    /// Waits for a time. Fails as soon as a stop is requested.
    pub(crate) async fn sleep(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.or(tokio::time::sleep(duration)).await
    }

    /// Does work that may be dropped at any point. Fails as soon as a stop is requested.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            stopped = self.requested() => Err(stopped),
            done = work => Ok(done),
        }
    }
}

// ---- Which shards may be read now: parents before children. Pure ----

/// The known shards of a stream.
#[derive(Debug)]
struct Lineage {
    starting_position: StartingPosition,
    /// False during the first listing. Only shards of that listing may start at the newest record.
    has_listed: bool,
    shards: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    parent: Option<String>,
    is_listed: bool,
    state: ShardState,
}

#[derive(Debug, PartialEq, Eq)]
enum ShardState {
    Waiting(IteratorAt),
    Running,
    Drained,
}

impl Lineage {
    fn new(starting_position: StartingPosition) -> Self {
        Self { starting_position, has_listed: false, shards: BTreeMap::new() }
    }

    /// The new shards of a listing. Their positions must be loaded.
    fn unknown<'a>(&self, listed: &'a [ListedShard]) -> Vec<&'a ListedShard> {
        listed.iter().filter(|shard| !self.shards.contains_key(&shard.id)).collect()
    }

    /// Adds a shard with its position. `is_followed` means that the parent has a position: the mapping has read this
    /// stream before and must not skip to the newest record.
    fn enter(&mut self, shard: &ListedShard, position: Option<Position>, is_followed: bool) {
        let state = match position {
            Some(Position::Ended) => ShardState::Drained,
            Some(Position::After(sequence_number)) => ShardState::Waiting(IteratorAt::After(sequence_number)),
            None if self.starting_position == StartingPosition::Latest && !self.has_listed && !is_followed => {
                ShardState::Waiting(IteratorAt::Latest)
            }
            None => ShardState::Waiting(IteratorAt::TrimHorizon),
        };
        self.shards.insert(shard.id.clone(), Known { parent: shard.parent.clone(), is_listed: true, state });
    }

    /// Applies a complete listing, after its unknown shards were entered. Removes the shards that are no longer listed,
    /// except those that are still being read.
    fn listed(&mut self, listed: &[ListedShard]) {
        self.has_listed = true;
        for (id, known) in &mut self.shards {
            known.is_listed = listed.iter().any(|shard| shard.id == *id);
        }
        self.shards.retain(|_, known| known.is_listed || known.state == ShardState::Running);
    }

    /// Starts the shards that may be read now. Returns each with its start position.
    fn start_ready(&mut self) -> Vec<(String, IteratorAt)> {
        let is_ready = |known: &Known| match (&known.state, &known.parent) {
            (ShardState::Waiting(_), Some(parent)) => {
                self.shards.get(parent).is_none_or(|parent| parent.state == ShardState::Drained)
            }
            (ShardState::Waiting(_), None) => true,
            _ => false,
        };
        let ids: Vec<String> =
            self.shards.iter().filter(|(_, known)| is_ready(known)).map(|(id, _)| id.clone()).collect();
        ids.into_iter().filter_map(|id| self.start(&id).map(|at| (id, at))).collect()
    }

    fn start(&mut self, id: &str) -> Option<IteratorAt> {
        let known = self.shards.get_mut(id)?;
        match std::mem::replace(&mut known.state, ShardState::Running) {
            ShardState::Waiting(at) => Some(at),
            other => {
                known.state = other;
                None
            }
        }
    }

    /// Marks a shard as read to its end.
    fn drained(&mut self, id: &str) {
        if let Some(known) = self.shards.get_mut(id) {
            known.state = ShardState::Drained;
        }
    }

    /// Removes a shard that was not found when it was read. If it is listed again, it starts at its checkpoint.
    fn lost(&mut self, id: &str) {
        self.shards.remove(id);
    }

    /// The shards that may still have records to deliver.
    fn undrained(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().filter(|(_, known)| known.state != ShardState::Drained).map(|(id, _)| id.as_str())
    }
}

// ---- What all parts of a running mapping share ----

/// A mapping and its connections to the outside.
pub(crate) struct Wiring {
    pub(crate) mapping: Mapping,
    pub(crate) api: Arc<dyn StreamApi>,
    pub(crate) function: Arc<dyn LambdaFunction>,
    pub(crate) checkpoints: Arc<dyn Checkpoints>,
    pub(crate) destination: Arc<dyn Destination>,
    pub(crate) observer: Arc<dyn Observer>,
    /// The wall clock, injected so that tests can control the age of records.
    pub(crate) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Wiring {
    pub(crate) fn trouble(&self, message: &str) {
        self.observer.trouble(&self.mapping.name, message);
    }
}

/// A problem of one or several tasks, reported once until it is over.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    is_reported: AtomicBool,
}

impl Complaint {
    pub(crate) fn report(&self, wiring: &Wiring, message: &str) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            wiring.trouble(message);
        }
    }

    pub(crate) fn over(&self) {
        self.is_reported.store(false, Ordering::Relaxed);
    }
}

/// An error and its causes in one line, without the causes that an error already quotes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.contains(&text) {
            // Writing to a string cannot fail.
            write!(line, ": {text}").unwrap_or_default();
        }
        source = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::Lineage;
    use crate::{
        checkpoint::Position,
        mapping::StartingPosition,
        source::{IteratorAt, ListedShard},
    };

    fn shard(id: &str, parent: Option<&str>) -> ListedShard {
        ListedShard { id: id.to_owned(), parent: parent.map(str::to_owned) }
    }

    fn list(lineage: &mut Lineage, shards: &[ListedShard]) -> Vec<(String, IteratorAt)> {
        for shard in lineage.unknown(shards) {
            lineage.enter(shard, None, false);
        }
        lineage.listed(shards);
        lineage.start_ready()
    }

    fn names(started: &[(String, IteratorAt)]) -> Vec<&str> {
        started.iter().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn children_wait_until_their_parent_is_drained() {
        let mut lineage = Lineage::new(StartingPosition::TrimHorizon);
        let shards = [shard("a", None), shard("b", Some("a")), shard("c", Some("a")), shard("d", Some("b"))];
        assert_eq!(names(&list(&mut lineage, &shards)), ["a"]);
        assert_eq!(names(&lineage.start_ready()), [""; 0]);
        lineage.drained("a");
        assert_eq!(names(&lineage.start_ready()), ["b", "c"]);
        lineage.drained("c");
        assert_eq!(names(&lineage.start_ready()), [""; 0]);
        lineage.drained("b");
        assert_eq!(names(&lineage.start_ready()), ["d"]);
        assert_eq!(lineage.undrained().collect::<Vec<_>>(), ["d"]);
    }

    #[test]
    fn a_child_starts_when_its_parent_is_trimmed_but_not_while_it_is_still_read() {
        let mut lineage = Lineage::new(StartingPosition::TrimHorizon);
        assert_eq!(names(&list(&mut lineage, &[shard("b", Some("trimmed")), shard("c", Some("b"))])), ["b"]);
        assert_eq!(names(&list(&mut lineage, &[shard("c", Some("b"))])), [""; 0]);
        lineage.lost("b");
        assert_eq!(names(&lineage.start_ready()), ["c"]);
    }

    #[test]
    fn a_position_says_where_a_shard_starts() {
        let mut lineage = Lineage::new(StartingPosition::Latest);
        lineage.enter(&shard("a", None), Some(Position::Ended), false);
        lineage.enter(&shard("b", Some("a")), Some(Position::After("42".to_owned())), true);
        assert_eq!(lineage.start_ready(), [("b".to_owned(), IteratorAt::After("42".to_owned()))]);
    }

    #[test]
    fn only_a_shard_that_was_there_first_and_follows_nothing_starts_at_the_newest_record() {
        let mut lineage = Lineage::new(StartingPosition::Latest);
        let (fresh, followed, later) = (shard("a", None), shard("b", Some("gone")), shard("c", None));
        lineage.enter(&fresh, None, false);
        lineage.enter(&followed, None, true);
        lineage.listed(&[fresh.clone(), followed.clone()]);
        lineage.enter(&later, None, false);
        lineage.listed(&[fresh, followed, later]);
        let starts: Vec<_> = lineage.start_ready().into_iter().map(|(_, at)| at).collect();
        assert_eq!(starts, [IteratorAt::Latest, IteratorAt::TrimHorizon, IteratorAt::TrimHorizon]);
    }
}
