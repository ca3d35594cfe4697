//! How many due jobs one sweep lets begin, beside a million that wait.
//!
//! `cargo bench -p benches --bench sweep`. The table has 1,000,000 cascades that wait for another day, and 20,000 that
//! are due. Each call takes 5 ms. The memory of the process is that of the sweep, since the table is made as it is
//! asked for. The bar is 20,000 requests in 50 seconds and in 100 MB.

mod jobs;

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use catalogue::{catalogue, schema};
use derive::family::Family;
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
};
use jobs::Jobs;

/// Cascades that are due, and all that there are.
const N_DUE: usize = 20_000;
const N_JOBS: usize = 1_020_000;

/// How long a call takes.
const CALL: Duration = Duration::from_millis(5);

/// How long a sweep may take, in milliseconds.
const SWEEP_MS: u64 = 50_000;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(sweep());
}

async fn sweep() {
    let schema = Arc::new(schema());
    let table = Arc::new(Jobs::new(&schema, SystemClock.now_ms(), (N_DUE, N_JOBS), CALL));
    let catalogue = Arc::new(catalogue(&schema).expect("the shipped catalogue"));
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(schema, catalogue, families, Arc::clone(&table), Arc::new(SystemClock));
    let began = Instant::now();
    let swept = engine.sweep(|_| true, SystemClock.now_ms() + SWEEP_MS).await.expect("a sweep");
    let elapsed = began.elapsed();
    println!(
        "{} of {N_DUE} due jobs begun in {:.1} s, beside {} that wait; {} calls of {CALL:?}; at most {} MB",
        swept.n_begun,
        elapsed.as_secs_f64(),
        N_JOBS - N_DUE,
        table.n_calls.load(Ordering::Relaxed),
        most_memory_mb()
    );
    assert_eq!((swept.n_begun, swept.is_cut), (N_DUE, false));
}

/// Most memory of this process, in megabytes.
fn most_memory_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or_default() / 1_024
}
