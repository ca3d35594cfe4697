//! The scheduler, which chooses who is next until nothing is left to do; everybody who acts is in a file of its own.
//!
//! Nothing happens between two steps of the scheduler. A step lets one task run to its next stop (each call of the
//! store has one before and one after), or lets one other thing happen.

pub(crate) mod application;
pub(crate) mod invocations;
pub(crate) mod losses;
pub(crate) mod operator;
pub(crate) mod repairing;
pub(crate) mod sweeper;

use std::sync::Arc;

use engine::{clock::Clock as _, jobs::JobOrder};

use crate::{
    actors::losses::expire_ground,
    chance::Chance,
    platform::{mapping::Mapping, stream::Author},
    scene::Scene,
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

// ---- The pace of a run: how often each step happens. It is drawn once a run, so that whole runs differ ----

/// What may happen next in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A task runs to its next stop.
    Poll,
    Deliver,
    Arrive,
    Write,
    /// A late call lands.
    Land,
    /// An index follows the table.
    CatchUp,
    Split,
    Wait,
    /// An item is removed by its time to live.
    Expire,
    /// Handled records are delivered again.
    Redeliver,
    /// A queue goes back to an earlier position.
    SetBack,
    TimeOut,
    Replay,
    Redrive,
    Pause,
    Resume,
    /// The sweeper starts jobs and searches again.
    Sweep,
    /// The sweeper verifies a slice of the table, and collects counters of zero.
    Slice,
    Verify,
    Repair,
    /// Somebody makes a count wrong.
    Fault,
    /// A deployment goes on, or is taken back.
    RollOut,
    /// An operator waits until new derivations can be filled.
    Ready,
    /// A function stops, and what waits for it is lost.
    Stop,
}

/// How often each step is taken, of ten thousand.
const STEPS: [(Step, usize); 24] = [
    (Step::Poll, 8_088),
    (Step::Deliver, 300),
    (Step::Arrive, 1_000),
    (Step::Write, 400),
    (Step::Land, 60),
    (Step::CatchUp, 60),
    (Step::Split, 6),
    (Step::Wait, 12),
    (Step::Expire, 18),
    (Step::Redeliver, 20),
    (Step::SetBack, 8),
    (Step::TimeOut, 14),
    (Step::Replay, 5),
    (Step::Redrive, 5),
    (Step::Pause, 8),
    (Step::Resume, 8),
    (Step::Sweep, 12),
    (Step::Slice, 8),
    (Step::Verify, 8),
    (Step::Repair, 8),
    (Step::Fault, 8),
    (Step::RollOut, 12),
    (Step::Ready, 6),
    (Step::Stop, 10),
];

/// Fewest and most writes of the application.
const WRITES: (usize, usize) = (200, 220);

/// Of a hundred runs, in how many operators verify and repair.
const OPERATED_PERCENT: usize = 30;

/// Time that an invocation has, in milliseconds: little enough to end early now and then.
const INVOCATION_MS: [u64; 3] = [300_000, 60_000, 560];

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) n_writes: usize,
    /// Do the functions sleep while the application writes?
    pub(crate) functions_sleep: bool,
    steps: Vec<Step>,
    weights: Vec<usize>,
}

impl Pace {
    pub(crate) fn new(chance: &Chance, is_rolled_out: bool, is_lossy: bool) -> Self {
        let n_writes = chance.between(WRITES.0, WRITES.1);
        let functions_sleep = chance.percent(8);
        let (steps, mut weights): (Vec<_>, Vec<_>) = STEPS.into_iter().unzip();
        let write = STEPS.iter().position(|(step, _)| *step == Step::Write).unwrap();
        weights[write] = [400, 100, 1_500][chance.below(3)];
        // Operators take turns from everybody else, so they act in some runs only, and then often.
        let all = std::env::var("SIM_OPERATED").is_ok();
        let is_operated = is_rolled_out || chance.percent(OPERATED_PERCENT) || all;
        for (weight, (step, _)) in weights.iter_mut().zip(STEPS) {
            if !is_operated && matches!(step, Step::Verify | Step::Repair | Step::Fault | Step::RollOut | Step::Ready) {
                *weight = 0;
            }
            if !is_lossy && step == Step::Stop {
                *weight = 0;
            }
        }
        Self { n_writes, functions_sleep, steps, weights }
    }

    /// Makes a step this many times as likely.
    pub(crate) fn more_of(&mut self, step: Step, times: usize) {
        for (_, weight) in self.steps.iter().zip(&mut self.weights).filter(|(other, _)| **other == step) {
            *weight *= times;
        }
    }

    /// The next step, if it is possible.
    pub(crate) fn step(&self, chance: &Chance) -> Step {
        self.steps[chance.weighted(&self.weights)]
    }
}

/// The deadline of an invocation that starts now.
pub(crate) fn deadline_ms(scene: &Scene) -> u64 {
    let weights = if scene.is_healed() { [1, 0, 0] } else { [10, 5, 4] };
    scene.clock.now_ms() + INVOCATION_MS[scene.chance.weighted(&weights)]
}
