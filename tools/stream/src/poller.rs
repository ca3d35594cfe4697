//! The event source mapping: lists the shards, and runs a reader for each shard that may be read.
//!
//! # Example
//!
//! A parent `a` is closed and has the children `b` and `c`. The first listing starts a reader of `a` only. When all of
//! `a` is read and delivered, its checkpoint says so. The shards are listed again at once, and the readers of `b` and
//! `c` start in parallel.

use std::{
    collections::BTreeSet,
    sync::Arc,
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
    checkpoint::{CheckpointError, Checkpoints},
    delivered::DeliveredBoard,
    filter::FILTERS_DEFAULT_MAX,
    function::LambdaFunction,
    lineage::Lineage,
    mapping::{Mapping, MappingError, StartingPosition},
    progress::Observer,
    reader::{End, ShardReader},
    response::Destination,
    shared::Stream,
    source::{ApiError, ListedShard},
    wiring::{Complaint, Wiring},
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
    /// The next wait.
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
