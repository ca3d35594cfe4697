//! Many seeds: each runs by itself on any core, and they are reported in their order.

pub(crate) mod noticed;
mod shrink;

use std::{
    cell::Cell,
    env,
    ops::Range,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, LazyLock, Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use derive::{catalogue::Catalogue, schema::Schema};
use engine::ledger::LedgerKind;

use crate::{
    chance::{Chance, Choices},
    deployed,
    drawn::drawn,
    failure::Failure,
    mutant::Mutant,
    occurrences::Occurrences,
    permissions::Permissions,
    scene::Scene,
    seeds::shrink::shrunk,
    world::World,
};

/// Seeds of a test by default.
const SEEDS: u64 = 100;

static SHIPPED: LazyLock<(Arc<Schema>, Arc<Catalogue>, Arc<Permissions>)> = LazyLock::new(|| {
    let schema = deployed::schema();
    let catalogue = deployed::catalogue(&schema);
    let permissions = Permissions::of(&schema);
    (Arc::new(schema), Arc::new(catalogue), Arc::new(permissions))
});

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
    /// Does the sweep go by its pulses, as on AWS, where records may be lost? Else it knows what the functions have handled.
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
    let (schema, catalogue, permissions) = &*SHIPPED;
    quiet_panics();
    let scene = if config.is_drawn {
        match drawn(chance) {
            Ok(drawn) => Scene::of_drawn(drawn, chance.clone(), config, is_traced),
            Err(refused) => return FinishedRun::refused(chance, &refused),
        }
    } else {
        Scene::new((schema, catalogue, permissions), chance.clone(), config, is_traced)
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
        panic!("{failure}\nto repeat: SIM_SEED={seed} cargo test --workspace --test simulation {test}");
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
