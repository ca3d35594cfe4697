//! The sweeper's slices: at any moment they verify a part of the table, and delete counters of zero.
//!
//! They write notes of what differs, and never fail. When all is quiet, nothing differs. What they tell as drifted in the
//! middle of a run is so.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use engine::{
    clock::Clock as _,
    count::Target,
    record::key_of,
    sweep::{Bounds, Slice},
};
use keys::{counter::CounterKey, key::Key};

use crate::{
    engines::engine,
    failure::Failure,
    platform::{Concerned, stream::StreamRecord},
    stored::parked,
    world::{BOTH, TASKS_MAX, World},
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
        let first_undone = self.first_undone();
        let found = self.begin_slice(n_items_max, DRIFT_WAIT_MS);
        self.slices.push((first_undone, found));
        true
    }

    /// The position of the first change that some function has not handled.
    fn first_undone(&self) -> usize {
        let undone = self.mappings.iter().map(|mapping| mapping.first_undone(&self.stream)).min();
        undone.unwrap_or(0).min(self.stream.first_on_its_way())
    }

    /// An item that a slice reports as drifted is wrong, and nothing under way corrects it: somebody wrote it by hand, or a
    /// change was lost. A change that was not handled when the slice began may have made the same difference again.
    pub(crate) fn follow_slices(&mut self) -> Result<(), Failure> {
        let mut ended = Vec::new();
        self.slices.retain(|(first_undone, found)| match found.lock().unwrap().take() {
            Some(slice) => {
                ended.push((*first_undone, slice));
                false
            }
            None => Arc::strong_count(found) > 1,
        });
        for (first_undone, slice) in ended {
            if slice.drifts.is_empty() || self.scene.rollout.is_any() {
                continue;
            }
            let undone = self.stream.made[first_undone..].iter().map(|made| (made, &BOTH[..]));
            let undone = Concerned::by(&self.scene, undone);
            let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
            let hidden = self.hidden();
            for drift in &slice.drifts {
                if self.is_planted_in(&drift.item) || lost.explains_drift(drift) || hidden.explains_drift(drift) {
                    self.scene.count("drifts told");
                } else if undone.explains_drift(drift) {
                    self.scene.count("drifts overtaken");
                } else {
                    return Err(Failure::new("drift", format!("told in the middle of a run, and not so: {drift:?}")));
                }
            }
        }
        Ok(())
    }

    /// What the parked changes without a readable key concern. For a day nothing that they concern is reported.
    pub(crate) fn hidden(&self) -> Concerned {
        let parked: BTreeSet<String> = parked(&self.scene).into_iter().map(|parked| parked.id).collect();
        let is_hidden = |record: &&StreamRecord| {
            parked.contains(&record.id) && key_of(&self.scene.schema.layout, &record.json).is_none()
        };
        let made = self.stream.records.iter().filter(is_hidden).map(|record| &self.stream.made[record.made]);
        Concerned::by(&self.scene, made.map(|made| (made, &BOTH[..])))
    }

    /// Did somebody make the count of this counter wrong by hand?
    fn is_planted_in(&self, key: &Key) -> bool {
        let target = CounterKey::parse(key).map(|it| Target { derivation: it.derivation, item: it.target });
        target.is_some_and(|target| self.planted.ever.contains(&target))
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
