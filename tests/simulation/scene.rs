//! What everybody in a run shares: the tables, the clock, the choices, the deployed catalogues, the trace and the counts.

use std::{
    env,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use derive::{
    catalogue::Catalogue,
    declaration::{Count, Link},
    derivation::Derivation,
    family::Family,
    schema::Schema,
    write::Table,
};
use engine::{
    clock::Clock as _,
    limits::{BrakeLimits, SpreadLimits},
    protocol::ProtocolStep,
    publishing::begin,
    registry::{Hold, RegistryWatch},
};
use keys::{counter::CounterKey, key::Key};
use store::faulty::{Call, Database, Lagging, Side};
use support::clock::ManualClock;

use crate::{
    caller::{Denied, Permissions, now},
    chance::Chance,
    deployed::{self, SETTLE_MS},
    drawn::Drawn,
    items::{USERS, is_mirror, new_item},
    judge::judged,
    mutant::{Condition, Mutant},
    seeds::Config,
    trace::{Occurrences, Trace},
};

/// When a run begins, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

/// Bytes of a page: small, so that a search has several.
const PAGE_BYTES: usize = 400;

/// Of a hundred runs, in how many the functions brake, and how many have a deadly item.
const BRAKED_PERCENT: usize = 15;
const DEADLY_PERCENT: usize = 15;

/// Of a hundred runs, in how many the application makes items that are nearly as large as an item may be.
const LARGE_PERCENT: usize = 15;

/// Of a hundred runs, in how many records are lost.
const LOSSY_PERCENT: usize = 15;

/// How far the clock of an instance may be off in one run or another, in milliseconds.
const CLOCKS_OFF_MS: [usize; 2] = [0, 3_000];

/// The brake is off.
const UNBRAKED: BrakeLimits = BrakeLimits { unreadable_percent_max: 100, unreadable_hold_ms: 0, only_warns: false };

#[derive(Debug)]
pub(crate) struct Scene {
    /// The drawn manifest; `None` for the shipped table.
    pub(crate) drawn: Option<Arc<Drawn>>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// When counters spread: mostly so early that many do.
    pub(crate) spread: SpreadLimits,
    /// How long a counter is hot, in milliseconds.
    pub(crate) hot_for_ms: u64,
    pub(crate) rollout: Rollout,
    pub(crate) database: Arc<Database>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) denied: Denied,
    pub(crate) clock: ManualClock,
    pub(crate) chance: Chance,
    pub(crate) trace: Trace,
    pub(crate) config: Config,
    /// Of a thousand calls, how many go wrong.
    pub(crate) per_mille: usize,
    /// How far the clock of an instance may be off, in milliseconds.
    pub(crate) clocks_off_ms: usize,
    /// Do the functions brake while faults happen? Much of what this application writes cannot be read.
    pub(crate) is_braked: bool,
    /// Does the application make items that are nearly as large as an item may be?
    pub(crate) is_large: bool,
    pub(crate) is_lossy: bool,
    /// What the application does more of than everything else.
    pub(crate) theme: Theme,
    /// A caller that touches this item dies, until the operator mends it.
    deadly: Mutex<Option<Key>>,
    is_healed: AtomicBool,
    occurrences: Mutex<Occurrences>,
}

static SHIPPED: LazyLock<(Arc<Schema>, Arc<Catalogue>, Arc<Permissions>)> = LazyLock::new(|| {
    let schema = deployed::schema();
    let catalogue = deployed::catalogue(&schema);
    let permissions = Permissions::of(&schema);
    (Arc::new(schema), Arc::new(catalogue), Arc::new(permissions))
});

impl Scene {
    /// An empty table of the shipped schema.
    pub(crate) fn new(chance: Chance, config: Config, is_traced: bool) -> Arc<Self> {
        let (schema, catalogue, permissions) = &*SHIPPED;
        Self::of((schema, catalogue, permissions), None, chance, config, is_traced)
    }

    /// Empty tables of a drawn manifest.
    pub(crate) fn of_drawn(drawn: Drawn, chance: Chance, config: Config, is_traced: bool) -> Arc<Self> {
        let drawn = Arc::new(drawn);
        let permissions = Arc::new(Permissions::of(&drawn.schema));
        Self::of((&drawn.schema, &drawn.catalogue, &permissions), Some(&drawn), chance, config, is_traced)
    }

    fn of(
        (schema, catalogue, permissions): (&Arc<Schema>, &Arc<Catalogue>, &Arc<Permissions>),
        drawn: Option<&Arc<Drawn>>,
        chance: Chance,
        config: Config,
        is_traced: bool,
    ) -> Arc<Self> {
        let (layout, stale) =
            (schema.layout.clone(), config.mutant == Some(Mutant::Without(ProtocolStep::ConsistentRead)));
        let lagging = if stale { Lagging::Reads } else { Lagging::Indexes };
        let database = Database::lagging(layout, PAGE_BYTES, lagging).judged(judged);
        let per_mille = [0, 20, 60, 150][chance.below(4)];
        let (is_braked, theme) = (chance.percent(BRAKED_PERCENT), Theme::drawn(&chance));
        let spread = SpreadLimits {
            marks_max: *chance.one_of(&[1, 1, 2, 2, 3, 24]).unwrap_or(&1),
            n_satellites: *chance.one_of(&[1, 2, 5, 64]).unwrap_or(&1),
        };
        let clocks_off_ms = *chance.one_of(&CLOCKS_OFF_MS).unwrap_or(&0);
        // What is deployed is of the shipped table.
        let rollout = if drawn.is_some() { Rollout::none() } else { Rollout::drawn(&chance) };
        let per_mille = if rollout.is_calm() { 0 } else { per_mille };
        let is_large = chance.percent(LARGE_PERCENT) && !rollout.is_calm();
        let is_always_lossy = config.by_pulse || env::var("SIM_LOSSY").is_ok();
        let is_lossy = (chance.percent(LOSSY_PERCENT) || is_always_lossy) && !rollout.is_any();
        // What is lost of a history stays wrong, and so does all that a drawn derivation builds on it.
        let is_lossy = is_lossy && drawn.is_none_or(|drawn| !drawn.has_history());
        let is_deadly = chance.percent(DEADLY_PERCENT) && !rollout.is_calm();
        let deadly = is_deadly.then(|| match drawn {
            Some(drawn) => drawn.deadly_item(&chance),
            None => Some(deadly_item(&chance, (schema, catalogue))),
        });
        Arc::new(Self {
            drawn: drawn.cloned(),
            schema: Arc::clone(schema),
            catalogue: Arc::clone(catalogue),
            spread,
            // Only a counter that does not spread soon is displayed by the function that counts.
            hot_for_ms: match spread.marks_max {
                3 => 20,
                24 => 60_000,
                _ => 0,
            },
            rollout,
            database: Arc::new(database),
            permissions: Arc::clone(permissions),
            denied: Denied::default(),
            clock: ManualClock::at(BEGIN_MS),
            chance,
            trace: Trace::new(is_traced),
            config,
            per_mille,
            clocks_off_ms,
            is_braked,
            is_large,
            is_lossy,
            theme,
            deadly: Mutex::new(deadly.flatten()),
            is_healed: AtomicBool::new(false),
            occurrences: Mutex::default(),
        })
    }

    /// Does the platform lack this?
    pub(crate) fn lacks(&self, condition: Condition) -> bool {
        self.config.mutant == Some(Mutant::Platform(condition))
    }

    /// How long a cascade waits, in milliseconds: where pulses are the only proof, as long as on AWS, which is longer than a
    /// stream holds records.
    pub(crate) fn settle_ms(&self) -> u64 {
        if self.config.by_pulse { engine::batch::SETTLE_MS } else { SETTLE_MS }
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.is_healed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.is_healed.load(Ordering::Relaxed)
    }

    /// The limits of the functions' brake.
    pub(crate) fn limits(&self) -> BrakeLimits {
        if self.is_braked && !self.is_healed() { BrakeLimits::default() } else { UNBRAKED }
    }

    /// Makes the table, with the registry of what is deployed first.
    pub(crate) fn make_table(&self) {
        let catalogue = self.rollout.old().unwrap_or(&self.catalogue);
        now(begin(self.database.memory(), &self.schema, catalogue, self.clock.now_ms())).unwrap();
    }

    /// Does this call kill its caller?
    pub(crate) fn is_deadly(&self, call: &Call<'_>) -> bool {
        let deadly = self.deadly.lock().unwrap();
        deadly.as_ref().is_some_and(|deadly| match call {
            Call::Get(Table::Main, keys) => keys.contains(deadly),
            Call::Write(write) => write.key == *deadly,
            Call::Transact(transaction) => transaction.writes().iter().any(|write| write.key == *deadly),
            Call::Get(..) | Call::Query(..) | Call::Scan(_) => false,
        })
    }

    /// From now on no item is deadly.
    pub(crate) fn mend(&self) {
        self.deadly.lock().unwrap().take();
    }

    /// Counts a fault of a call.
    pub(crate) fn count_call(&self, fault: &'static str, side: Side) {
        self.occurrences.lock().unwrap().call(fault, side);
    }

    /// Counts something else that happened.
    pub(crate) fn count(&self, what: &'static str) {
        self.count_all(what, 1);
    }

    /// Counts so many of something.
    pub(crate) fn count_all(&self, what: &'static str, n: usize) {
        self.occurrences.lock().unwrap().other(what, n);
    }

    pub(crate) fn occurrences(&self) -> Occurrences {
        self.occurrences.lock().unwrap().clone()
    }
}

/// A user, one of its counters, a bucket, or a mirror.
fn deadly_item(chance: &Chance, (schema, catalogue): (&Schema, &Catalogue)) -> Key {
    let user = [("UserId", *chance.one_of(&USERS).unwrap())].into_iter().collect();
    let target = schema.entity("User").unwrap().build(&user).unwrap();
    match chance.below(4) {
        0 => target,
        2 => Key::new("SENSOR#s", "DAY#2024-01-15"),
        1 => CounterKey::home(target, "following-count").key().unwrap(),
        _ => schema.layout.key(&new_item(chance, (schema, catalogue), is_mirror)).unwrap(),
    }
}

// ---- theme ----

/// What many writes of an application are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Everything.
    Mixed,
    /// Users with many followers, who change their names again and again.
    Famous,
    /// Employees who change their managers, and whose items are edited meanwhile.
    Moves,
    /// Users and posts that are removed, while items that belong to them are written.
    Removals,
}

impl Theme {
    pub(crate) fn drawn(chance: &Chance) -> Self {
        match chance.below(10) {
            0 | 1 => Self::Famous,
            2 => Self::Moves,
            3 | 4 => Self::Removals,
            _ => Self::Mixed,
        }
    }
}

// ---- The deployment of a run: the version before it, and which versions have instances at work ----

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
    Old,
    Both,
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
        condition: derive::condition::Condition::Always,
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
