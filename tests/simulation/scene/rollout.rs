//! The deployment of a run: the version before it, and which versions have instances at work.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
    family::Family,
};
use engine::registry::{Hold, RegistryWatch};
use keys::{counter::CounterKey, key::Key};

use crate::{chance::Chance, deployed};

/// Of a hundred runs, in how many there is such a deployment.
const ROLLOUT_PERCENT: usize = 15;

/// How often an instance looks at the registry, in milliseconds, in one run or another.
const LOOKS_MS: [u64; 2] = [60_000, 600_000];

/// How long an instance runs on at most when its time to look has come, and how far its clock may be off, in milliseconds.
const RUNS_ON_MS: u64 = 300_000;
const MARGIN_MS: u64 = 60_000;

/// Of a hundred deployments, how many are in calm runs: there nothing fails and nothing is corrupt. So nothing is parked,
/// and the operator can mark derivations as filled.
const CALM_PERCENT: usize = 50;

/// Of a hundred other deployments, in how many one version reads the records that are corrupt for the other one.
const READS_PERCENT: usize = 75;

/// Which versions have instances at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The old version alone.
    Old,
    Both,
    /// The new version alone.
    New,
}

const STAGES: [Stage; 3] = [Stage::Old, Stage::Both, Stage::New];

impl Stage {
    /// The stage after this one; the last stays.
    pub(crate) fn next(self) -> Self {
        STAGES[(self as usize + 1).min(STAGES.len() - 1)]
    }

    /// The stage before this one; the first stays.
    pub(crate) fn previous(self) -> Self {
        STAGES[(self as usize).saturating_sub(1)]
    }
}

/// Old versions, which lack derivations or have other ones.
static VERSIONS: LazyLock<Vec<Arc<Catalogue>>> = LazyLock::new(|| {
    let versions = [
        version(&["like-count", "like-count-display", "comment-author"], false),
        version(&["comment-count", "comment-count-display", "last-comment"], true),
        version(&["following-count", "following-count-display", "post-author", "follower-count-display"], false),
    ];
    versions.into_iter().map(Arc::new).collect()
});

/// The shipped catalogue without these, and with a count that counts more.
fn version(lacks: &[&str], counts_every_post: bool) -> Catalogue {
    let mut derivations = deployed::derivations();
    derivations.retain(|derivation| !lacks.contains(&derivation.name.as_str()));
    if counts_every_post {
        let at = derivations.iter().position(|derivation| derivation.name == "post-count").unwrap();
        derivations[at] = Derivation::new("D-05", "post-count", every_post());
    }
    Catalogue::new(&deployed::schema(), derivations).unwrap()
}

/// Counts posts of any status. The shipped count takes published ones only.
fn every_post() -> Count {
    Count {
        source: "Post".to_owned(),
        condition: Condition::Always,
        target: "User".to_owned(),
        link: Link::of(&[("UserId", "AuthorId")]),
        sum: None,
        history: false,
        expired_stays: false,
        each: None,
    }
}

fn watch(look_ms: u64) -> RegistryWatch {
    RegistryWatch::publishing(look_ms, Hold { hold_ms: look_ms + RUNS_ON_MS, margin_ms: MARGIN_MS })
}

/// The deployment of a run.
#[derive(Debug)]
pub(crate) struct Rollout {
    /// The catalogue of the version before; `None` where there was none.
    old: Option<Arc<Catalogue>>,
    /// A position in [`STAGES`].
    stage: AtomicUsize,
    is_calm: bool,
    /// Does the old version read corrupt records, and does the new one?
    reads: [bool; 2],
    look_ms: u64,
    /// How the instances of each version and function look at the registry.
    watches: [[RegistryWatch; 2]; 2],
}

impl Rollout {
    pub(crate) fn drawn(chance: &Chance) -> Self {
        let old = chance.percent(ROLLOUT_PERCENT).then(|| Arc::clone(chance.one_of(&VERSIONS).unwrap()));
        let stage = if old.is_some() { Stage::Old } else { Stage::New };
        let (is_calm, look_ms) = (old.is_some() && chance.percent(CALM_PERCENT), *chance.one_of(&LOOKS_MS).unwrap());
        let differ = old.is_some() && !is_calm && chance.percent(READS_PERCENT);
        let does_old = differ && chance.percent(50);
        let watches = [(); 2].map(|()| [(); 2].map(|()| watch(look_ms)));
        let reads = [does_old, differ && !does_old];
        Self { old, stage: AtomicUsize::new(stage as usize), is_calm, reads, look_ms, watches }
    }

    /// A rollout with one version. The instances of all its functions read the registry in the same way.
    pub(crate) fn none() -> Self {
        let look_ms = LOOKS_MS[0];
        let watches = [(); 2].map(|()| [(); 2].map(|()| watch(look_ms)));
        let stage = AtomicUsize::new(Stage::New as usize);
        Self { old: None, stage, is_calm: false, reads: [false; 2], look_ms, watches }
    }

    /// Does nothing fail in this run?
    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// Does this run deploy a new version?
    pub(crate) fn is_any(&self) -> bool {
        self.old.is_some()
    }

    /// Does this version read the records that are corrupt for the other one?
    pub(crate) fn reads(&self, is_old: bool) -> bool {
        self.reads[usize::from(!is_old)]
    }

    /// Does one version park what the other one reads?
    pub(crate) fn reads_differ(&self) -> bool {
        self.reads != [false; 2]
    }

    pub(crate) fn old(&self) -> Option<&Arc<Catalogue>> {
        self.old.as_ref()
    }

    /// Is this a counter that the version before does not have? A deployment that is taken back drops it.
    pub(crate) fn may_drop(&self, key: &Key) -> bool {
        let counter = CounterKey::parse(key);
        counter.zip(self.old()).is_some_and(|(counter, old)| old.position(&counter.derivation).is_none())
    }

    /// The catalogue of some other version, as a careless operator has it.
    pub(crate) fn some_version(chance: &Chance) -> Arc<Catalogue> {
        Arc::clone(chance.one_of(&VERSIONS).unwrap())
    }

    /// How often an instance looks at the registry, in milliseconds.
    pub(crate) fn look_ms(&self) -> u64 {
        self.look_ms
    }

    pub(crate) fn stage(&self) -> Stage {
        STAGES[self.stage.load(Ordering::Relaxed)]
    }

    /// From now on these versions have instances.
    pub(crate) fn set(&self, stage: Stage) {
        self.stage.store(stage as usize, Ordering::Relaxed);
    }

    /// Is the instance that is invoked now of the old version?
    pub(crate) fn invokes_old(&self, chance: &Chance) -> bool {
        match self.stage() {
            Stage::Old => true,
            Stage::Both => chance.percent(50),
            Stage::New => false,
        }
    }

    /// Is an instance at work that has this derivation? A job that the new version left waits while there is none.
    pub(crate) fn has(&self, derivation: &str) -> bool {
        let old = self.old.as_ref().filter(|_| self.stage() == Stage::Old);
        old.is_none_or(|old| old.position(derivation).is_some())
    }

    /// How an instance looks at the registry that shares nothing with the others of its function.
    pub(crate) fn own_watch(&self) -> RegistryWatch {
        watch(self.look_ms)
    }

    /// How the instances of this version of a function look at the registry.
    pub(crate) fn watch(&self, is_old: bool, families: &[Family]) -> RegistryWatch {
        self.watches[usize::from(is_old)][usize::from(families.contains(&Family::Additive))].clone()
    }
}
