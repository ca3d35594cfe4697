//! The sweeper of a service on a laptop: starts jobs after the mappings have handled everything written before them.
//!
//! In Lambda the position in every shard is unknown, so a cascade waits for longer than the stream keeps records. Here
//! the progress is known: a job may start when every mapping has found the stream empty after the sweeper first saw the
//! job.
//!
//! Every few seconds, the sweeper also checks a slice of the table for drift, and deletes counters of zero. An item
//! that differs has drifted if the stream has been quiet since the item was noted. Nothing waits for a slice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    job::Job,
    sweep::Bounds,
};
use keys::key::Key;
use store::dynamo::DynamoStore;
use tokio::sync::watch;

use super::Witness;
use crate::service::Watch;

/// Time between two sweeps.
const PAUSE: Duration = Duration::from_millis(500);

/// Time limit of a sweep of the jobs, in milliseconds.
const SWEEP_MS: u64 = 10_000;

/// Time between two slices, the number of items in a slice, and its time limit, which also applies to repeated
/// searches.
const SLICE_PAUSE: Duration = Duration::from_secs(5);
const SLICE_ITEMS: usize = 500;
const SLICE_MS: u64 = 5_000;

pub(super) struct Sweeper {
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
    pub(super) fn new(engine: Engine<Arc<DynamoStore>>, progress: Arc<Watch>, witness: Arc<dyn Witness>) -> Self {
        let (seen, drifted) = (BTreeMap::new(), BTreeSet::new());
        Self { engine, progress, witness, seen, sliced: Instant::now(), drifted }
    }

    /// Sweeps until it is stopped.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
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
