//! Many seeds: each runs by itself on any core, and they are reported in their order.
//!
//! # Noticed
//!
//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which
//! takes long, and the table that it prints replaces this one.

use std::{
    cell::Cell,
    env,
    ops::Range,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use engine::ledger::LedgerKind::{self, Receipts, Watermarks};

use crate::{
    chance::{Chance, Choices},
    drawn::drawn,
    mutant::Mutant,
    scene::Scene,
    trace::{Failure, Occurrences},
    world::World,
};

const SEEDS: u64 = 100;

thread_local! {
    /// Is this thread in a run?
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// The ledger of a run, and what the service leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) ledger: LedgerKind,
    pub(crate) mutant: Option<Mutant>,
    /// Does each run draw its manifest? Else it is the shipped table.
    pub(crate) is_drawn: bool,
    /// Does the sweep go by its pulses, as on AWS, where records may be lost? Else it knows what the functions have
    /// handled.
    pub(crate) by_pulse: bool,
}

#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) failure: Option<Failure>,
    pub(crate) trace: Vec<String>,
    choices: Choices,
    occurrences: Occurrences,
}

impl FinishedRun {
    /// The reader takes no such manifest.
    fn refused(chance: &Chance, refused: &str) -> Self {
        let failure = Some(Failure::new("refused", refused));
        let trace = refused.lines().map(str::to_owned).collect();
        Self { failure, trace, choices: chance.choices(), occurrences: Occurrences::default() }
    }
}

pub(crate) fn run(config: Config, chance: &Chance, is_traced: bool) -> FinishedRun {
    quiet_panics();
    let scene = if config.is_drawn {
        match drawn(chance) {
            Ok(drawn) => Scene::of_drawn(drawn, chance.clone(), config, is_traced),
            Err(refused) => return FinishedRun::refused(chance, &refused),
        }
    } else {
        Scene::new(chance.clone(), config, is_traced)
    };
    if let Some(drawn) = &scene.drawn {
        drawn.count(&scene);
        scene.trace.note(|| drawn.text.clone());
    }
    RUNS.set(true);
    let ran = catch_unwind(AssertUnwindSafe(|| World::new(&scene, config.ledger).run()));
    RUNS.set(false);
    let failure = ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Failure::new("panic", text.unwrap_or_default()))
    });
    FinishedRun {
        failure: failure.err(),
        trace: scene.trace.lines(),
        choices: chance.choices(),
        occurrences: scene.occurrences(),
    }
}

/// A panic in a run is reported as that run's failure. While a run is made smaller, its panics are not printed.
fn quiet_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let printing = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !RUNS.get() {
                printing(panic);
            }
        }));
    });
}

/// The lowest of these seeds that fails, and how often each fault occurred up to it. The number of threads does not
/// matter.
pub(crate) fn first_failure(config: Config, seeds: Range<u64>) -> (Option<(u64, Failure)>, Occurrences) {
    let (next, end) = (AtomicU64::new(seeds.start), AtomicU64::new(seeds.end));
    let runs = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let ran = run(config, &Chance::of_seed(seed), false);
                    if ran.failure.is_some() {
                        end.fetch_min(seed, Ordering::Relaxed);
                    }
                    runs.lock().unwrap().push((seed, ran.failure, ran.occurrences));
                }
            });
        }
    });
    let mut runs = runs.into_inner().unwrap();
    runs.sort_by_key(|(seed, ..)| *seed);
    let mut occurrences = Occurrences::default();
    for (seed, failure, counts) in runs {
        occurrences.add(&counts);
        if let Some(failure) = failure {
            return (Some((seed, failure)), occurrences);
        }
    }
    (None, occurrences)
}

/// Runs the seeds that the environment names. Fails with the lowest failing seed, made smaller.
pub(crate) fn holds(config: Config, test: &str) {
    let seeds = match (variable("SIM_SEED"), variable("SIM_START").unwrap_or(0), variable("SIM_SEEDS")) {
        (Some(seed), ..) => seed..seed + 1,
        (None, start, n_seeds) => start..start + n_seeds.unwrap_or(SEEDS),
    };
    let (failed, occurrences) = first_failure(config, seeds.clone());
    println!("{} seeds\n{occurrences}", seeds.end - seeds.start);
    if let Some((seed, failure)) = failed {
        println!("seed {seed} fails, and is made smaller: {failure}");
        report(config, seed, &failure);
        let set = |name: &&str| env::var(name).is_ok().then(|| format!("{name}=1 "));
        let set: String = ["SIM_OPERATED", "SIM_LOSSY"].iter().filter_map(set).collect();
        panic!("{failure}\nto repeat: {set}SIM_SEED={seed} cargo test --workspace --test simulation {test}");
    }
    let rare = occurrences.rare(config, usize::try_from(seeds.end - seeds.start).unwrap());
    assert!(rare.is_empty(), "the run proves less than it says, since these are rare: {rare:?}");
}

/// Prints the trace of a failing seed, made as small as possible.
fn report(config: Config, seed: u64, failure: &Failure) {
    if env::var("SIM_WHOLE").is_ok() {
        run(config, &Chance::of_seed(seed), true).trace.iter().for_each(|line| println!("{line}"));
        return;
    }
    let (smallest, how) = smallest(config, seed, failure);
    println!("seed {seed}: {how}");
    smallest.trace.iter().for_each(|line| println!("{line}"));
    println!("{}", smallest.failure.map(|failure| failure.to_string()).unwrap_or_default());
}

/// The smallest run found that fails like this seed, with its trace, and a description of the search.
pub(crate) fn smallest(config: Config, seed: u64, failure: &Failure) -> (FinishedRun, String) {
    let whole = run(config, &Chance::of_seed(seed), false);
    let mut fails = |choices: Choices| {
        let ran = run(config, &Chance::of_choices(choices), false);
        ran.failure.filter(|smaller| smaller.category == failure.category).map(|_| ran.choices)
    };
    let n_steps = whole.choices.len();
    let (choices, n_runs) = shrunk(whole.choices, &mut fails);
    let how = format!("{n_steps} steps made {} in {n_runs} runs", choices.len());
    (run(config, &Chance::of_choices(choices), true), how)
}

fn variable(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

// ---- The seed that showed each mutant in the last full search. It is tried first ----

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 19),
    ("Unguarded(StillParked)", Receipts, 2),
    ("Unguarded(Bucket)", Receipts, 140),
    ("Unguarded(Job)", Receipts, 1),
    ("Unguarded(UnreadTarget)", Receipts, 5),
    ("Unguarded(Watermark)", Watermarks, 0),
    ("Without(OwnRequest)", Receipts, 0),
    ("Without(BothImages)", Receipts, 1),
    ("Without(WayThere)", Receipts, 0),
    ("Without(OccupiedWay)", Receipts, 51),
    ("Without(SearchAgain)", Receipts, 107),
    ("Without(Circle)", Receipts, 4),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 16),
    ("Without(NetZeroProof)", Receipts, 3),
    ("Without(OnceABatch)", Watermarks, 2),
    ("Without(ReasonsByPosition)", Receipts, 1),
    ("Without(BelowFirst)", Watermarks, 0),
    ("Without(DropPassed)", Watermarks, 1),
    ("Without(MarkPerShard)", Watermarks, 0),
    ("Without(SatelliteByShard)", Watermarks, 9),
    ("Without(SeenToHaveSpread)", Watermarks, 9),
    ("Without(HomeRequests)", Watermarks, 4),
    ("Without(Exceptions)", Watermarks, 27),
    ("Without(PruneLate)", Watermarks, 2),
    ("Without(ZeroWithoutMarks)", Watermarks, 0),
    ("Without(ReplayBehind)", Watermarks, 32),
    ("Without(Horizon)", Watermarks, 0),
    ("Without(ProofOfParking)", Receipts, 3),
    ("Without(StartOnce)", Receipts, 1),
    ("Without(Settle)", Receipts, 9),
    ("Without(Pulse)", Watermarks, 1313),
    ("Without(LowestUndone)", Receipts, 4),
    ("Without(HandledFirst)", Receipts, 7),
    ("Without(UntouchedSince)", Receipts, 7),
    ("Without(RecordWins)", Receipts, 7),
    ("Without(Underway)", Receipts, 3),
    ("Without(PublishFirst)", Receipts, 0),
    ("Without(ReadyFirst)", Receipts, 38),
    ("Without(BirthMark)", Receipts, 12),
    ("Platform(OneLane)", Watermarks, 1),
    ("Platform(NeverGivenUp)", Watermarks, 1),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last_noticed(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

// ---- Makes a failing run smaller: fewer and plainer steps that fail in the same way ----

const RUNS_MAX: usize = 3_000;

/// The smallest choices found, and the number of runs. `fails` returns the choices that a run really drew if it fails
/// in the same way.
fn shrunk(choices: Choices, fails: &mut impl FnMut(Choices) -> Option<Choices>) -> (Choices, usize) {
    let mut best = Best { choices, fails, n_runs: 0 };
    loop {
        let before = best.choices.clone();
        best.shorten();
        best.blocks(|_| Vec::new());
        best.blocks(|steps| vec![Vec::new(); steps.len()]);
        best.lower();
        if best.choices == before || best.n_runs >= RUNS_MAX {
            return (best.choices, best.n_runs);
        }
    }
}

struct Best<'a, F> {
    choices: Choices,
    fails: &'a mut F,
    n_runs: usize,
}

impl<F: FnMut(Choices) -> Option<Choices>> Best<'_, F> {
    /// Cuts the end off, by binary search.
    fn shorten(&mut self) {
        let (mut low, mut high) = (0, self.choices.len());
        while low < high && self.n_runs < RUNS_MAX {
            let middle = usize::midpoint(low, high).min(self.choices.len());
            if self.takes(self.choices[..middle].to_vec()) {
                high = middle.min(self.choices.len());
            } else {
                low = middle + 1;
            }
        }
    }

    /// Changes blocks of steps, large ones first, from the end: later steps depend on earlier ones.
    fn blocks(&mut self, change: impl Fn(&[Vec<u32>]) -> Choices) {
        let mut size = self.choices.len().next_power_of_two() / 2;
        while size > 0 {
            let mut end = self.choices.len();
            while end > 0 && self.n_runs < RUNS_MAX {
                let start = end.saturating_sub(size);
                let changed = change(&self.choices[start..end]);
                if changed != self.choices[start..end] {
                    self.takes([&self.choices[..start], &changed, &self.choices[end..]].concat());
                }
                end = start.min(self.choices.len());
            }
            size /= 2;
        }
    }

    /// Lowers single numbers: to 0, to half, by one.
    fn lower(&mut self) {
        for step in (0..self.choices.len()).rev() {
            let mut at = 0;
            while self.choices.get(step).is_some_and(|step| at < step.len()) && self.n_runs < RUNS_MAX {
                let is_lower =
                    [|_| 0, |choice| choice / 2, |choice: u32| choice - 1].iter().any(|lower: &fn(u32) -> u32| {
                        let mut choices = self.choices.clone();
                        let choice = &mut choices[step][at];
                        *choice != 0 && {
                            *choice = lower(*choice);
                            self.takes(choices)
                        }
                    });
                let is_zero = self.choices.get(step).and_then(|step| step.get(at)).is_none_or(|choice| *choice == 0);
                at += usize::from(!is_lower || is_zero);
            }
        }
    }

    fn takes(&mut self, candidate: Choices) -> bool {
        if self.n_runs >= RUNS_MAX {
            return false;
        }
        self.n_runs += 1;
        match (self.fails)(candidate) {
            Some(choices) if size(&choices) < size(&self.choices) => {
                self.choices = choices;
                true
            }
            _ => false,
        }
    }
}

/// Sizes compare by steps, then by the number of draws, then by the draws.
fn size(choices: &Choices) -> (usize, usize, &Choices) {
    (choices.len(), choices.iter().map(Vec::len).sum(), choices)
}

#[test]
fn a_list_is_made_as_small_as_its_failure_allows() {
    // Fails when numbers above 10 are in two steps, and draws only the first number of each step.
    let mut fails = |mut choices: Choices| {
        for step in &mut choices {
            step.truncate(1);
        }
        (choices.iter().flatten().filter(|choice| **choice > 10).count() >= 2).then_some(choices)
    };
    let choices: Choices = (0..200).map(|at| vec![at % 40, at % 7]).collect();
    let (smallest, _) = shrunk(choices, &mut fails);
    assert_eq!(smallest, [[11], [11]]);
}
