//! A deployment that adds derivations and changes some, function by function, and is taken back now and then.
//!
//! Instances of both versions are at work side by side, and an operator fills what is new beside all of them. What is
//! marked as filled is right from then on.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use derive::{
    catalogue::Catalogue,
    declaration::{count::Count, link::Link, predicate::Predicate},
    derivation::Derivation,
    family::Family,
};
use engine::{
    backoff::describe,
    clock::Clock as _,
    registry::{
        Hold,
        difference::{CatalogueDifference, DerivationState, differences},
        edit::begin,
        publishing::read,
        watch::RegistryWatch,
    },
};

use crate::{
    actors::platform::Answer, chance::Chance, executor::now, failure::Failure, respond::function, scene::Scene,
    world::World,
};

/// Of a hundred runs, in how many there is such a deployment.
const ROLLOUT_PERCENT: usize = 15;

/// How often an instance looks at the registry, in milliseconds, in one run or another.
const LOOKS_MS: [u64; 2] = [60_000, 600_000];

/// How long an instance runs on at most when its time to look has come, and how far its clock may be off, in milliseconds.
const RUNS_ON_MS: u64 = 300_000;
const MARGIN_MS: u64 = 60_000;

/// Of a hundred deployments, how many are in calm runs: there nothing fails and nothing is corrupt, so nothing is parked,
/// and what was filled is marked so.
const CALM_PERCENT: usize = 50;

/// Stages: instances of the old version alone, of both, and of the new alone.
const OLD: usize = 0;
const BOTH: usize = 1;
const NEW: usize = 2;

/// Of a hundred changes of the stage, how many go back.
const BACK_PERCENT: usize = 25;

/// What the old version lacks, or has otherwise.
static VERSIONS: LazyLock<Vec<Arc<Catalogue>>> = LazyLock::new(|| {
    let versions = [
        version(&["like-count", "like-count-display", "comment-author"], false),
        version(&["comment-count", "comment-count-display"], true),
        version(&["following-count", "following-count-display", "post-author", "follower-count-display"], false),
    ];
    versions.into_iter().map(Arc::new).collect()
});

/// The shipped catalogue without these, and with a count that counts more.
fn version(lacks: &[&str], counts_every_post: bool) -> Catalogue {
    let mut derivations = catalogue::derivations();
    derivations.retain(|derivation| !lacks.contains(&derivation.name.as_str()));
    if counts_every_post {
        let at = derivations.iter().position(|derivation| derivation.name == "post-count").unwrap();
        derivations[at] = Derivation::new("D-05", "post-count", every_post());
    }
    Catalogue::new(&catalogue::schema(), derivations).unwrap()
}

/// Posts of any status, where the shipped one counts those that are published.
fn every_post() -> Count {
    Count {
        source: "Post".to_owned(),
        predicate: Predicate::Always,
        target: "User".to_owned(),
        link: Link::of(&[("UserId", "AuthorId")]),
        sum: None,
        n_shards: 1,
        history: false,
    }
}

/// The deployment of a run.
#[derive(Debug)]
pub(crate) struct Rollout {
    /// What the version before had; `None` where there was none.
    old: Option<Arc<Catalogue>>,
    stage: AtomicUsize,
    is_calm: bool,
    look_ms: u64,
    /// How the instances of a version and a function look.
    looking: [[RegistryWatch; 2]; 2],
}

impl Rollout {
    pub(crate) fn drawn(chance: &Chance) -> Self {
        let old = chance.percent(ROLLOUT_PERCENT).then(|| Arc::clone(chance.one_of(&VERSIONS).unwrap()));
        let stage = if old.is_some() { OLD } else { NEW };
        let (is_calm, look_ms) = (old.is_some() && chance.percent(CALM_PERCENT), *chance.one_of(&LOOKS_MS).unwrap());
        let hold = Hold { hold_ms: look_ms + RUNS_ON_MS, margin_ms: MARGIN_MS };
        let instance = |_| RegistryWatch::publishing(look_ms, hold);
        let looking = [[0, 0].map(instance), [0, 0].map(instance)];
        Self { old, stage: AtomicUsize::new(stage), is_calm, look_ms, looking }
    }

    /// Does nothing fail in this run?
    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// Is there a version before?
    pub(crate) fn is_one(&self) -> bool {
        self.old.is_some()
    }

    /// Is the instance that is invoked now of the old version?
    pub(crate) fn invokes_old(&self, scene: &Scene) -> bool {
        match self.stage.load(Ordering::Relaxed) {
            OLD => true,
            BOTH => scene.chance.percent(50),
            _ => false,
        }
    }

    /// Is an instance at work that has this derivation? A job that the new version left waits while there is none.
    pub(crate) fn has(&self, derivation: &str) -> bool {
        let old = self.old.as_ref().filter(|_| self.stage.load(Ordering::Relaxed) == OLD);
        old.is_none_or(|old| old.position(derivation).is_some())
    }

    /// What an instance of a version has, and how it looks.
    pub(crate) fn version(&self, scene: &Scene, is_old: bool, families: &[Family]) -> (Arc<Catalogue>, RegistryWatch) {
        let old = self.old.as_ref().filter(|_| is_old);
        let catalogue = old.map_or_else(|| scene.deployed.catalogue(scene), Arc::clone);
        let looking = &self.looking[usize::from(is_old)][usize::from(families.contains(&Family::Additive))];
        (catalogue, looking.clone())
    }

    /// The table is made with what is deployed first.
    pub(crate) fn begin(&self, scene: &Scene) {
        let catalogue = self.old.as_ref().unwrap_or(&scene.catalogue);
        now(begin(scene.database.memory(), &scene.schema, catalogue, scene.clock.now_ms())).unwrap();
    }

    fn set(&self, scene: &Scene, stage: usize) {
        self.stage.store(stage, Ordering::Relaxed);
        scene.trace.note(|| {
            format!("from now on instances are of {}", ["the old version", "both versions", "the new version"][stage])
        });
    }
}

impl World {
    /// The deployment goes on, or is taken back.
    pub(crate) fn roll_out(&mut self) -> bool {
        let rollout = &self.scene.rollout;
        let stage = rollout.stage.load(Ordering::Relaxed);
        let is_back = self.scene.chance.percent(BACK_PERCENT);
        let next = if is_back { stage.saturating_sub(1) } else { (stage + 1).min(NEW) };
        if !rollout.is_one() || next == stage {
            return false;
        }
        self.scene.count(if is_back { "rolled back" } else { "rolled out" });
        rollout.set(&self.scene, next);
        true
    }

    /// Time passes until what is registered is ready: what ran on then, the platform has ended, and what it sent has landed.
    pub(crate) fn wait_until_ready(&mut self) -> bool {
        let now_ms = self.scene.clock.now_ms();
        let ready_ms = differences_of(&self.scene).into_iter().filter_map(|it| match it.state {
            DerivationState::Young { ready_ms } => Some(ready_ms),
            _ => None,
        });
        let Some(ready_ms) = ready_ms.max().filter(|_| self.scene.rollout.is_one()) else { return false };
        self.end_old_instances();
        while self.land() {}
        self.scene.trace.note(|| "time passes until what is new is ready".to_owned());
        self.scene.count("waited until ready");
        self.scene.clock.advance(ready_ms.saturating_sub(now_ms) + 1);
        true
    }

    /// The new version is all there is, and has told so.
    pub(crate) fn roll_out_the_rest(&mut self) -> Result<(), Failure> {
        if !self.scene.rollout.is_one() {
            return Ok(());
        }
        let scene = Arc::clone(&self.scene);
        scene.heal();
        scene.rollout.set(&scene, NEW);
        for at in 0..self.mappings.len() {
            let (name, families, ledger) =
                (self.mappings[at].name, self.mappings[at].families.clone(), self.mappings[at].ledger);
            let caller = self.caller(name);
            let engine = function(&scene, &families, ledger, Arc::clone(&caller.store), false);
            let deadline_ms = caller.deadline_ms;
            scene.clock.advance(scene.rollout.look_ms);
            self.start(caller, None, async move {
                let told: Answer = engine.publish(deadline_ms).await.map(|_| None).map_err(|error| describe(&error));
                told
            });
        }
        self.settle()?;
        self.wait_until_ready();
        self.settle()
    }
}

/// What of the table is not in step with what is deployed at the end, by what is registered.
pub(crate) fn unfilled(scene: &Scene) -> BTreeSet<String> {
    let Some(old) = &scene.rollout.old else { return BTreeSet::new() };
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
