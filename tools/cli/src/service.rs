//! The running service: the streams, their event source mappings, the functions that they invoke, and the sweeper.

pub(crate) mod function;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use console::{
    flow::entry::UnansweredInvocation,
    step::{StepGate, SteppedFunction},
};
use derive::{catalogue::Catalogue, schema::Schema};
use engine::{
    batch::{Engine, Handled},
    clock::{Clock as _, SystemClock},
    job::Job,
    jobs::sweep::jobs,
    ledger::LedgerKind,
    limits::BrakeLimits,
    sweep::Bounds,
};
use functions::{
    config::{ConfigError, Mode, brake_limits_from_env},
    handler::Function,
};
use futures::future::BoxFuture;
use keys::{key::Key, layout::Layout};
use operate::checkpoints::LedgerCheckpoints;
use store::{Store, StoreError, dynamo::DynamoStore};
use stream::{
    checkpoint::{Checkpoints, MemoryCheckpoints},
    failure::FolderDestination,
    function::{HttpFunction, LambdaFunction},
    mapping::Mapping,
    poller::{EventSourceMapping, StreamError},
    progress::{EventCount, Invocation, MappingCounts, Observer},
    source::Stream,
};
use tokio::{
    sync::{Notify, watch},
    task::{JoinError, JoinSet},
};

use crate::service::function::{Faulty, InProcess, Stepped, engine};

/// Time limit for publishing the functions' derivations, in milliseconds.
const PUBLISH_MS: u64 = 5_000;

/// Time limit for removing the functions' positions at a stop, in milliseconds.
const LEAVE_MS: u64 = 5_000;

/// Time between two checks whether the stream is quiet.
const QUIET_POLL: Duration = Duration::from_millis(10);

/// Time between two reads of the jobs while the stream is quiet and jobs exist. A read is eight queries, and a job
/// exists for as long as its record is parked.
const JOBS_POLL: Duration = Duration::from_millis(200);

/// The settings of a service.
pub(crate) struct Plan<'a> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) store: Arc<DynamoStore>,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
    /// The functions that read the streams, with one mapping for each function and stream.
    pub(crate) mappings: Vec<(Function, Mapping)>,
    pub(crate) ledger: LedgerKind,
    /// Whether the functions write.
    pub(crate) mode: Mode,
    /// The limits at which the circuit breaker stops a batch.
    pub(crate) limits: BrakeLimits,
    /// URL of functions that do not run in this process.
    pub(crate) functions: Option<&'a str>,
    /// Faults of the invocations in this process.
    pub(crate) faults: Option<Arc<dyn Faults>>,
    /// Folder for failure records.
    pub(crate) failures: &'a Path,
}

/// The limits of the circuit breaker on a laptop. A person sees unreadable items at once, so it only warns, unless the
/// functions' variables set its limits.
pub(crate) fn laptop_limits() -> Result<BrakeLimits, ConfigError> {
    let warning = BrakeLimits { only_warns: true, ..BrakeLimits::default() };
    Ok(brake_limits_from_env()?.unwrap_or(warning))
}

/// How an invocation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The mapping gets the response.
    Answered,
    /// The function handles the batch, and is killed before it responds.
    Unanswered,
    /// The function is killed after its first write into the application's table.
    KilledAtOnce,
}

/// Decides how invocations end.
pub(crate) trait Faults: Send + Sync {
    /// How the invocation of the function with this event ends.
    fn fate<'a>(&'a self, function: Function, event: &'a str) -> BoxFuture<'a, anyhow::Result<Fate>>;
}

/// Observes the functions.
pub(crate) trait Witness: Send + Sync {
    /// A function in this process handled a batch.
    fn handled(&self, _function: Function, _handled: &Handled, _elapsed: Duration) {}

    /// A function in this process ended without an answer.
    fn unanswered(&self, _function: Function, _unanswered: &UnansweredInvocation, _elapsed: Duration) {}

    /// A function in another process was invoked, or any invocation failed.
    fn invoked(&self, _invocation: &Invocation) {}

    /// A record, as JSON text, did not match the filters of a mapping.
    fn filtered_out(&self, _record: &str) {}

    /// The database was called. `_is_so` is true if it responded.
    fn responds(&self, _is_so: bool) {}

    /// A problem that the person at the terminal should see.
    fn trouble(&self, line: &str);
}

pub(crate) struct Service {
    pub(crate) progress: Arc<Watch>,
    /// Can pause the stream before the functions of this process.
    pub(crate) gate: Arc<StepGate<DynamoStore>>,
    tasks: JoinSet<Result<(), StreamError>>,
    stop: watch::Sender<bool>,
    /// Reads the jobs.
    jobs: Engine<Arc<DynamoStore>>,
    /// True if the functions run in this process and have published their derivations.
    is_registered: bool,
}

impl Service {
    /// Starts the mappings. The functions publish their derivations at once, so that a backfill can start before the
    /// first write.
    pub(crate) async fn start(plan: &Plan<'_>, witness: &Arc<dyn Witness>) -> anyhow::Result<Self> {
        if plan.functions.is_none() && plan.mode == Mode::Apply {
            for (function, _) in &plan.mappings {
                engine(plan, *function).publish(SystemClock.now_ms().saturating_add(PUBLISH_MS)).await?;
            }
        }
        let (stop, stopped) = watch::channel(false);
        let delivered = plan.mappings.iter().map(|(_, mapping)| (mapping.name.clone(), None)).collect();
        let watched = Watched { delivered, last_found: None, last_ended: None, last_quiet: None };
        let (counts, quiet) = (MappingCounts::default(), Notify::new());
        let progress = Arc::new(Watch { watched: Mutex::new(watched), quiet, counts, witness: Arc::clone(witness) });
        let layout = plan.schema.layout.clone();
        let destination = Arc::new(FolderDestination::new(plan.failures));
        let gate = gate(plan, witness, &progress);
        let mut tasks = JoinSet::new();
        let mut streams: BTreeMap<&str, (Stream, Arc<dyn Checkpoints>)> = BTreeMap::new();
        for (function, mapping) in &plan.mappings {
            let (stream, checkpoints) = streams.entry(&mapping.stream_arn).or_insert_with_key(|arn| {
                let checkpoints: Arc<dyn Checkpoints> = match plan.mode {
                    Mode::Apply => Arc::new(LedgerCheckpoints::new(Arc::clone(&plan.store), layout.clone(), arn)),
                    Mode::Observe => Arc::new(MemoryCheckpoints::default()),
                };
                (Stream::new(plan.streams.clone(), arn), checkpoints)
            });
            let here = || InProcess::of(plan, *function, &gate, witness);
            let invoked: Arc<dyn LambdaFunction> = match (plan.functions, &plan.faults) {
                (Some(url), _) => Arc::new(HttpFunction::new(url, &function.to_string())),
                (None, Some(faults)) => Arc::new(Faulty::of(plan, *function, here(), faults)),
                (None, None) => Arc::new(here()),
            };
            let mapping = EventSourceMapping::new(
                mapping.clone(),
                stream,
                invoked,
                Arc::clone(checkpoints),
                Arc::clone(&destination) as Arc<_>,
                Arc::clone(&progress) as Arc<_>,
            );
            tasks.spawn(mapping.run(stopped.clone()));
        }
        if plan.mode == Mode::Apply {
            let sweeper = Sweeper::new(engine(plan, Function::Sweep), Arc::clone(&progress), Arc::clone(witness));
            tokio::spawn(sweeper.run(stopped));
        }
        let is_registered = plan.functions.is_none() && plan.mode == Mode::Apply;
        Ok(Self { progress, gate, tasks, stop, jobs: engine(plan, Function::Sweep), is_registered })
    }

    /// Waits until everything written up to now is handled, including derived writes and jobs. It does not wait for a
    /// job that an operator paused. Returns the time up to which everything is handled. Fails if a mapping ends.
    pub(crate) async fn quiet(&mut self) -> anyhow::Result<Instant> {
        let since = Instant::now();
        loop {
            if !self.progress.is_quiet(since) {
                self.pause(QUIET_POLL).await?;
            } else if is_job_left(self.jobs.store(), &self.jobs.schema().layout).await? {
                self.pause(JOBS_POLL).await?;
            } else if let Some(moment) = self.progress.becomes_quiet(since) {
                // The stream is checked again, because a job that ended meanwhile has written records.
                return Ok(moment);
            }
        }
    }

    /// True if a mapping has found records.
    pub(crate) fn has_found(&self) -> bool {
        self.progress.watched().last_found.is_some()
    }

    /// Waits until a mapping finds records after this moment, or any records if there is no moment.
    pub(crate) async fn active(&mut self, since: Option<Instant>) -> anyhow::Result<()> {
        while self.progress.watched().last_found <= since {
            self.pause(QUIET_POLL).await?;
        }
        Ok(())
    }

    async fn pause(&mut self, pause: Duration) -> anyhow::Result<()> {
        tokio::select! {
            Some(ended) = self.tasks.join_next() => Err(unexpected(ended)),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Runs until a mapping ends, which happens only if it cannot continue.
    pub(crate) async fn ended(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(ended) => unexpected(ended),
            None => anyhow::anyhow!("no event source mapping is running"),
        }
    }

    /// Stops after the invocations in progress. Returns the counts of each mapping, by its name.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Vec<(String, EventCount)>> {
        let _nobody_listens = self.stop.send(true).is_err();
        self.gate.stop();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        if self.is_registered {
            self.jobs.leave(SystemClock.now_ms().saturating_add(LEAVE_MS)).await?;
        }
        let mappings: Vec<String> = self.progress.watched().delivered.keys().cloned().collect();
        let counted = |name: String| {
            let counts = self.progress.counts.of(&name);
            (name, counts)
        };
        Ok(mappings.into_iter().map(counted).collect())
    }
}

/// A gate before the functions of the plan. Records pass it until the console pauses the stream.
fn gate(plan: &Plan<'_>, witness: &Arc<dyn Witness>, progress: &Arc<Watch>) -> Arc<StepGate<DynamoStore>> {
    let stepped = |(function, _): &(Function, Mapping)| {
        Arc::new(Stepped::of(plan, *function, witness)) as Arc<dyn SteppedFunction<DynamoStore>>
    };
    let gate = StepGate::new(&plan.store, plan.mappings.iter().map(stepped).collect());
    let progress = Arc::clone(progress);
    gate.watches(Box::new(move |since| progress.is_quiet(since)));
    Arc::new(gate)
}

/// True if there is a job that is not paused. While the database does not respond, there may be one: the mappings
/// report the problem, and continue when it responds.
async fn is_job_left<S: Store>(store: &S, layout: &Layout) -> Result<bool, StoreError> {
    match jobs(store, layout).await {
        Ok(jobs) => Ok(!jobs.iter().all(|job| job.is_paused)),
        Err(error) if error.is_retry() => Ok(true),
        Err(error) => Err(error),
    }
}

fn unexpected(ended: Result<Result<(), StreamError>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow::anyhow!("an event source mapping ended by itself"),
        Ok(Err(error)) => error.into(),
        Err(error) => error.into(),
    }
}

// ---- The progress of the mappings, which shows whether everything is handled ----

/// The progress of the mappings.
pub(crate) struct Watch {
    watched: Mutex<Watched>,
    /// Notified each time everything is found to be handled.
    quiet: Notify,
    counts: MappingCounts,
    witness: Arc<dyn Witness>,
}

struct Watched {
    /// The time up to which each mapping has handled everything that was in the stream.
    delivered: BTreeMap<String, Option<Instant>>,
    /// When a mapping last found records, matching its filters or not.
    last_found: Option<Instant>,
    /// When the last invocation of any mapping ended.
    last_ended: Option<Instant>,
    /// The last known time up to which everything was handled, jobs included.
    last_quiet: Option<Instant>,
}

impl Watched {
    /// The time up to which every mapping has handled everything, if it is after `since` and after the last invocation.
    fn quiet(&self, since: Instant) -> Option<Instant> {
        let after = self.last_ended.map_or(since, |ended| ended.max(since));
        // A mapping that does not know its time yet has `None`, which is less than any time.
        self.delivered.values().copied().min().flatten().filter(|until| *until > after)
    }
}

impl Watch {
    /// True if every mapping has handled everything that was in the stream at this moment.
    pub(crate) fn is_past(&self, moment: Instant) -> bool {
        self.watched().delivered.values().all(|until| until.is_some_and(|until| until > moment))
    }

    /// True if the stream has been empty since this moment, and since the last invocation.
    fn is_quiet(&self, since: Instant) -> bool {
        self.watched().quiet(since).is_some()
    }

    /// The time up to which everything is known to be handled, jobs included. It advances while no records arrive,
    /// because then there is no new job either.
    pub(crate) fn handled_until(&self) -> Option<Instant> {
        let watched = self.watched();
        let known = watched.last_quiet?;
        let is_still = watched.last_found <= Some(known);
        watched.quiet(known).filter(|_| is_still).or(Some(known))
    }

    /// Notes that no job is left. Returns the time up to which everything is handled, if the stream is quiet too.
    fn becomes_quiet(&self, since: Instant) -> Option<Instant> {
        let mut watched = self.watched();
        watched.last_quiet = watched.quiet(since).or(watched.last_quiet);
        self.quiet.notify_one();
        watched.quiet(since)
    }

    /// Waits until everything is next found to be handled.
    pub(crate) async fn next_quiet(&self) {
        self.quiet.notified().await;
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn invoked(&self, report: &Invocation) {
        {
            let mut watched = self.watched();
            watched.last_ended = watched.last_ended.max(Some(report.ended));
        }
        self.counts.invoked(report);
        self.witness.invoked(report);
    }

    fn polled(&self, mapping: &str, n_records: usize) {
        if n_records > 0 {
            self.watched().last_found = Some(Instant::now());
        }
        self.counts.polled(mapping, n_records);
    }

    fn filtered_out(&self, mapping: &str, records: &[&str]) {
        self.counts.filtered_out(mapping, records);
        for record in records {
            self.witness.filtered_out(record);
        }
    }

    fn delivered(&self, mapping: &str, until: Instant) {
        self.watched().delivered.insert(mapping.to_owned(), Some(until));
    }

    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: Option<&str>) {
        self.counts.discarded(mapping, shard, n_records, key);
        let kept = match key {
            Some(key) => format!("their failure record is {key}"),
            None => "they are lost, since the mapping has no on-failure destination".to_owned(),
        };
        self.witness.trouble(&format!("{mapping} gave up on {n_records} records of {shard}; {kept}"));
    }

    fn trouble(&self, mapping: &str, message: &str) {
        self.witness.trouble(&format!("{mapping}: {message}"));
    }
}

// ---- The sweeper: starts jobs after the mappings have handled everything written before them ----
//
// In Lambda the position in every shard is unknown, so a cascade waits for longer than the stream keeps records. Here
// the progress is known: a job may start when every mapping has found the stream empty after the sweeper first saw the
// job.
//
// Every few seconds, the sweeper also checks a slice of the table for drift, and deletes counters of zero. An item
// that differs has drifted if the stream has been quiet since the item was noted. Nothing waits for a slice.

/// Time between two sweeps.
const PAUSE: Duration = Duration::from_millis(500);

/// Time limit of a sweep of the jobs, in milliseconds.
const SWEEP_MS: u64 = 10_000;

/// Time between two slices, the number of items in a slice, and its time limit, which also applies to repeated
/// searches.
const SLICE_PAUSE: Duration = Duration::from_secs(5);
const SLICE_ITEMS: usize = 500;
const SLICE_MS: u64 = 5_000;

struct Sweeper {
    engine: Engine<Arc<DynamoStore>>,
    progress: Arc<Watch>,
    witness: Arc<dyn Witness>,
    /// When each wait of a job was first seen. The due time distinguishes the waits, because a cascade waits twice.
    seen: BTreeMap<(Key, u64), Instant>,
    sliced: Instant,
    /// Drifted items that were reported already.
    drifted: BTreeSet<Key>,
}

impl Sweeper {
    /// A sweeper that starts each job when this progress shows that the mappings are past it.
    fn new(engine: Engine<Arc<DynamoStore>>, progress: Arc<Watch>, witness: Arc<dyn Witness>) -> Self {
        let (seen, drifted) = (BTreeMap::new(), BTreeSet::new());
        Self { engine, progress, witness, seen, sliced: Instant::now(), drifted }
    }

    /// Sweeps until it is stopped.
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stopped.changed() => return,
                () = tokio::time::sleep(PAUSE) => {
                    self.sweep().await;
                    self.slice().await;
                }
            }
        }
    }

    async fn sweep(&mut self) {
        // Waits that are no longer due have begun or ended, and are forgotten.
        let (before, now) = (std::mem::take(&mut self.seen), Instant::now());
        let still_due = Mutex::new(BTreeMap::new());
        let is_settled = |job: &Job| {
            let wait = (job.key.clone(), job.due_at_ms);
            let seen = before.get(&wait).copied().unwrap_or(now);
            still_due.lock().unwrap_or_else(PoisonError::into_inner).insert(wait, seen);
            self.progress.is_past(seen)
        };
        if let Err(error) = self.engine.sweep(is_settled, SystemClock.now_ms().saturating_add(SWEEP_MS)).await {
            self.witness.trouble(&format!("a job cannot be started: {error}"));
        }
        self.seen = still_due.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    /// If it is time, repeats the index searches that are due, checks the next slice, and reports each drifted item
    /// once. Functions in another process may have noted the searches.
    async fn slice(&mut self) {
        if self.sliced.elapsed() < SLICE_PAUSE {
            return;
        }
        if let Err(error) = self.engine.search_again(SystemClock.now_ms().saturating_add(SLICE_MS)).await {
            self.witness.trouble(&format!("a search of an index cannot be repeated: {error}"));
        }
        let (now, now_ms) = (Instant::now(), SystemClock.now_ms());
        let bounds = Bounds { n_items_max: SLICE_ITEMS, deadline_ms: now_ms.saturating_add(SLICE_MS) };
        let is_past = |noted_at_ms: u64| {
            let noted = now.checked_sub(Duration::from_millis(now_ms.saturating_sub(noted_at_ms)));
            noted.is_some_and(|noted| self.progress.is_quiet(noted))
        };
        let swept = self.engine.sweep_slice(bounds, is_past).await;
        self.sliced = Instant::now();
        let slice = match swept {
            Ok(slice) => slice,
            Err(error) => return self.witness.trouble(&format!("the table cannot be checked for drift: {error}")),
        };
        let drifted: BTreeSet<Key> = slice.drifts.iter().map(|drift| drift.item.clone()).collect();
        for drift in slice.drifts.iter().filter(|drift| !self.drifted.contains(&drift.item)) {
            let derivations = drift.derivations.join(", ");
            self.witness.trouble(&format!("{} has drifted: {derivations}; see `ripple verify`", drift.item));
        }
        self.drifted = drifted;
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use store::dynamo::TableNames;

    use super::*;
    use crate::opened::Clients;

    #[tokio::test]
    async fn a_database_that_is_away_may_have_a_job_left() {
        // A port that was free a moment ago, so no program listens there.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let clients = Clients::at(&format!("http://{address}"), "us-east-1").await;
        let names = TableNames { main: "m".to_owned(), ledger: "l".to_owned() };
        let store = DynamoStore::new(clients.dynamodb, Layout::of("PK", "SK"), names);
        assert!(is_job_left(&store, &Layout::of("PK", "SK")).await.unwrap());
    }
}
