//! An operator, whose commands run beside the functions: replays of captured records, redrives of what is parked, and
//! jobs that are paused and resumed.

use std::sync::Arc;

use engine::{
    batch::Engine,
    batch::replay::Origin,
    jobs::{JobOrder, Obeyed},
    ledger::LedgerKind,
    park::redrive::{Redriven, parked},
    record::event::Lane,
    registry::publishing::RegistryError,
};
use functions::handler::response;
use store::Store;

use crate::{
    engines::{engine, engine_with},
    platform::{corruption::put_true, event, stream::Stream},
    scene::{Scene, rollout::Rollout},
    stored::{self, jobs},
    world::{BOTH, TASKS_MAX, World},
};

/// Of a hundred commands, how many are run with the manifest of another version.
const WRONG_PERCENT: usize = 10;

/// Most records of a replay.
const RECORDS_MAX: usize = 60;

/// A captured part of the stream with its origin; `None` while the stream is empty.
///
/// Under receipts its records come from any shards. Under watermarks they come from one, which the operator names.
pub(crate) fn captured(scene: &Arc<Scene>, stream: &Stream, ledger: LedgerKind) -> Option<(String, Origin)> {
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

pub(crate) async fn redrive<S: Store>(
    scene: Arc<Scene>,
    engine: Engine<S>,
    store: S,
    deadline_ms: u64,
) -> Result<(), String> {
    for change in parked(&store).await.map_err(|error| error.to_string())? {
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
    for parked in stored::parked(scene) {
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
        let caller = self.caller("operator");
        let engine = engine(&self.scene, &BOTH, ledger, Arc::clone(&caller.store));
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
        let engine = engine_with(&self.scene, catalogue, &BOTH, ledger, Arc::clone(&caller.store));
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
        if self.tasks.len() >= TASKS_MAX || stored::parked(&self.scene).is_empty() {
            return false;
        }
        if self.is_manifest_wrong() {
            return true;
        }
        if self.scene.rollout.reads(false) {
            put_true_records(&self.scene, &self.stream);
        }
        let caller = self.caller("operator");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        let deadline_ms = caller.deadline_ms;
        let redrive = redrive(Arc::clone(&self.scene), engine, Arc::clone(&caller.store), deadline_ms);
        self.start(caller, None, async move { redrive.await.map(|()| None) });
        true
    }

    /// The operator pauses a job, or resumes a paused one; false when there is none.
    pub(crate) fn order(&mut self, order: JobOrder) -> bool {
        let mut jobs = jobs(&self.scene);
        jobs.retain(|job| job.is_paused == (order == JobOrder::Resume));
        let Some(job) = self.scene.chance.one_of(&jobs).filter(|_| self.tasks.len() < TASKS_MAX) else { return false };
        let (job, caller) = (job.clone(), self.caller("operator"));
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
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
