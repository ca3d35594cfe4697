//! Tests of a mapping with an in-memory stream in virtual time: its environment, and a transcript of its notifications.
//!
//! `tools/stream/README.md` defines the sources in the comments, such as U2 and LS.

mod batches;
mod delivered;
pub(crate) mod fakes;
mod lanes;
mod positions;
mod windows;

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use expect_test::Expect;
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::{
    checkpoint::{Checkpoints as _, MemoryCheckpoints, Position},
    failure::Destination,
    filter::Filters,
    function::{FunctionError, LambdaFunction},
    mapping::{Mapping, OnFailure, StartingPosition},
    poller::{EventSourceMapping, StreamError, Wiring},
    progress::{EventCount, Invocation, InvocationOutcome, MappingCounts, Observer},
    tests::fakes::MemoryStream,
};

pub(crate) const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

/// A mapping with the settings of most tests: the whole stream, batches of 3, reported failures, unlimited retries.
pub(crate) fn mapping() -> Mapping {
    Mapping {
        name: "aggregate".to_owned(),
        stream_arn: ARN.to_owned(),
        batch_size: 3,
        batching_window_ms: 0,
        tumbling_window_seconds: 0,
        parallelization_factor: 1,
        retry_attempts_max: None,
        record_age_ms_max: None,
        report_batch_item_failures: true,
        filters: Filters::default(),
        on_failure: Some(OnFailure::S3),
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: 250,
    }
}

/// The function's response to an event.
type Script = Box<dyn Fn(&Value) -> Result<String, FunctionError> + Send + Sync>;

/// The environment of a mapping. Its time starts at 0 ms.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) stream: Arc<MemoryStream>,
    pub(crate) checkpoints: Arc<MemoryCheckpoints>,
    pub(crate) destination: Arc<MemoryDestination>,
    mapping: Mapping,
    observer: Arc<RecordingObserver>,
    sent: Arc<Mutex<Vec<Sent>>>,
    function: Arc<Scripted>,
}

/// An event that reached the function.
#[derive(Clone)]
pub(crate) struct Sent {
    /// The time of the invocation, in milliseconds.
    pub(crate) at_ms: u128,
    pub(crate) event: Value,
}

pub(crate) struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), StreamError>>,
}

impl World {
    /// A world with one open shard `a`. The function follows the script and takes no time.
    pub(crate) fn new(
        mapping: Mapping,
        script: impl Fn(&[String]) -> Result<String, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        Self::with_slow_function(mapping, Duration::ZERO, script)
    }

    /// Like `new`, with a function that takes this long.
    fn with_slow_function(
        mapping: Mapping,
        takes: Duration,
        script: impl Fn(&[String]) -> Result<String, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        Self::with_events(mapping, takes, move |event| script(&numbers(event)))
    }

    /// Like `with_slow_function`, with a script that gets the whole event.
    fn with_events(
        mapping: Mapping,
        takes: Duration,
        script: impl Fn(&Value) -> Result<String, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        let stream = Arc::new(MemoryStream::default());
        stream.open("a", None);
        let origin = Instant::now();
        let (delivered, _) = watch::channel(None);
        let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let function = Scripted { takes, script: Box::new(script), origin, sent: Arc::clone(&sent) };
        Self {
            stream,
            checkpoints: Arc::default(),
            destination: Arc::default(),
            mapping,
            observer: Arc::new(RecordingObserver {
                origin,
                lines: Mutex::default(),
                delivered,
                counts: MappingCounts::default(),
            }),
            sent,
            function: Arc::new(function),
        }
    }

    /// The world after a restart of the process with another function.
    fn restarted(&self, script: impl Fn(&[String]) -> Result<String, FunctionError> + Send + Sync + 'static) -> Self {
        self.restarted_with_events(move |event| script(&numbers(event)))
    }

    /// Like `restarted`, with a script that gets the whole event.
    fn restarted_with_events(
        &self,
        script: impl Fn(&Value) -> Result<String, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        let (origin, sent) = (self.observer.origin, Arc::clone(&self.sent));
        let function = Scripted { takes: Duration::ZERO, script: Box::new(script), origin, sent };
        Self { function: Arc::new(function), ..self.clone() }
    }

    /// The wall clock. It starts one second after a whole minute, so new creation times do not look rounded to the
    /// minute.
    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_001) + self.observer.origin.elapsed()
    }

    pub(crate) fn insert(&self, shard: &str, n_records: usize) {
        self.stream.insert(shard, n_records, self.now());
    }

    /// Writes one record for each of these items.
    fn touch<'a>(&self, shard: &str, items: impl IntoIterator<Item = &'a str>) {
        items.into_iter().for_each(|item| self.stream.touch(shard, item, self.now()));
    }

    pub(crate) fn start(&self) -> Running {
        Running::over(self.wiring())
    }

    pub(crate) fn wiring(&self) -> Wiring {
        let origin = self.observer.origin;
        let clock = Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_001) + origin.elapsed());
        Wiring {
            mapping: self.mapping.clone(),
            api: self.stream.clone(),
            function: self.function.clone(),
            checkpoints: self.checkpoints.clone(),
            destination: self.destination.clone(),
            observer: self.observer.clone(),
            clock,
        }
    }

    /// Waits until all records that are in the stream now have been delivered.
    pub(crate) async fn delivered(&self) {
        let now = Instant::now().into_std();
        // One millisecond later, so that a read that begins at this very instant does not count as a later one.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut delivered = self.observer.delivered.subscribe();
        delivered.wait_for(|until| until.is_some_and(|until| until > now)).await.unwrap();
    }

    /// Whether all records that were in the stream at `ms` were reported as delivered.
    fn is_delivered_until(&self, ms: u64) -> bool {
        let time = (self.observer.origin + Duration::from_millis(ms)).into_std();
        self.observer.delivered.borrow().is_some_and(|until| until >= time)
    }

    /// Delivers everything and stops.
    pub(crate) async fn run(&self) {
        self.finish(self.start()).await;
    }

    async fn run_for_ms(&self, ms: u64) {
        let running = self.start();
        pass_ms(ms).await;
        running.stop().await.unwrap();
    }

    /// Delivers everything and stops a running mapping.
    pub(crate) async fn finish(&self, running: Running) {
        self.delivered().await;
        running.stop().await.unwrap();
    }

    /// Checks the notifications to the observer.
    fn observes(&self, expected: &Expect) {
        expected.assert_eq(&self.observed());
    }

    /// The notifications to the observer, one per line.
    fn observed(&self) -> String {
        self.observer.lines.lock().unwrap().concat()
    }

    pub(crate) fn counted(&self) -> EventCount {
        self.observer.counts.of("aggregate")
    }

    /// The events so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub(crate) async fn position(&self, shard: &str) -> Option<Position> {
        self.checkpoints.load("aggregate", shard).await.unwrap()
    }
}

impl Running {
    /// Starts a mapping with these parts.
    pub(crate) fn over(wiring: Wiring) -> Self {
        let mapping = EventSourceMapping::over(wiring);
        let (stop, stopped) = watch::channel(false);
        Self { stop, task: tokio::spawn(mapping.run(stopped)) }
    }

    /// Stops and waits for the end.
    pub(crate) async fn stop(self) -> Result<(), StreamError> {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }

    /// Aborts all work, as the end of the process does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Waits until the mapping ends by itself.
    pub(crate) async fn end(self) -> Result<(), StreamError> {
        self.task.await.unwrap()
    }
}

/// Waits in virtual time.
async fn pass_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[expect(clippy::unnecessary_wraps, reason = "it is a script, and a script may fail")]
pub(crate) fn succeed(_: &[String]) -> Result<String, FunctionError> {
    Ok("null".to_owned())
}

/// A response that reports these sequence numbers.
pub(crate) fn report(failed: &[&str]) -> String {
    let items: Vec<_> = failed.iter().map(|id| serde_json::json!({ "itemIdentifier": id })).collect();
    serde_json::json!({ "batchItemFailures": items }).to_string()
}

pub(crate) fn unhandled() -> Result<String, FunctionError> {
    Err(FunctionError::Unhandled { message: "boom".to_owned() })
}

struct Scripted {
    takes: Duration,
    script: Script,
    origin: Instant,
    sent: Arc<Mutex<Vec<Sent>>>,
}

/// The items of an event, one per record.
pub(crate) fn items(event: &Value) -> Vec<String> {
    let item = |record: &Value| record["dynamodb"]["Keys"]["id"]["S"].as_str().unwrap().to_owned();
    event["Records"].as_array().unwrap().iter().map(item).collect()
}

/// The sequence numbers of an event, one per record.
pub(crate) fn numbers(event: &Value) -> Vec<String> {
    let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
    event["Records"].as_array().unwrap().iter().map(number).collect()
}

impl LambdaFunction for Scripted {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        async move {
            let event: Value = serde_json::from_str(&event).unwrap();
            let at_ms = self.origin.elapsed().as_millis();
            self.sent.lock().unwrap().push(Sent { at_ms, event: event.clone() });
            if !self.takes.is_zero() {
                tokio::time::sleep(self.takes).await;
            }
            (self.script)(&event)
        }
        .boxed()
    }
}

/// Failure records in memory. Refuses the next puts on request.
#[derive(Default)]
pub(crate) struct MemoryDestination {
    n_refusals: Mutex<usize>,
    records: Mutex<Vec<(String, String)>>,
}

impl MemoryDestination {
    pub(crate) fn refuse(&self, n_times: usize) {
        *self.n_refusals.lock().unwrap() = n_times;
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.records.lock().unwrap().iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect()
    }
}

impl Destination for MemoryDestination {
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>> {
        async move {
            let mut n_refusals = self.n_refusals.lock().unwrap();
            if *n_refusals > 0 {
                *n_refusals -= 1;
                return Err(io::Error::other("the disk is full"));
            }
            self.records.lock().unwrap().push((key, body));
            Ok(())
        }
        .boxed()
    }
}

/// Records each notification as a line.
struct RecordingObserver {
    origin: Instant,
    lines: Mutex<Vec<String>>,
    delivered: watch::Sender<Option<std::time::Instant>>,
    counts: MappingCounts,
}

impl RecordingObserver {
    fn line(&self, line: &str) {
        let ms = self.origin.elapsed().as_millis();
        self.lines.lock().unwrap().push(format!("{ms} ms: {line}\n"));
    }
}

impl Observer for RecordingObserver {
    fn invoked(&self, report: &Invocation) {
        let Invocation { shard, n_records, attempt, .. } = report;
        let outcome = match &report.outcome {
            InvocationOutcome::Success => "done".to_owned(),
            InvocationOutcome::Partial { lowest } => format!("failed from {lowest} on"),
            InvocationOutcome::Failed { message } => format!("failed: {message}"),
        };
        self.line(&format!("{shard}, {n_records} records, attempt {attempt}: {outcome}"));
        self.counts.invoked(report);
    }

    fn delivered(&self, mapping: &str, until: std::time::Instant) {
        assert_eq!(mapping, "aggregate");
        self.delivered.send_replace(Some(until));
    }

    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: Option<&str>) {
        assert!(key.is_none_or(|key| key.starts_with("aws/lambda/")));
        let kept = if key.is_none() { " and not kept" } else { "" };
        self.line(&format!("{shard}, {n_records} records discarded{kept}"));
        self.counts.discarded(mapping, shard, n_records, key);
    }

    fn polled(&self, mapping: &str, n_records: usize) {
        self.counts.polled(mapping, n_records);
    }

    fn filtered_out(&self, mapping: &str, records: &[&str]) {
        self.line(&format!("{} records filtered out", records.len()));
        self.counts.filtered_out(mapping, records);
    }

    fn dropped_equal(&self, _mapping: &str, n: usize) {
        self.line(&format!("{n} equal records dropped"));
    }

    fn trouble(&self, _mapping: &str, message: &str) {
        self.line(&format!("trouble: {message}"));
    }
}

// ---- Each fact on the documentation page names a test that exists ----

const PAGE: &str = include_str!("../../README.md");

/// The test names between backticks in a row of a table.
fn named(row: &str) -> Vec<&str> {
    row.split('`').skip(1).step_by(2).filter(|text| is_test_name(text)).collect()
}

/// Test names are sentences of at least three words. No other code on the page looks like that.
fn is_test_name(text: &str) -> bool {
    let is_name = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name && text.split('_').count() > 2
}

/// Collects the names of all tests of this crate.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            let name = pair[1].trim_start_matches("async ").strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            if let Some(name) = name.filter(|_| pair[0] == "#[test]" || pair[0].starts_with("#[tokio::test")) {
                found.insert(name.to_owned());
            }
        }
    }
}

#[test]
fn every_fact_on_the_page_has_its_test() {
    let mut tests = BTreeSet::new();
    tests_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut tests);
    let mut n_rows = 0;
    let facts = PAGE.split_once("\n## Facts\n").unwrap().1.split_once("\n## Not emulated\n").unwrap().0;
    for row in facts.lines().filter(|line| line.starts_with("| ")) {
        if row.starts_with("| fact |") || row.starts_with("| open |") {
            continue;
        }
        let named = named(row);
        assert!(!named.is_empty(), "no test: {row}");
        for name in named {
            assert!(tests.contains(name), "there is no test {name}: {row}");
        }
        n_rows += 1;
    }
    assert!(n_rows > 80, "{n_rows} facts");
}
