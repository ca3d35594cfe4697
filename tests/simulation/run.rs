//! One whole run: the scheduler acts until all is quiet, then the end is checked.

use std::collections::BTreeMap;

use derive::{clock, write::Table};
use keys::{item::Item, job::JobKey, key::Key};

use crate::{
    actors::{losses::expire_ledger, operator},
    checks::{RINGS_MAX, audit, parked_are, rings_are_few},
    platform::{mapping::Mapping, stream::Author},
    stored::{notes, parked},
    trace::Failure,
    world::{BOTH, World},
};

/// How often all that is parked is redriven.
const REDRIVES_MAX: usize = 20;

/// How long an operator waits before the next redrive, in milliseconds.
const EXCEPTION_WAIT_MS: u64 = 32 * 60 * 1000;

/// Most days that the clock jumps at the end of a run: more than the ledger is kept.
const JUMP_DAYS_MAX: usize = 20;

impl World {
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        self.run_until_quiet()?;
        self.keys_are_vacated()?;
        self.converges()?;
        self.scene.chance.step();
        self.nothing_has_drifted()?;
        if self.scene.chance.percent(50) && self.age() > 1 {
            self.nothing_has_drifted()?;
        }
        // A jump leaves days behind that windows had.
        if !notes(&self.scene).is_empty() {
            self.settle()?;
            if self.scene.is_lossy {
                self.faults_are_mended()?;
            }
            self.nothing_has_drifted()?;
        }
        let before = self.derived_and_ground();
        let n_records = self.stream.records.len();
        if self.scene.chance.percent(30) {
            self.scene.trace.note(|| "everything is delivered once more".to_owned());
            self.mappings.iter_mut().for_each(Mapping::rewind);
        }
        self.replay();
        self.settle()?;
        // Another hour has come, and windows have moved.
        let is_later = self.derived_and_ground().get(&clock::key()) != before.get(&clock::key());
        if is_later && self.scene.is_lossy {
            self.faults_are_mended()?;
        }
        if !is_later {
            self.replay_changed_nothing(n_records, &before)?;
        }
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)?;
        rings_are_few(&self.scene, &self.stream.made, RINGS_MAX)?;
        self.drifts_are_found()
    }

    /// A replayed fan-out may need a job. Nothing else may be written.
    fn replay_changed_nothing(&self, n_records: usize, before: &BTreeMap<Key, Item>) -> Result<(), Failure> {
        let mut records = self.stream.records[n_records..].iter();
        if let Some(first) = records.find(|record| JobKey::parse(&record.key).is_none()) {
            return Err(Failure::new("replay", format!("a replay made a record of {}", first.key)));
        }
        if self.derived_and_ground() != *before {
            return Err(Failure::new("replay", "a replay changed the table"));
        }
        Ok(())
    }

    /// Runs until everything is written, handled, repaired and right.
    pub(crate) fn run_until_quiet(&mut self) -> Result<(), Failure> {
        self.settle()?;
        parked_are(&self.scene, &self.stream, &self.stream.corrupt(), &BOTH, &self.n_deaths)?;
        operator::mend(&self.scene, &mut self.stream);
        self.stream.take(Author::Service);
        self.application.reduce();
        self.stream.take(Author::Application);
        self.settle()?;
        self.roll_out_the_rest()?;
        self.redrive_all()?;
        self.scene.heal();
        self.faults_are_mended()?;
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)
    }

    /// The application's items leave the keys of derived items, which are then there.
    fn keys_are_vacated(&mut self) -> Result<(), Failure> {
        self.stream.take(Author::Service);
        self.application.remove_foreign();
        self.stream.take(Author::Application);
        self.settle()?;
        // What waited for its key was not repaired, and its sources may have been named by lost records alone.
        if self.scene.is_lossy {
            self.faults_are_mended()?;
        }
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)
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
            // An exception of a stream shard is redriven when no older invocation can be at work.
            self.scene.clock.advance(EXCEPTION_WAIT_MS);
            self.redrive();
            self.redrive();
            self.settle()?;
        }
        Ok(())
    }

    /// Days pass, and expired items of the ledger are removed. Returns how many days.
    fn age(&mut self) -> usize {
        let days = self.scene.chance.between(1, JUMP_DAYS_MAX);
        self.scene.count("aged");
        self.scene.trace.note(|| format!("{days} days pass"));
        self.scene.clock.advance(days as u64 * 24 * 3600 * 1000);
        while self.scene.chance.percent(90) && expire_ledger(&self.scene) {}
        days
    }
}
