//! The service, running: a stream, its event source mappings, and the functions they invoke.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use derive::{catalogue::Catalogue, derivation::Family, schema::Schema};
use engine::{
    batch::{Engine, Handled},
    clock::{Clock as _, SystemClock},
    fan_out::Limits,
    ledger::LedgerKind,
};
use futures::future::BoxFuture;
use runtime::handler::{Function, response};
use store::dynamo::DynamoStore;
use stream::{
    destination::FolderDestination,
    function::{Function as Invoked, FunctionError, HttpFunction},
    mapping::{Mapping, StartingPosition},
    poller::{EventSourceMapping, StreamError},
    progress::{Invocation, Observer},
};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{args::Readers, checkpoints::LedgerCheckpoints, sweeper::Sweeper};

/// Most records in a batch. Lambda's own limit is 10,000; 500 keep an invocation short.
const BATCH_SIZE: usize = 500;

/// How long a batch is gathered, in milliseconds: long enough to coalesce, short against a second of lag over a chain
/// of three records (a follow, its counter, its display).
const BATCHING_WINDOW_MS: u64 = 50;

/// Lanes of each shard for the function that counts nothing, Lambda's most. Emulators have one shard, and what it does
/// with an item rests on no order but that of the item's own records.
const LANES: usize = 10;

/// Parts that a large fan-out is cut into: few, since an emulator answers one call after another, so that everybody else
/// waits behind the calls of all parts.
const FAN_OUT_PARTS: u32 = 3;

/// Length of a tumbling window, in seconds. The window is there for the shard's name, which no other event has; its
/// length says nothing. A whole minute, since `DynamoDB` Local rounds the time of a record down to one.
const TUMBLING_WINDOW_S: u64 = 60;

/// Wait after an empty read, in milliseconds. Lambda polls four times a second; here a person is watching.
const IDLE_POLL_MS: u64 = 20;

/// How long an invocation may take, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// How often it is looked whether the stream is quiet.
const QUIET_POLL: Duration = Duration::from_millis(10);

/// What the service runs on.
pub(crate) struct Plan<'a> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) store: Arc<DynamoStore>,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
    pub(crate) stream_arn: String,
    pub(crate) readers: Readers,
    pub(crate) ledger: LedgerKind,
    /// Where functions are invoked that do not run in this process.
    pub(crate) functions: Option<&'a str>,
    /// Where failure records are kept.
    pub(crate) failures: &'a Path,
}

/// Is told what the functions do.
pub(crate) trait Witness: Send + Sync {
    /// A function in this process handled a batch.
    fn handled(&self, function: Function, handled: &Handled, elapsed: Duration) {
        let _: (Function, &Handled, Duration) = (function, handled, elapsed);
    }

    /// A function elsewhere was invoked, or one anywhere failed.
    fn invoked(&self, invocation: &Invocation) {
        let _: &Invocation = invocation;
    }

    /// Something stands in the way.
    fn trouble(&self, line: &str);
}

/// The running service.
pub(crate) struct Service {
    progress: Arc<Progress>,
    tasks: JoinSet<Result<(), StreamError>>,
    stop: watch::Sender<bool>,
    /// Knows which jobs there are.
    jobs: Engine<Arc<DynamoStore>>,
}

impl Service {
    /// Starts the mappings.
    pub(crate) fn start(plan: &Plan<'_>, witness: &Arc<dyn Witness>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let functions = match plan.readers {
            Readers::One => vec![Function::Combined],
            Readers::Two => vec![Function::Aggregate, Function::Propagate],
        };
        let idle = functions.iter().map(|function| (function.to_string(), None)).collect();
        let watched = Watched { idle, past: BTreeMap::new(), last_ended: None };
        let progress = Arc::new(Progress { watched: Mutex::new(watched), witness: Arc::clone(witness) });
        let layout = plan.schema.layout.clone();
        let checkpoints = Arc::new(LedgerCheckpoints::new(Arc::clone(&plan.store), layout, &plan.stream_arn));
        let destination = Arc::new(FolderDestination::new(plan.failures));
        let mut tasks = JoinSet::new();
        for function in functions {
            let mapping = EventSourceMapping::new(
                mapping(function, plan),
                plan.streams.clone(),
                invoked(plan, function, witness),
                Arc::clone(&checkpoints) as Arc<_>,
                Arc::clone(&destination) as Arc<_>,
                Arc::clone(&progress) as Arc<_>,
            );
            tasks.spawn(mapping.run(stopped.clone()));
        }
        let sweeper = Sweeper::new(engine(plan, Function::Sweep), Arc::clone(&progress), Arc::clone(witness));
        tokio::spawn(sweeper.run(stopped));
        Self { progress, tasks, stop, jobs: engine(plan, Function::Sweep) }
    }

    /// Waits until all that was written up to now, and all that follows from it, jobs too, is handled; a job that an
    /// operator holds is not waited for. Fails when a mapping ends before.
    pub(crate) async fn quiet(&mut self) -> anyhow::Result<()> {
        let since = Instant::now();
        // Jobs are looked for when the stream is quiet; one that ended meanwhile has made records again.
        while !self.progress.watched().is_quiet(since)
            || !self.jobs.jobs().await?.iter().all(|job| job.is_paused)
            || self.jobs.has_notes().await?
            || !self.progress.watched().is_quiet(since)
        {
            tokio::select! {
                Some(ended) = self.tasks.join_next() => return Err(unexpected(ended)),
                () = tokio::time::sleep(QUIET_POLL) => {}
            }
        }
        Ok(())
    }

    /// Runs until a mapping ends, which it only does when it cannot go on.
    pub(crate) async fn ended(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(ended) => unexpected(ended),
            None => anyhow::anyhow!("no event source mapping is running"),
        }
    }

    /// Stops, after the invocations in progress.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let _nobody_listens = self.stop.send(true).is_err();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn unexpected(ended: Result<Result<(), StreamError>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow::anyhow!("an event source mapping ended by itself"),
        Ok(Err(error)) => error.into(),
        Err(error) => error.into(),
    }
}

fn mapping(function: Function, plan: &Plan<'_>) -> Mapping {
    // Only the function that counts needs the shard's name, and only for the checkpoint.
    let counts = function.families().contains(&Family::Additive);
    let needs_shard = counts && plan.ledger == LedgerKind::Checkpoint;
    Mapping {
        name: function.to_string(),
        stream_arn: plan.stream_arn.clone(),
        batch_size: BATCH_SIZE,
        batching_window_ms: BATCHING_WINDOW_MS,
        tumbling_window_seconds: if needs_shard { TUMBLING_WINDOW_S } else { 0 },
        // Counters are written once a batch, and those of one shard by one writer: lanes would cut the batches into
        // pieces and make the pieces conflict. Under the checkpoint a lane that is ahead would hide changes behind it.
        parallelization_factor: if counts { 1 } else { LANES },
        // The handler parks what can never be applied, so a batch is tried until it is done.
        retry_attempts_max: None,
        record_age_ms_max: None,
        report_batch_item_failures: true,
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: IDLE_POLL_MS,
    }
}

fn invoked(plan: &Plan<'_>, function: Function, witness: &Arc<dyn Witness>) -> Arc<dyn Invoked> {
    if let Some(url) = plan.functions {
        return Arc::new(HttpFunction::new(url, &function.to_string()));
    }
    Arc::new(InProcess { engine: engine(plan, function), function, witness: Arc::clone(witness) })
}

/// A function's engine. A cascade is due at once: the sweeper knows when all that was written before has been seen.
fn engine(plan: &Plan<'_>, function: Function) -> Engine<Arc<DynamoStore>> {
    let (schema, catalogue) = (Arc::clone(&plan.schema), Arc::clone(&plan.catalogue));
    let store = Arc::clone(&plan.store);
    let engine = Engine::new(schema, catalogue, function.families(), store, Arc::new(SystemClock));
    // The emulators' indexes are part of the table, and do not lag.
    let fan_out = Limits { index_lag_ms: 0, parts: FAN_OUT_PARTS, ..Limits::default() };
    engine.with_ledger(plan.ledger).with_settling(0).with_fan_out(fan_out)
}

/// A function that runs in this process.
struct InProcess {
    engine: Engine<Arc<DynamoStore>>,
    function: Function,
    witness: Arc<dyn Witness>,
}

impl Invoked for InProcess {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let started = Instant::now();
            let deadline_ms = SystemClock.now_ms() + INVOCATION_MS;
            let handled = self.engine.handle(&event, deadline_ms).await;
            let handled = handled.map_err(|error| FunctionError::Unhandled { message: error.to_string() })?;
            self.witness.handled(self.function, &handled, started.elapsed());
            Ok(response(&handled).to_string())
        })
    }
}

/// How far the mappings are.
pub(crate) struct Progress {
    watched: Mutex<Watched>,
    witness: Arc<dyn Witness>,
}

struct Watched {
    /// Since when each mapping has found nothing more.
    idle: BTreeMap<String, Option<Instant>>,
    /// When each mapping last began a read that found nothing more; what was in the stream before is handled.
    past: BTreeMap<String, Instant>,
    /// When the last invocation of any mapping ended.
    last_ended: Option<Instant>,
}

impl Watched {
    /// Every mapping found nothing in a read that began after the last write of anybody.
    fn is_quiet(&self, since: Instant) -> bool {
        let after = self.last_ended.map_or(since, |ended| ended.max(since));
        self.idle.values().all(|idle| idle.is_some_and(|idle| idle > after))
    }
}

impl Progress {
    /// Has every mapping handled what was in the stream at this moment?
    pub(crate) fn is_past(&self, moment: Instant) -> bool {
        let watched = self.watched();
        watched.idle.keys().all(|mapping| watched.past.get(mapping).is_some_and(|past| *past > moment))
    }

    /// Has nothing been in the stream since this moment, and since the last write of anybody?
    pub(crate) fn is_quiet(&self, since: Instant) -> bool {
        self.watched().is_quiet(since)
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Progress {
    fn invoked(&self, report: &Invocation) {
        {
            let mut watched = self.watched();
            watched.last_ended = watched.last_ended.max(Some(report.ended));
        }
        self.witness.invoked(report);
    }

    fn idle(&self, mapping: &str, since: Instant) {
        let mut watched = self.watched();
        watched.idle.insert(mapping.to_owned(), Some(since));
        watched.past.insert(mapping.to_owned(), since);
    }

    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: &str) {
        self.witness.trouble(&format!("{mapping} gave up on {n_records} records of {shard}; they are kept in {key}"));
    }

    fn trouble(&self, mapping: &str, message: &str) {
        self.witness.trouble(&format!("{mapping}: {message}"));
    }
}
