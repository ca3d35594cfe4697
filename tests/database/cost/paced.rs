//! In simulated time: a run at Lambda's pace, which is the local event source mappings with the settings of the templates,
//! for items that arrive at random, against the invocations that `ripple cost` estimates; and a sweep of 200,000 waiting
//! jobs.

#[path = "../../../benches/sweep/jobs.rs"]
mod jobs;

use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodbstreams::{
    primitives::{Blob, DateTime},
    types::{AttributeValue as SdkValue, OperationType, Record, StreamRecord, StreamViewType},
};
use derive::{family::Family, write::Table};
use design::cost::{
    FanOutRate, Load, Prices,
    estimate::{MONTH_SECONDS, estimate},
    usage::usage,
};
use engine::{batch::Engine, clock::Clock, jobs::sweep::Swept, ledger::LedgerKind};
use functions::handler::response;
use futures::{FutureExt as _, future::BoxFuture};
use infra::mapping::{StreamTable, filters, mapping, needed};
use jobs::Jobs;
use keys::item::Item;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_dynamo::AttributeValue;
use store::memory::MemoryStore;
use stream::{
    checkpoint::MemoryCheckpoints,
    failure::FolderDestination,
    function::{FunctionError, LambdaFunction},
    poller::EventSourceMapping,
    progress::Observer,
    source::{ApiError, IteratorAt, ListedShard, RecordPage, ShardPage, Stream, StreamApi},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::cost::estimated::{N_SHARDS, close, declared, load, written};

const ARN: &str = "arn:aws:dynamodb:us-east-1:123456789012:table/ripple/stream/2026-11-28T00:00:00.000";

/// Time at the start, in seconds since the epoch: the start of a tumbling window.
const START_S: u64 = 1_700_000_040;

/// Time of an invocation.
const INVOCATION: Duration = Duration::from_millis(20);

/// Time between two sweeps.
const SWEEP: Duration = Duration::from_mins(15);

/// The simulated time of day.
#[derive(Clone, Copy)]
struct Paced(Instant);

impl Paced {
    fn time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(START_S) + self.0.elapsed()
    }
}

impl Clock for Paced {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.time().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        sleep(duration).boxed()
    }

    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()> {
        sleep(Duration::from_millis(at_ms.saturating_sub(self.now_ms()))).boxed()
    }

    fn chance(&self, _below: u64) -> u64 {
        0
    }
}

/// The stream of the model's table, in shards.
struct Shards {
    store: Arc<MemoryStore>,
    clock: Paced,
    records: Mutex<[Vec<Record>; N_SHARDS as usize]>,
}

impl Shards {
    /// Moves the model's new records to the shards of their partition keys.
    fn publish(&self) {
        let layout = catalogue::schema().layout;
        let mut shards = self.records.lock().unwrap();
        for (key, old, new) in self.store.take_records() {
            let number = 1 + shards.iter().map(Vec::len).sum::<usize>();
            let operation = match (&old, &new) {
                (None, _) => OperationType::Insert,
                (Some(_), Some(_)) => OperationType::Modify,
                (Some(_), None) => OperationType::Remove,
            };
            let change = StreamRecord::builder()
                .approximate_creation_date_time(DateTime::from_secs(DateTime::from(self.clock.time()).secs()))
                .sequence_number(format!("{number:021}"))
                .stream_view_type(StreamViewType::NewAndOldImages)
                .set_keys(Some(sdk(layout.key_item(&key))))
                .set_old_image(old.map(sdk))
                .set_new_image(new.map(sdk));
            let record = Record::builder().event_id(format!("{number:032x}")).event_name(operation);
            let shard = key.pk.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003);
            shards[shard % N_SHARDS as usize].push(record.dynamodb(change.build()).build());
        }
    }
}

fn sdk(item: Item) -> std::collections::HashMap<String, SdkValue> {
    item.into_iter().map(|(name, value)| (name, sdk_value(value))).collect()
}

fn sdk_value(value: AttributeValue) -> SdkValue {
    match value {
        AttributeValue::S(text) => SdkValue::S(text),
        AttributeValue::N(number) => SdkValue::N(number),
        AttributeValue::Bool(value) => SdkValue::Bool(value),
        AttributeValue::Null(value) => SdkValue::Null(value),
        AttributeValue::M(map) => SdkValue::M(map.into_iter().map(|(name, value)| (name, sdk_value(value))).collect()),
        AttributeValue::L(list) => SdkValue::L(list.into_iter().map(sdk_value).collect()),
        AttributeValue::Ss(texts) => SdkValue::Ss(texts),
        AttributeValue::Ns(numbers) => SdkValue::Ns(numbers),
        AttributeValue::B(bytes) => SdkValue::B(Blob::new(bytes)),
        AttributeValue::Bs(all) => SdkValue::Bs(all.into_iter().map(Blob::new).collect()),
    }
}

impl StreamApi for Shards {
    fn shards<'a>(&'a self, _after: Option<&'a str>) -> BoxFuture<'a, Result<ShardPage, ApiError>> {
        let shards = (0..N_SHARDS).map(|shard| ListedShard { id: format!("shardId-{shard:020}"), parent: None });
        let page = ShardPage { shards: shards.collect(), last_evaluated: None };
        async { Ok(page) }.boxed()
    }

    fn iterator<'a>(&'a self, shard: &'a str, at: &'a IteratorAt) -> BoxFuture<'a, Result<String, ApiError>> {
        assert_eq!(*at, IteratorAt::TrimHorizon);
        async move { Ok(format!("{shard}/0")) }.boxed()
    }

    fn records<'a>(&'a self, iterator: &'a str, limit: usize) -> BoxFuture<'a, Result<RecordPage, ApiError>> {
        let (id, from) = iterator.split_once('/').unwrap();
        let from: usize = from.parse().unwrap();
        let shard: usize = id.trim_start_matches("shardId-").parse().unwrap();
        let records: Arc<[Record]> =
            self.records.lock().unwrap()[shard].iter().skip(from).take(limit).cloned().collect();
        let next = Some(format!("{id}/{}", from + records.len()));
        async { Ok(RecordPage::new(Instant::now(), records, next)) }.boxed()
    }
}

/// What happened, one after the other.
#[derive(Default)]
struct Steps(Mutex<Vec<(u64, Step)>>);

impl Steps {
    fn note(&self, clock: Paced, step: Step) {
        self.0.lock().unwrap().push((clock.now_ms(), step));
    }
}

/// What happened at a time.
pub(super) enum Step {
    /// The application put an item.
    Put(Item),
    /// The function of this family handled an event.
    Handled(Family, String),
}

/// A function that notes its invocations.
struct Noting {
    engine: Engine<Arc<MemoryStore>>,
    family: Family,
    clock: Paced,
    stream: Arc<Shards>,
    steps: Arc<Steps>,
}

impl LambdaFunction for Noting {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        async move {
            sleep(INVOCATION).await;
            self.steps.note(self.clock, Step::Handled(self.family, event.clone()));
            let handled = self.engine.handle(&event, self.clock.now_ms() + 60_000).await.unwrap();
            assert!(handled.failed_from.is_none());
            self.stream.publish();
            Ok(response(&handled).to_string())
        }
        .boxed()
    }
}

/// The function's event source mapping, with the settings and filters of the template.
fn deployed(function: &Arc<Noting>, ledger: LedgerKind) -> EventSourceMapping {
    let (schema, family, clock) = (catalogue::schema(), function.family, function.clock);
    let table = StreamTable::all(&schema).next().unwrap();
    let filters = filters(&needed(table, &catalogue::catalogue(&schema).unwrap(), &[family])).unwrap();
    let source = EventSourceMapping::new(
        mapping(&family.to_string(), ARN, &[family], ledger, filters),
        &Stream::over(Arc::clone(&function.stream) as Arc<dyn StreamApi>),
        Arc::clone(function) as Arc<dyn LambdaFunction>,
        Arc::new(MemoryCheckpoints::default()),
        Arc::new(FolderDestination::new("/nowhere")),
        Arc::new(Silent),
    );
    source.with_clock(move || clock.time())
}

/// Observes nothing.
struct Silent;

impl Observer for Silent {}

/// A run: what happened, with the time in milliseconds since the epoch.
pub(super) struct PacedRun {
    pub(super) steps: Vec<(u64, Step)>,
    /// The time that counts: the load's, without its first seconds, in which nothing follows from earlier items yet.
    pub(super) counted: Range<u64>,
}

impl PacedRun {
    fn count(&self, is_counted: impl Fn(&Step) -> bool) -> f64 {
        let steps = self.steps.iter().filter(|(at_ms, step)| self.counted.contains(at_ms) && is_counted(step));
        f64::from(u32::try_from(steps.count()).unwrap())
    }

    /// Items that the application put.
    pub(super) fn n_items(&self) -> f64 {
        self.count(|step| matches!(step, Step::Put(_)))
    }

    /// Invocations of a function with records, and those at the ends of windows.
    fn n_invocations(&self, wanted: Family) -> [f64; 2] {
        [false, true].map(|is_end| {
            self.count(|step| match step {
                Step::Handled(family, event) => *family == wanted && event.starts_with(r#"{"Records":[]"#) == is_end,
                Step::Put(_) => false,
            })
        })
    }
}

/// Time before the load, in which the functions handle what was there before, and time of the load that does not count.
/// All times of a run are whole tumbling windows.
const BEFORE: [Duration; 2] = [Duration::from_mins(1); 2];

/// Runs the service for so long, with so many items a second.
pub(super) async fn paced(ledger: LedgerKind, rate: f64, length: Duration) -> PacedRun {
    let (schema, clock) = (Arc::new(catalogue::schema()), Paced(Instant::now()));
    let catalogue = Arc::new(catalogue::catalogue(&schema).unwrap());
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    let shards = Arc::new(Shards { store: Arc::clone(&store), clock, records: Mutex::default() });
    let steps = Arc::new(Steps::default());
    let (stop, stopped) = watch::channel(false);
    let started = [Family::Additive, Family::LevelTriggered].map(|family| {
        let (catalogue, store) = (Arc::clone(&catalogue), Arc::clone(&store));
        let engine = Engine::new(Arc::clone(&schema), catalogue, vec![family], store, Arc::new(clock));
        let (engine, stream, steps) = (engine.with_ledger(ledger), Arc::clone(&shards), Arc::clone(&steps));
        let function = Arc::new(Noting { engine, family, clock, stream, steps });
        (tokio::spawn(deployed(&function, ledger).run(stopped.clone())), function)
    });
    let put = |item: Item| {
        steps.note(clock, Step::Put(item.clone()));
        store.put_raw(Table::Main, item).unwrap();
        shards.publish();
    };
    let start = clock.0 + BEFORE[0];
    let applied = async {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small positive number")]
        let n_items_max = (rate * length.as_secs_f64() * 1.5).ceil() as usize;
        let (before, items) = written(n_items_max);
        before.into_iter().filter(|_| rate > 0.0).for_each(put);
        let (mut random, mut at) = (StdRng::seed_from_u64(1), Duration::ZERO);
        for item in items {
            at += Duration::from_secs_f64(-(1.0 - random.random::<f64>()).ln() / rate);
            if at >= length {
                break;
            }
            sleep_until(start + at).await;
            put(item);
        }
        assert!(rate == 0.0 || at >= length, "there are items until the end");
    };
    let [(counting, _), (showing, propagate)] = started;
    let swept = async {
        let mut at = SWEEP / 2;
        while at < length {
            sleep_until(start + at).await;
            propagate.engine.sweep_by_pulse(clock.now_ms() + 60_000).await.unwrap();
            shards.publish();
            at += SWEEP;
        }
    };
    futures::join!(applied, swept);
    sleep_until(start + length).await;
    stop.send_replace(true);
    for mapping in [counting, showing] {
        mapping.await.unwrap().unwrap();
    }
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
    let start_ms = START_S * 1_000 + ms(BEFORE[0]);
    let steps = std::mem::take(&mut *steps.0.lock().unwrap());
    PacedRun { steps, counted: start_ms + ms(BEFORE[1])..start_ms + ms(length) }
}

#[tokio::test(start_paused = true)]
async fn invocations_are_close_to_those_of_a_run_at_the_pace_of_lambda() {
    let design = declared();
    for ledger in [LedgerKind::Watermarks, LedgerKind::Receipts] {
        for (rate, minutes) in [(10.0, 4), (1.0, 20), (0.1, 120)] {
            let run = paced(ledger, rate, Duration::from_mins(minutes)).await;
            let used = usage(&design, &load(ledger, rate), &|_, _, _, _| 0).await.unwrap();
            let check = |what: &str, estimated: f64, counted: f64| {
                close(&format!("{ledger}, {rate} a second, {what}"), estimated / rate * run.n_items(), counted);
            };
            let [aggregate, ends] = run.n_invocations(Family::Additive);
            check("aggregate", used.invocations[&Family::Additive].n, aggregate);
            let [propagate, _] = run.n_invocations(Family::LevelTriggered);
            check("propagate", used.invocations[&Family::LevelTriggered].n, propagate);
            match ledger {
                LedgerKind::Watermarks => check("ends of windows", used.window_ends.n, ends),
                LedgerKind::Receipts => assert!(used.window_ends.n == 0.0 && ends == 0.0, "{ends}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_table_invokes_propagate_after_each_sweep_and_nothing_else() {
    let day = Duration::from_hours(24);
    let run = paced(LedgerKind::Watermarks, 0.0, day).await;
    assert_eq!([Family::Additive, Family::LevelTriggered].map(|it| run.n_invocations(it)), [[0.0, 0.0], [96.0, 0.0]]);
    // A load without new items.
    let fan_outs = [("comment-author".to_owned(), FanOutRate { rate: 1.0, n_items: 1 })];
    let load = Load { rates: [].into(), fan_outs: fan_outs.into(), ..load(LedgerKind::Watermarks, 1.0) };
    let bill = estimate(&declared(), &load, &Prices::default(), &|_, _, _, _| 1_000).await.unwrap();
    let lines = bill.lines.iter().filter(|line| line.unit == "invocations");
    let lines: Vec<(&str, f64)> =
        lines.map(|line| (line.what.as_str(), (line.amount * day.as_secs_f64() / MONTH_SECONDS).round())).collect();
    assert_eq!(lines, [("propagate, heartbeats", 96.0), ("sweep", 96.0)]);
}

// ---- The sweep of waiting jobs, by a clock that stands still but for what waits for it ----

/// The time at which a sweep begins, in milliseconds since the epoch.
const BEGAN_MS: u64 = 1_705_315_200_000;

/// How long a call takes.
const CALL: Duration = Duration::from_millis(5);

/// Jobs that are due, and all that there are.
const N_DUE: usize = 4_000;
const N_JOBS: usize = 200_000;

/// Jobs that a sweep lets begin in a second: 20,000 in 50 seconds.
const RATE: usize = 400;

/// The clock of the runtime, which goes on when everything waits.
struct PausedClock {
    began: Instant,
    chance: AtomicU64,
}

impl Clock for PausedClock {
    fn now_ms(&self) -> u64 {
        BEGAN_MS + u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        sleep(duration).boxed()
    }

    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()> {
        self.sleep(Duration::from_millis(at_ms.saturating_sub(self.now_ms())))
    }

    fn chance(&self, below: u64) -> u64 {
        self.chance.load(Ordering::Relaxed) % below.max(1)
    }
}

/// One sweep with so many milliseconds that begins at this partition, and how long it took.
async fn swept(limit_ms: u64, partition: u64) -> (Swept, u64, Arc<Jobs>) {
    let clock = Arc::new(PausedClock { began: Instant::now(), chance: AtomicU64::new(partition) });
    let schema = Arc::new(catalogue::schema());
    let table = Arc::new(Jobs::new(&schema, BEGAN_MS, (N_DUE, N_JOBS), CALL));
    let catalogue = Arc::new(catalogue::catalogue(&schema).unwrap());
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(schema, catalogue, families, Arc::clone(&table), clock.clone());
    let swept = engine.sweep(|_| true, BEGAN_MS + limit_ms).await.unwrap();
    (swept, clock.now_ms() - BEGAN_MS, table)
}

#[tokio::test(start_paused = true)]
async fn a_sweep_lets_20000_jobs_begin_in_50_seconds_of_calls_that_take_5_ms_and_asks_for_no_other_job() {
    let (swept, elapsed_ms, table) = swept(60_000, 0).await;
    assert_eq!((swept.n_begun, swept.n_due, swept.is_cut), (N_DUE, N_DUE, false));
    assert!(elapsed_ms * u64::try_from(RATE).unwrap() <= u64::try_from(N_DUE * 1_000).unwrap(), "{elapsed_ms} ms");
    // An entry later, the job, and the entry of now, beside the pages of 100 with their jobs and owners.
    let n_calls = table.n_calls.load(Ordering::Relaxed);
    assert!((3 * N_DUE..3 * N_DUE + 3 * N_DUE / 100 + 60).contains(&n_calls), "{n_calls} calls");
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_has_no_more_time_says_so_ends_in_time_and_begins_elsewhere_the_next_time() {
    let mut first = Vec::new();
    for partition in [0, 5] {
        let (swept, elapsed_ms, table) = swept(1_000, partition).await;
        assert!(swept.is_cut && (1..N_DUE).contains(&swept.n_begun), "{swept:?}");
        assert!(elapsed_ms <= 1_000, "{elapsed_ms} ms");
        first.extend(table.asked.lock().unwrap().first().cloned());
    }
    assert_eq!(first, ["DUE#00", "DUE#05"]);
}
