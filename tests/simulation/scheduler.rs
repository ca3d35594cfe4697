//! The scheduler: it chooses who is next, until nothing is left to do.
//!
//! Nothing happens between two steps of the scheduler. A step lets one task run to its next stop (each call of the
//! store has one before and one after), or lets one other thing happen.

use std::sync::Arc;

use engine::jobs::JobOrder;

use crate::{
    actors::losses::expire_ground,
    pace::Step,
    platform::{mapping::Mapping, stream::Author},
    trace::Failure,
    world::World,
};

/// Shards of a run, closed ones included.
const SHARDS_MAX: usize = 12;

/// Steps in which the application writes nothing until faults end, and until the run counts as endless.
const STEPS_TO_HEAL: usize = 20_000;
const STEPS_MAX: usize = 200_000;

impl World {
    /// Takes steps until everything is written, delivered and handled.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let mut n_steps = 0;
        loop {
            self.scene.clock.advance(1);
            self.scene.count("steps");
            self.scene.chance.step();
            self.limit_index_lag();
            let step = self.pace.step(&self.scene.chance);
            if !self.take_step(step)? && !self.take_plainest_step()? {
                return Ok(());
            }
            self.stream.take(Author::Service);
            self.stream.writes.are_few()?;
            self.follow_verifying()?;
            self.follow_repairs();
            self.follow_losses();
            self.follow_slices()?;
            // While something has stopped the application waits for the others to be done.
            n_steps += usize::from(self.is_written() || self.losses.stopped.is_some());
            // Past the end of the choices nothing goes wrong.
            if n_steps == STEPS_TO_HEAL || self.scene.chance.is_exhausted() {
                self.scene.heal();
            }
            // An item at which each sweep dies, and of which no change is parked.
            if n_steps == STEPS_TO_HEAL {
                self.scene.mend();
            }
            if n_steps > STEPS_MAX {
                return Err(Failure::new("endless", format!("after {STEPS_MAX} steps the stream is not quiet")));
            }
        }
    }

    /// Takes the plainest step that is possible; false when nothing is left to do.
    fn take_plainest_step(&mut self) -> Result<bool, Failure> {
        if self.take_plain_step()? {
            return Ok(true);
        }
        if self.mappings.iter().all(Mapping::is_quiet) && self.stream.is_complete() {
            return Ok(self.lose() || self.sweep_the_rest()?);
        }
        Err(Failure::new("stuck", "records wait, and no queue takes them"))
    }

    /// The same without what only the passing of time brings.
    pub(crate) fn take_plain_step(&mut self) -> Result<bool, Failure> {
        // While no task runs, the application writes more before the next batch: else batches would be very small.
        let wait = if self.scene.chance.below(5) == 0 { Step::Poll } else { Step::Write };
        for step in [Step::Poll, wait, Step::Deliver, Step::Arrive, Step::Write, Step::Land, Step::CatchUp] {
            if self.take_step(step)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a step; false when it is not possible.
    pub(crate) fn take_step(&mut self, step: Step) -> Result<bool, Failure> {
        let scene = Arc::clone(&self.scene);
        Ok(match step {
            Step::Poll => return self.poll(),
            Step::Deliver => self.deliver(),
            Step::Arrive => (0..=scene.chance.below(6)).filter(|_| self.stream.arrive()).count() > 0,
            Step::Write => self.write(),
            Step::Land => self.land(),
            Step::CatchUp => self.catch_up(),
            _ if scene.is_healed() => false,
            Step::Split if self.losses.stopped.is_some() => false,
            Step::Split => self.stream.split(SHARDS_MAX),
            Step::Wait => {
                let seconds = scene.chance.between(1, 90);
                scene.trace.note(|| format!("{seconds} seconds pass"));
                scene.clock.advance(seconds as u64 * 1000);
                true
            }
            Step::Expire => {
                self.stream.take(Author::Service);
                let is_expired = expire_ground(&scene);
                self.stream.take(Author::Expiry);
                is_expired
            }
            Step::Redeliver => self.redeliver(),
            Step::SetBack => self.set_back(),
            Step::TimeOut => self.time_out(),
            Step::Replay => self.replay(),
            Step::Redrive => self.redrive(),
            Step::Pause => self.order(JobOrder::Pause),
            Step::Resume => self.order(JobOrder::Resume),
            Step::Sweep => self.sweep() && self.search_again(),
            Step::Slice => self.sweep_slice(),
            Step::Verify => self.verify(),
            Step::Repair => self.repair(),
            Step::Fault => self.plant_fault(),
            Step::RollOut => self.roll_out(),
            Step::Ready => self.wait_until_ready(),
            Step::Stop => self.stop(),
        })
    }
}
