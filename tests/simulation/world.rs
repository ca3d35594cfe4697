//! The state of one run beside the scene. It imports nobody who acts: the actors change it.

pub(crate) mod application;
pub(crate) mod following;
pub(crate) mod losses;
pub(crate) mod planted;
pub(crate) mod process;
pub(crate) mod tasks;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use derive::family::Family;
use engine::{ledger::LedgerKind, sweep::Slice};
use store::faulty::Faulty;

use crate::{
    caller::Caller,
    executor::{Gone, Task},
    pace::{self, Pace, Step},
    permissions::Role,
    platform::{mapping::Mapping, stream::Stream},
    scene::{Scene, theme::Theme},
    world::{
        application::Application,
        following::Verifying,
        losses::Losses,
        planted::Planted,
        process::Process,
        tasks::{Answer, BOTH, Delivery, NewCaller, Running},
    },
};

/// In one run of so many, a process handles several invocations at once.
const SHARED_ONE_IN: usize = 6;

pub(crate) struct World {
    pub(crate) scene: Arc<Scene>,
    pub(crate) stream: Stream,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) tasks: Vec<Running>,
    /// Does a process handle several invocations at once?
    pub(crate) shares_processes: bool,
    /// The processes that are shared.
    pub(crate) processes: Vec<Process>,
    pub(crate) n_tasks: usize,
    pub(crate) application: Application,
    /// Writes that the application still has to do.
    pub(crate) n_writes: usize,
    pub(crate) pace: Pace,
    /// The time since which an index lags.
    pub(crate) behind_since_ms: Option<u64>,
    /// For each event, how many invocations with it died, or ran on after others could assume so.
    pub(crate) n_deaths: BTreeMap<String, usize>,
    pub(crate) verifying: Verifying,
    pub(crate) planted: Planted,
    pub(crate) losses: Losses,
    /// Slices under way in the middle of the run, each with the first change that was not handled when it began.
    pub(crate) slices: Vec<(usize, Arc<Mutex<Option<Slice>>>)>,
}

impl World {
    /// The state before anything happens.
    pub(crate) fn new(scene: &Arc<Scene>, ledger: LedgerKind) -> Self {
        let mut pace = Pace::new(&scene.chance, scene.rollout.is_any(), scene.is_lossy);
        // The brake needs large batches.
        pace.functions_sleep |= scene.is_braked;
        // A repeated removal must start nothing after its cascade, when new items have come.
        if scene.theme == Theme::Removals {
            for step in [Step::Replay, Step::SetBack] {
                pace.more_of(step, 5);
            }
        }
        scene.make_table();
        // One draw, so that a run whose processes are not shared is as it was before any were.
        let drawn = scene.chance.below(3 * SHARED_ONE_IN);
        let (is_combined, shares_processes) = (drawn % 3 == 1, drawn / 3 == 1);
        let mappings = if is_combined {
            vec![Mapping::new(scene, "combined", &BOTH, ledger)]
        } else {
            let aggregate = Mapping::new(scene, "aggregate", &[Family::Additive], ledger);
            let propagate = Mapping::new(scene, "propagate", &[Family::LevelTriggered], LedgerKind::Receipts);
            vec![aggregate, propagate]
        };
        let mut world = Self {
            stream: Stream::new(scene),
            mappings,
            tasks: Vec::new(),
            shares_processes,
            processes: Vec::new(),
            n_tasks: 0,
            application: Application::new(scene),
            n_writes: pace.n_writes,
            pace,
            behind_since_ms: None,
            n_deaths: BTreeMap::new(),
            verifying: Verifying::default(),
            planted: Planted::default(),
            losses: Losses::default(),
            slices: Vec::new(),
            scene: Arc::clone(scene),
        };
        if scene.is_lossy {
            world.beat();
        }
        world
    }

    /// Has the application written everything?
    pub(crate) fn is_written(&self) -> bool {
        self.n_writes == 0 || self.scene.chance.is_exhausted()
    }

    pub(crate) fn caller(&mut self, name: &str) -> NewCaller {
        self.n_tasks += 1;
        let role = Role::of(name);
        let name: Arc<str> = format!("{name} #{}", self.n_tasks).into();
        let gone = Gone::default();
        let deadline_ms = pace::deadline_ms(&self.scene);
        let caller = Caller::new(&self.scene, &name, role, &gone, deadline_ms);
        let store = Arc::new(Faulty::new(&self.scene.database, caller));
        NewCaller { name, role, gone, store, deadline_ms, process: None, is_old: false }
    }

    /// Starts the task of a new caller.
    pub(crate) fn start(
        &mut self,
        NewCaller { name, gone, store, deadline_ms, process, is_old, .. }: NewCaller,
        delivery: Option<Delivery>,
        future: impl Future<Output = Answer> + 'static,
    ) {
        let task = Task::new(&gone, future);
        self.tasks.push(Running { task, name, store, delivery, gone, deadline_ms, process, is_old });
    }
}
