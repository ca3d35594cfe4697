//! The sweeper's slices: verified again at any moment beside everybody else, with counters of zero collected.
//!
//! They write notes and delete counters of zero, and never fail. When all is quiet, none finds anything that differs.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use derive::{collection::CollectionCount, write::Table};
use engine::{
    clock::Clock as _,
    sweep::{Bounds, Slice},
};
use keys::{counter::CounterKey, item::Item, key::Key, value::whole_number};

use crate::{
    actors::platform::{BOTH, TASKS_MAX},
    corruption::parked,
    failure::Failure,
    respond::engine,
    world::World,
};

/// Most items of a slice: few, so that a round has several.
const ITEMS_MAX: usize = 60;

/// How long an item differs before it has drifted, in milliseconds: little, so that it may while the run goes on.
const DRIFT_WAIT_MS: u64 = 2_000;

/// Runs that verify the whole table at the end. The first goes on where one stopped, and the others go round.
const RUNS: usize = 3;

impl World {
    /// A slice.
    pub(crate) fn sweep_slice(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let n_items_max = self.scene.chance.between(1, ITEMS_MAX);
        self.slice(n_items_max, DRIFT_WAIT_MS);
        true
    }

    /// When all is quiet, the whole table is verified again: nothing differs, and no counter of zero is left.
    pub(crate) fn nothing_has_drifted(&mut self) -> Result<(), Failure> {
        for _ in 0..RUNS {
            let found = self.slice(usize::MAX, 0);
            self.settle()?;
            let slice = found.lock().unwrap().take();
            let slice = slice.ok_or_else(|| Failure::new("slice", "it did not end"))?;
            if slice.n_suspects > 0 || !slice.drifts.is_empty() || slice.round_ms.is_none() {
                return Err(Failure::new("drift", format!("all is quiet, and the sweep tells {slice:?}")));
            }
        }
        let memory = self.scene.database.memory();
        let is_left = |items: &derive::derived::Items| {
            items
                .iter()
                .find(|(key, item)| CounterKey::parse(key).is_some() && is_zero(item))
                .map(|(key, _)| key.clone())
        };
        if let Some(key) = memory.view(Table::Main, is_left) {
            return Err(Failure::new("zero", format!("{key} counts nothing, and was not collected")));
        }
        let noted = memory.view(Table::Ledger, |items| items.keys().find(|key| key.pk == "SUSPECTS").cloned());
        match noted {
            Some(key) => Err(Failure::new("drift", format!("nothing differs, and {key} is noted"))),
            None => Ok(()),
        }
    }

    /// What is wrong by the definition is told, as far as a slice compares it: the second round knows.
    pub(crate) fn drifts_are_told(&mut self, wanted: &BTreeSet<(String, Key)>) -> Result<(), Failure> {
        let mut told = BTreeSet::new();
        for _ in 0..2 {
            let found = self.slice(usize::MAX, 0);
            self.settle()?;
            let slice = found.lock().unwrap().take().unwrap_or_default();
            told.extend(slice.drifts.into_iter().map(|drift| drift.item));
        }
        let catalogue = self.scene.deployed.catalogue(&self.scene);
        let counts = CollectionCount::all(&self.scene.schema, &catalogue);
        let items = self.scene.database.memory().snapshot(Table::Main);
        let is_parked = parked(&self.scene).iter().any(|parked| parked.key.pk == "PARKED#level-triggered");
        let is_missed = |(derivation, key): &&(String, Key)| {
            let count = counts.iter().find(|it| catalogue.name(it.count) == derivation);
            let (Some(count), Some(counter)) = (count, CounterKey::parse(key)) else { return false };
            // What is parked to the end may be a mirror, for which its count waits.
            if is_parked && count.mirror.is_some() {
                return false;
            }
            let mut collection = items.keys().filter(|key| key.pk == counter.target.pk);
            let is_sure = count.is_sure(&counter.target) && collection.all(|key| count.is_sure(key));
            is_sure && !told.contains(&CounterKey { shard: 0, ..counter }.key().unwrap())
        };
        let missed = wanted.iter().find(is_missed);
        self.scene.count_all("drifts told", told.len());
        missed.map_or(Ok(()), |missed| Err(Failure::new("drift", format!("the sweep does not tell {missed:?}"))))
    }

    /// Begins a slice; what it found stands in the answer when it has ended.
    fn slice(&mut self, n_items_max: usize, wait_ms: u64) -> Arc<Mutex<Option<Slice>>> {
        let caller = self.caller("slice");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        let bounds = Bounds { n_items_max, deadline_ms: caller.deadline_ms };
        let (scene, found) = (Arc::clone(&self.scene), Arc::new(Mutex::new(None)));
        let told = Arc::clone(&found);
        self.start(caller, None, async move {
            let is_past = |noted_at_ms: u64| scene.clock.now_ms().saturating_sub(noted_at_ms) >= wait_ms;
            let slice = engine.sweep_slice(bounds, is_past).await;
            let slice = slice.unwrap_or_else(|error| panic!("a slice fails: {error}"));
            scene.trace.note(|| format!("the sweeper: {slice:?}"));
            scene.count("slices");
            scene.count_all("suspects", slice.n_suspects);
            *told.lock().unwrap() = Some(slice);
            Ok(None)
        });
        found
    }
}

/// Does this counter count nothing?
pub(crate) fn is_zero(counter: &Item) -> bool {
    ["Value", "Sum"].iter().all(|name| counter.get(name).is_none_or(|value| whole_number(value) == Some(0)))
}
