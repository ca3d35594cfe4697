//! When no call fails and no index lags, everything comes in step by the records of the changes alone: no sweep has to help.

use derive::write::Table;
use engine::clock::Clock as _;
use keys::key::Key;
use operate::verify::definition::compare;

use crate::{
    checks::{
        converging::{CALM_RINGS_MAX, CONVERGED_MS_MAX, WriteCounts, rings_are_few},
        is_way_taken,
    },
    failure::Failure,
    platform::{mapping::Mapping, stream::Author},
    stored::jobs,
    world::World,
};

/// Changes of names that many items hold, and steps between two of them at most.
const RENAMES: usize = 16;
const STEPS_BETWEEN_MAX: usize = 60;

/// Steps until the run counts as endless.
const STEPS_MAX: usize = 100_000;

impl World {
    /// The application changes names that many items hold, one during the fan-out of another, and all follows soon.
    pub(crate) fn converges(&mut self) -> Result<(), Failure> {
        let (n_made, begin_ms) = (self.stream.made.len(), self.scene.clock.now_ms());
        self.stream.writes = WriteCounts::default();
        for _ in 0..RENAMES {
            self.stream.take(Author::Service);
            self.application.change_a_name();
            self.stream.take(Author::Application);
            for _ in 0..self.scene.chance.below(STEPS_BETWEEN_MAX) {
                self.step_without_sweep()?;
            }
        }
        let mut n_steps = 0;
        while self.step_without_sweep()? {
            n_steps += 1;
            if n_steps > STEPS_MAX {
                return Err(Failure::new("endless", format!("after {STEPS_MAX} steps the names have not followed")));
            }
        }
        if let Some(job) = jobs(&self.scene).iter().find(|job| job.is_running && !job.is_paused) {
            return Err(Failure::new("stall", format!("only a sweep would ring {}", job.key)));
        }
        let items = self.scene.database.memory().snapshot(Table::Main);
        let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
        let verified = compare(&self.scene.schema, &self.scene.catalogue, &items);
        let is_wrong = |finding: &&operate::verify::Finding| {
            let key = Key::new(&finding.pk, &finding.sk);
            finding.flaw.is_none()
                && !is_way_taken(&self.scene, &items, &finding.derivation, &key)
                && !lost.has_bucket(finding)
                && !lost.builds_on_history(finding)
        };
        if let Some(finding) = verified.findings.iter().find(is_wrong) {
            return Err(Failure::new("stall", format!("without a sweep this stays: {finding:?}")));
        }
        let took_ms = self.scene.clock.now_ms() - begin_ms;
        if took_ms > CONVERGED_MS_MAX {
            return Err(Failure::new("slow", format!("the names followed after {took_ms} ms")));
        }
        let most = rings_are_few(&self.scene, &self.stream.made[n_made..], CALM_RINGS_MAX)?;
        self.scene.trace.note(|| format!("converged after {took_ms} ms, with at most {most} rings"));
        self.scene.count("converged");
        self.scene.count_all("converging jobs", usize::from(most > 0));
        self.settle()
    }

    /// Anything but the sweep acts; false when nothing is left to do.
    fn step_without_sweep(&mut self) -> Result<bool, Failure> {
        self.scene.clock.advance(1);
        self.scene.count("steps");
        self.scene.chance.step();
        while self.scene.database.n_behind() > 0 {
            self.scene.database.catch_up(0);
        }
        let step = self.pace.step(&self.scene.chance);
        let is_taken = self.take_step(step)? || self.take_plain_step()?;
        self.stream.take(Author::Service);
        self.stream.writes.are_few()?;
        if is_taken || (self.mappings.iter().all(Mapping::is_quiet) && self.stream.is_complete()) {
            return Ok(is_taken);
        }
        Err(Failure::new("stuck", "records wait, and no queue takes them"))
    }
}
