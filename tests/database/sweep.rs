//! The sweep of waiting jobs, by a clock that stands still but for what waits for it: the machine's speed plays no part.

#[path = "../../benches/sweep/jobs.rs"]
mod jobs;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use derive::family::Family;
use engine::{batch::Engine, clock::Clock, jobs::ground::sweep::Swept};
use futures::future::BoxFuture;
use jobs::Jobs;
use tokio::time::Instant;

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

/// The time at which it begins, in milliseconds since the epoch.
const BEGAN_MS: u64 = 1_705_315_200_000;

impl Clock for PausedClock {
    fn now_ms(&self) -> u64 {
        BEGAN_MS + u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
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
