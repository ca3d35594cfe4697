//! The sweeper's slices: at any moment they verify a part of the table, and delete counters of zero.
//!
//! They write notes of what differs, and never fail. When all is quiet, nothing differs.

use std::sync::{Arc, Mutex};

use engine::{
    clock::Clock as _,
    sweep::{Bounds, Slice},
};

use crate::{
    engines::engine,
    world::{
        World,
        tasks::{BOTH, TASKS_MAX},
    },
};

/// Most items of a slice: few, so that a round has several.
const ITEMS_MAX: usize = 60;

/// How long an item differs before it has drifted, in milliseconds: little, so that it may while the run goes on.
const DRIFT_WAIT_MS: u64 = 2_000;

impl World {
    pub(crate) fn sweep_slice(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let n_items_max = self.scene.chance.between(1, ITEMS_MAX);
        self.begin_slice(n_items_max, DRIFT_WAIT_MS);
        true
    }

    /// Starts a slice. Its result is in the returned cell once it has ended.
    pub(crate) fn begin_slice(&mut self, n_items_max: usize, wait_ms: u64) -> Arc<Mutex<Option<Slice>>> {
        let caller = self.caller("slice");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        let bounds = Bounds { n_items_max, deadline_ms: caller.deadline_ms };
        let (scene, found) = (Arc::clone(&self.scene), Arc::new(Mutex::new(None)));
        let result = Arc::clone(&found);
        self.start(caller, None, async move {
            let is_past = |noted_at_ms: u64| scene.clock.now_ms().saturating_sub(noted_at_ms) >= wait_ms;
            let slice = engine.sweep_slice(bounds, is_past).await;
            let slice = slice.unwrap_or_else(|error| panic!("a slice fails: {error}"));
            scene.trace.note(|| format!("the sweeper: {slice:?}"));
            scene.count("slices");
            scene.count_all("suspects", slice.n_suspects);
            *result.lock().unwrap() = Some(slice);
            Ok(None)
        });
        found
    }
}
