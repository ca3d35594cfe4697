//! A deployment that adds derivations and changes some, function by function, and is taken back now and then.
//!
//! Instances of both versions run side by side, and an operator fills what is new meanwhile. What is marked as filled
//! is right from then on.

use std::collections::BTreeSet;

use engine::{
    clock::Clock as _,
    registry::{
        difference::{CatalogueDifference, DerivationState, differences},
        publishing::read,
    },
};

use crate::{
    executor::now,
    scene::{Scene, rollout::Stage},
    world::World,
};

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
