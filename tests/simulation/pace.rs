//! The pace of a run: how often each step happens. It is drawn once a run, so that whole runs differ.

use engine::clock::Clock as _;

use crate::{chance::Chance, scene::Scene};

/// What may happen next in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A task runs to its next stop.
    Poll,
    /// A batch is delivered.
    Deliver,
    /// Records arrive in their shards.
    Arrive,
    /// The application writes.
    Write,
    /// A late call lands.
    Land,
    /// An index follows the table.
    CatchUp,
    /// A shard splits.
    Split,
    /// Time passes.
    Wait,
    /// An item is removed by its time to live.
    Expire,
    /// Handled records are delivered again.
    Redeliver,
    /// A queue goes back to an earlier position.
    SetBack,
    /// An invocation times out.
    TimeOut,
    /// The operator replays.
    Replay,
    /// The operator redrives.
    Redrive,
    /// The operator pauses a job.
    Pause,
    /// The operator resumes a job.
    Resume,
    /// The sweeper starts jobs and searches again.
    Sweep,
    /// The sweeper verifies a slice of the table, and collects counters of zero.
    Slice,
    /// The operator verifies the table.
    Verify,
    /// The operator repairs what is wrong.
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
