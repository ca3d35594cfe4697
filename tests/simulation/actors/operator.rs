//! An operator, whose commands run beside the functions: replays of captured records, redrives of what is parked, and
//! jobs that are paused and resumed.
//!
//! # Rollout
//!
//! A deployment that adds derivations and changes some, function by function, and is taken back now and then.
//!
//! Instances of both versions run side by side, and an operator fills what is new meanwhile. What is marked as filled
//! is right from then on.

use std::{collections::BTreeSet, sync::Arc};

use engine::{
    batch::Engine,
    clock::Clock as _,
    jobs::{JobOrder, Obeyed},
    ledger::LedgerKind,
    park::parked,
    publishing::{RegistryError, read},
    record::Lane,
    redrive::{Origin, Redriven},
    registry::difference::{CatalogueDifference, DerivationState, differences},
};
use functions::handler::response;
use store::Store;

use crate::{
    caller::now,
    deployed::{self, engine, jobs},
    platform::{event, put_true, stream::Stream},
    scene::{Rollout, Scene, Stage},
    world::{TASKS_MAX, World},
};

/// Of a hundred commands, how many are run with the manifest of another version.
const WRONG_PERCENT: usize = 10;

const RECORDS_MAX: usize = 60;

/// A captured part of the stream with its origin; `None` while the stream is empty.
///
/// Under receipts its records come from any shards. Under watermarks they come from one, which the operator names.
fn captured(scene: &Arc<Scene>, stream: &Stream, ledger: LedgerKind) -> Option<(String, Origin)> {
    let all: Vec<usize> = (0..stream.records.len()).collect();
    let (mut records, lane) = match ledger {
        LedgerKind::Receipts => (all, Lane::default()),
        LedgerKind::Watermarks => {
            let shard = scene.chance.one_of(&stream.shards)?;
            (shard.records.clone(), Lane::clone(&shard.lane))
        }
    };
    // Nobody has what is lost.
    records.retain(|at| !stream.lost.has_id(&stream.records[*at].id));
    if records.is_empty() {
        return None;
    }
    let start = scene.chance.below(records.len());
    let end = (start + scene.chance.between(1, RECORDS_MAX)).min(records.len());
    scene.count("replayed");
    scene.trace.note(|| {
        let names: Vec<String> = records[start..end].iter().map(|at| format!("e{:x}", at + 1)).collect();
        format!("operator replays {}", names.join(" "))
    });
    let event = event(stream, records[start..end].iter().copied(), None, false);
    // A watermark does not show whether a record that was given up was applied, so nothing of it is applied.
    let was_given_up = scene.chance.percent(30);
    scene.count_all("given up", usize::from(was_given_up));
    Some((event, Origin { lane, was_given_up }))
}

pub(crate) async fn redrive<S: Store>(scene: Arc<Scene>, engine: Engine<S>, deadline_ms: u64) -> Result<(), String> {
    for change in parked(engine.store()).await.map_err(|error| error.to_string())? {
        engine.publish(deadline_ms).await.map_err(|error| error.to_string())?;
        let redriven = engine.redrive(&change, deadline_ms).await.map_err(|error| error.to_string())?;
        scene.trace.note(|| {
            // What an account holds has no order that is the same in each run.
            let ends = match &redriven {
                Redriven::Applied(_) => "applied",
                Redriven::Gone => "gone",
                Redriven::Still { cause } => cause,
            };
            format!("operator redrives {} for {}: {ends}", change.id, change.family)
        });
        if matches!(redriven, Redriven::Applied(_)) {
            scene.count("redriven");
        }
    }
    Ok(())
}

/// From now on no item is deadly and every record decodes: the true records replace the corrupt ones that are parked.
pub(crate) fn mend(scene: &Scene, stream: &mut Stream) {
    scene.mend();
    put_true_records(scene, stream);
    stream.mend();
}

/// What is parked is what this release reads: the true records.
fn put_true_records(scene: &Scene, stream: &Stream) {
    let records = stream.true_records();
    for parked in deployed::parked(scene) {
        if let Some(json) = records.get(&parked.id) {
            scene.trace.note(|| format!("operator mends {}", parked.key));
            put_true(scene.database.memory(), &parked.key, json);
        }
    }
}

impl World {
    /// The operator replays a captured window.
    pub(crate) fn replay(&mut self) -> bool {
        let ledger = self.mappings[0].ledger;
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let Some((event, origin)) = captured(&self.scene, &self.stream, ledger) else { return false };
        if self.is_manifest_wrong() {
            return true;
        }
        let (caller, engine) = self.command("operator");
        let deadline_ms = caller.deadline_ms;
        self.start(caller, None, async move {
            engine.publish(deadline_ms).await.map_err(|error| error.to_string())?;
            let handled = engine.replay(&event, &origin, deadline_ms).await.map_err(|error| error.to_string())?;
            Ok(Some((response(&handled), handled)))
        });
        true
    }

    /// Sometimes the operator has the manifest of another version. A command compares it with the registry before each change
    /// that it hands over, and refuses.
    fn is_manifest_wrong(&mut self) -> bool {
        if self.scene.drawn.is_some()
            || self.scene.rollout.is_any()
            || self.scene.is_healed()
            || !self.scene.chance.percent(WRONG_PERCENT)
        {
            return false;
        }
        let caller = self.caller("wrong operator");
        let (catalogue, ledger) = (Rollout::some_version(&self.scene.chance), self.mappings[0].ledger);
        let engine = engine(&self.scene, &catalogue, ledger, Arc::clone(&caller.store));
        let (scene, deadline_ms) = (Arc::clone(&self.scene), caller.deadline_ms);
        self.start(caller, None, async move {
            match engine.publish(deadline_ms).await {
                Ok(_) => panic!("a command goes on with another catalogue than the functions have"),
                Err(RegistryError::Differs { .. }) => scene.count("wrong manifests"),
                Err(RegistryError::Store(_)) => {}
            }
            Ok(None)
        });
        true
    }

    /// The operator redrives all that is parked.
    pub(crate) fn redrive(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX || deployed::parked(&self.scene).is_empty() {
            return false;
        }
        if self.is_manifest_wrong() {
            return true;
        }
        if self.scene.rollout.reads(false) {
            put_true_records(&self.scene, &self.stream);
        }
        let (caller, engine) = self.command("operator");
        let deadline_ms = caller.deadline_ms;
        let redrive = redrive(Arc::clone(&self.scene), engine, deadline_ms);
        self.start(caller, None, async move { redrive.await.map(|()| None) });
        true
    }

    /// The operator pauses a job, or resumes a paused one; false when there is none.
    pub(crate) fn order(&mut self, order: JobOrder) -> bool {
        let mut jobs = jobs(&self.scene);
        jobs.retain(|job| job.is_paused == (order == JobOrder::Resume));
        let Some(job) = self.scene.chance.one_of(&jobs).filter(|_| self.tasks.len() < TASKS_MAX) else { return false };
        let job = job.clone();
        let (caller, engine) = self.command("operator");
        let (scene, deadline_ms) = (Arc::clone(&self.scene), caller.deadline_ms);
        self.start(caller, None, async move {
            let obeyed = engine.order(&job, order, deadline_ms).await.map_err(|error| error.to_string())?;
            scene.trace.note(|| format!("the operator's {order:?} of {}: {obeyed:?}", job.key));
            if matches!(obeyed, Obeyed::Done(_)) {
                scene.count(if order == JobOrder::Pause { "jobs paused" } else { "jobs resumed" });
            }
            Ok(None)
        });
        true
    }
}

// ---- rollout ----

/// Of a hundred changes of the stage, how many go back.
const BACK_PERCENT: usize = 25;

impl World {
    /// The deployment goes on, or is taken back.
    pub(crate) fn roll_out(&mut self) -> bool {
        let rollout = &self.scene.rollout;
        let stage = rollout.stage();
        let is_back = self.scene.chance.percent(BACK_PERCENT);
        let next = if is_back { stage.previous() } else { stage.next() };
        if !rollout.is_any() || next == stage {
            return false;
        }
        self.scene.count(if is_back { "rolled back" } else { "rolled out" });
        enter(&self.scene, next);
        true
    }

    /// Time passes until what is registered is ready. By then the old instances have ended, and their calls have landed.
    pub(crate) fn wait_until_ready(&mut self) -> bool {
        let now_ms = self.scene.clock.now_ms();
        let ready_ms = differences_of(&self.scene).into_iter().filter_map(|it| match it.state {
            DerivationState::Young { ready_ms } => Some(ready_ms),
            _ => None,
        });
        let Some(ready_ms) = ready_ms.max().filter(|_| self.scene.rollout.is_any()) else { return false };
        self.end_old_instances();
        while self.land() {}
        self.scene.trace.note(|| "time passes until what is new is ready".to_owned());
        self.scene.count("waited until ready");
        // It must be past by the clock of whoever asks then, which may be behind.
        let behind_ms = u64::try_from(self.scene.clocks_off_ms).unwrap();
        self.scene.clock.advance(ready_ms.saturating_sub(now_ms) + behind_ms + 1);
        true
    }
}

/// From now on these versions have instances.
pub(crate) fn enter(scene: &Scene, stage: Stage) {
    scene.rollout.set(stage);
    scene.trace.note(|| {
        let versions = match stage {
            Stage::Old => "the old version",
            Stage::Both => "both versions",
            Stage::New => "the new version",
        };
        format!("from now on instances are of {versions}")
    });
}

/// Derivations of the new version that the registry does not show as in step with the table.
pub(crate) fn unfilled(scene: &Scene) -> BTreeSet<String> {
    let Some(old) = scene.rollout.old() else { return BTreeSet::new() };
    let is_same = |it: &CatalogueDifference| {
        let position = old.position(&it.name).and_then(|at| old.derivation(at));
        position.is_some_and(|derivation| derive::definition::definition(derivation, &scene.schema) == it.definition)
    };
    let open = differences_of(scene)
        .into_iter()
        .filter(|it| !matches!(it.state, DerivationState::InStep { .. }) && !is_same(it));
    open.map(|it| it.name).collect()
}

fn differences_of(scene: &Scene) -> Vec<CatalogueDifference> {
    let registry = now(read(scene.database.memory())).unwrap();
    differences(&scene.schema, &scene.catalogue, &registry, scene.clock.now_ms())
}
