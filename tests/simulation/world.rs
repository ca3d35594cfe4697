//! One run: everybody who acts, and the scheduler that says who is next.
//!
//! Nothing happens between two steps of the scheduler. A step lets one task run to its next stop (each call of the
//! store has one before and one after), or lets one other thing happen.

use std::{collections::BTreeMap, sync::Arc};

use derive::{family::Family, write::Table};
use engine::ledger::LedgerKind;
use keys::{item::Item, job::JobKey, key::Key};

use crate::{
    actors::{
        application::{Application, theme::Theme},
        expiry::expire_ledger,
        operator,
        platform::{BOTH, Running},
        repairing::Planted,
        verifying::Verifying,
    },
    checks::audit::{audit, parked_are},
    corruption::{self, parked},
    failure::Failure,
    mapping::Mapping,
    pace::{Pace, Step},
    scene::Scene,
    stream::{Author, Stream},
};

/// Steps after the application's last write until nothing goes wrong any more, and until the run is taken for endless.
const STEPS_TO_HEAL: usize = 20_000;
const STEPS_MAX: usize = 200_000;

/// How often all that is parked is redriven.
const REDRIVES_MAX: usize = 20;

/// How far the clock jumps at the end of a run, in days: some of them past the time that the ledger is kept.
const JUMP_DAYS_MAX: usize = 20;

/// Everybody in a run.
pub(crate) struct World {
    pub(crate) scene: Arc<Scene>,
    pub(crate) stream: Stream,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) tasks: Vec<Running>,
    pub(crate) n_tasks: usize,
    application: Application,
    /// Writes that the application has left to do.
    n_writes: usize,
    pub(crate) pace: Pace,
    /// Since when an index has been behind.
    pub(crate) behind_since_ms: Option<u64>,
    /// For each event, how many invocations died that had it, or ran where others could take them for dead.
    pub(crate) n_deaths: BTreeMap<String, usize>,
    pub(crate) verifying: Verifying,
    pub(crate) planted: Planted,
}

impl World {
    /// Everybody, before anything happens.
    pub(crate) fn new(scene: &Arc<Scene>, ledger: LedgerKind) -> Self {
        let mut pace = Pace::new(&scene.chance, scene.rollout.is_one());
        // The brake looks at large batches.
        pace.functions_sleep |= scene.is_braked;
        // A removal that comes again starts nothing, when what hung on it is gone and other things have come.
        if scene.theme == Theme::Removals {
            for step in [Step::Replay, Step::SetBack] {
                pace.more_of(step, 5);
            }
        }
        scene.rollout.begin(scene);
        let is_combined = scene.chance.below(3) == 1;
        let mappings = if is_combined {
            vec![Mapping::new(scene, "combined", &BOTH, ledger)]
        } else {
            let aggregate = Mapping::new(scene, "aggregate", &[Family::Additive], ledger);
            let propagate = Mapping::new(scene, "propagate", &[Family::LevelTriggered], LedgerKind::Receipts);
            vec![aggregate, propagate]
        };
        Self {
            stream: Stream::new(scene),
            mappings,
            tasks: Vec::new(),
            n_tasks: 0,
            application: Application::new(scene),
            n_writes: pace.n_writes,
            pace,
            behind_since_ms: None,
            n_deaths: BTreeMap::new(),
            verifying: Verifying::default(),
            planted: Planted::default(),
            scene: Arc::clone(scene),
        }
    }

    /// The whole run.
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        self.settle()?;
        if corruption::IS_ON {
            parked_are(&self.scene, &self.stream.corrupt(), &BOTH, &self.n_deaths)?;
            operator::mend(&self.scene, &mut self.stream);
        }
        self.roll_out_the_rest()?;
        self.redrive_all()?;
        self.scene.heal();
        self.faults_are_mended()?;
        audit(&self.scene, &self.stream, &self.application, &self.n_deaths)?;
        self.scene.chance.step();
        self.nothing_has_drifted()?;
        if self.scene.chance.percent(50) {
            self.age();
        }
        let before = self.derived_and_ground();
        let n_records = self.stream.records.len();
        if self.scene.chance.percent(30) {
            self.scene.trace.note(|| "everything is delivered once more".to_owned());
            self.mappings.iter_mut().for_each(Mapping::rewind);
        }
        self.replay();
        self.settle()?;
        // A fan-out that is replayed may need a job; nothing else is written.
        if let Some(first) = self.stream.records[n_records..].iter().find(|record| JobKey::parse(&record.key).is_none())
        {
            return Err(Failure::new("replay", format!("a replay made a record of {}", first.key)));
        }
        if self.derived_and_ground() != before {
            return Err(Failure::new("replay", "a replay changed the table"));
        }
        audit(&self.scene, &self.stream, &self.application, &self.n_deaths)?;
        self.drifts_are_found()
    }

    /// The table without jobs.
    fn derived_and_ground(&self) -> BTreeMap<Key, Item> {
        let mut items = self.scene.database.memory().snapshot(Table::Main);
        items.retain(|key, _| JobKey::parse(key).is_none());
        items
    }

    /// The operator redrives until nothing is parked, two commands at once.
    fn redrive_all(&mut self) -> Result<(), Failure> {
        for n_rounds in 0..REDRIVES_MAX {
            if parked(&self.scene).is_empty() {
                return Ok(());
            }
            if n_rounds > REDRIVES_MAX / 2 {
                self.scene.heal();
            }
            self.redrive();
            self.redrive();
            self.settle()?;
        }
        Ok(())
    }

    /// Days pass, and what the ledger need not keep any longer is removed.
    fn age(&mut self) {
        let days = self.scene.chance.between(1, JUMP_DAYS_MAX);
        self.scene.count("aged");
        self.scene.trace.note(|| format!("{days} days pass"));
        self.scene.clock.advance(days as u64 * 24 * 3600 * 1000);
        while self.scene.chance.percent(90) && expire_ledger(&self.scene) {}
    }

    /// Steps until all is written, delivered and done.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let mut n_steps = 0;
        loop {
            self.scene.clock.advance(1);
            self.scene.count("steps");
            self.scene.chance.step();
            self.follow();
            let step = self.pace.step(&self.scene.chance);
            if !self.happens(step)? && !self.goes_on()? {
                return Ok(());
            }
            self.stream.take(Author::Service);
            self.follow_verifying()?;
            self.follow_repairs();
            n_steps += usize::from(self.is_written());
            // Past the end of the choices nothing goes wrong.
            if n_steps == STEPS_TO_HEAL || self.scene.chance.is_exhausted() {
                self.scene.heal();
            }
            if n_steps > STEPS_MAX {
                return Err(Failure::new("endless", format!("after {STEPS_MAX} steps the stream is not quiet")));
            }
        }
    }

    pub(crate) fn is_written(&self) -> bool {
        self.n_writes == 0 || self.scene.chance.is_exhausted()
    }

    /// The plainest thing that can be done; false when nothing is left to do.
    fn goes_on(&mut self) -> Result<bool, Failure> {
        // With nothing under way more is written before the next batch, or batches would hold a record or two.
        let wait = if self.scene.chance.below(5) == 0 { Step::Poll } else { Step::Write };
        for step in [Step::Poll, wait, Step::Deliver, Step::Arrive, Step::Write, Step::Land, Step::CatchUp] {
            if self.happens(step)? {
                return Ok(true);
            }
        }
        if self.mappings.iter().all(Mapping::is_quiet) && self.stream.is_complete() {
            return Ok(self.sweep_the_rest());
        }
        Err(Failure::new("stuck", "records wait, and no lane takes them"))
    }

    pub(crate) fn write(&mut self) -> bool {
        if self.is_written() {
            return false;
        }
        self.n_writes -= 1;
        self.scene.count("writes");
        self.stream.take(Author::Service);
        let author = self.application.write();
        self.stream.take(author);
        true
    }

    pub(crate) fn land(&mut self) -> bool {
        let n_late = self.scene.database.n_late();
        match self.scene.database.land(self.scene.chance.below(n_late)) {
            None => false,
            Some(landed) => {
                self.scene.trace.note(|| format!("late: {} : {}", landed.call, landed.how));
                true
            }
        }
    }
}
