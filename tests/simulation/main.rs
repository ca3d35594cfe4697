//! The simulation: whatever an application writes and the platform does, derived data ends as defined.
//!
//! One seed drives a store with faults, a stream of shards that split, the functions behind their event source mappings,
//! an application and an operator. A scheduler chooses who is next at every call of the store. When the stream is quiet,
//! `verify` finds nothing, exactly the expected records are parked, each invocation's account matches what the store
//! answered, and a replay of everything, or of any window, changes nothing.
//!
//! ```text
//! cargo test --workspace --test simulation                         # 100 seeds
//! SIM_SEEDS=2000 cargo test --workspace --test simulation          # more; SIM_START is the first
//! SIM_SEED=42 cargo test --workspace --test simulation             # one of them
//! ```
//!
//! A seed that fails is made smaller, and its trace is printed. `SIM_WHOLE=1` prints the whole trace instead.
//!
//! | what | modules, the upper ones use the lower ones |
//! |---|---|
//! | many runs | `seeds`: which seeds run, the search for the smallest failing run, the seeds that showed each mutant |
//! | one run | `run`, from the first write to the last check |
//! | who acts | `actors`, one a file; the scheduler, who is next and how often |
//! | what is checked | `checks`, of every run; `cases`, single records and batches without a run |
//! | manifests that are drawn | `drawn`: their generator, their application, and an oracle by what was drawn |
//! | what is derived of the shipped table | `oracle`, by hand-written loops without any code of the product; `checks` asks it |
//! | what a run holds | `world` and its parts: the tasks, the application's memory, verifications |
//! | the service under test | `deployed`: the shipped table, with a derivation of each kind that it lacks; engines, as the functions and the operators make them; parked items and jobs |
//! | the platform | `platform`: stream, event source mappings, events, corrupt records |
//! | who calls the store | `caller`: tasks, faults of their calls, and what they may do by the policies of the template |
//! | what a guard says | `judge`, by the text that DynamoDB would be sent |
//! | what everybody shares | `scene`: tables, clock, deployed catalogues, theme; `items`, what is written |
//! | tools | `chance`, `trace`, `mutant` |

mod actors;
mod caller;
mod cases;
mod chance;
mod checks;
mod deployed;
mod drawn;
mod items;
mod judge;
mod mutant;
mod oracle;
mod platform;
mod run;
mod scene;
mod seeds;
mod trace;
mod world;

use chance::Chance;
use derive::guard::Purpose;
use engine::{ledger::LedgerKind, protocol::ProtocolStep};
use mutant::Mutant;
use seeds::{Config, first_failure, holds, last_noticed, run, smallest};

/// With the allocator of the system, a run spends a fifth of its time there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seeds within which a mutant must be noticed. A cascade that starts twice needs more than a thousand.
const MUTANT_SEEDS: u64 = 5_000;

/// Seeds of one ledger that are tried before those of the other.
const TURN_SEEDS: u64 = 10;

/// Most lines of the trace of a run that was made small.
const TRACE_LINES_MAX: usize = 100;

/// Most runs of which none becomes as short as that.
const LONG_RUNS_MAX: usize = 5;

const RECEIPTS: Config = Config { ledger: LedgerKind::Receipts, mutant: None, is_drawn: false, by_pulse: false };
const WATERMARKS: Config = Config { ledger: LedgerKind::Watermarks, ..RECEIPTS };
const DRAWN: [Config; 2] = [Config { is_drawn: true, ..RECEIPTS }, Config { is_drawn: true, ..WATERMARKS }];

#[test]
fn with_receipts_every_derived_value_ends_in_step() {
    holds(RECEIPTS, "with_receipts_every_derived_value_ends_in_step");
}

#[test]
fn with_watermarks_every_derived_value_ends_in_step() {
    holds(WATERMARKS, "with_watermarks_every_derived_value_ends_in_step");
}

#[test]
fn with_receipts_drawn_manifests_end_in_step() {
    holds(DRAWN[0], "with_receipts_drawn_manifests_end_in_step");
}

#[test]
fn with_watermarks_drawn_manifests_end_in_step() {
    holds(DRAWN[1], "with_watermarks_drawn_manifests_end_in_step");
}

#[test]
fn with_receipts_and_pulses_every_derived_value_ends_in_step() {
    holds(Config { by_pulse: true, ..RECEIPTS }, "with_receipts_and_pulses_every_derived_value_ends_in_step");
}

#[test]
fn with_watermarks_and_pulses_every_derived_value_ends_in_step() {
    holds(Config { by_pulse: true, ..WATERMARKS }, "with_watermarks_and_pulses_every_derived_value_ends_in_step");
}

#[test]
fn a_seed_runs_the_same_twice() {
    for (seed, config) in (0..6).zip([RECEIPTS, WATERMARKS].into_iter().cycle()) {
        let [one, other] = [(); 2].map(|()| run(config, &Chance::of_seed(seed), true));
        assert!(one.trace.len() > 1_000, "much happens");
        let differing = one.trace.iter().zip(&other.trace).find(|(one, other)| one != other);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!((one.trace.len(), one.failure), (other.trace.len(), other.failure), "seed {seed}");
    }
}

/// Every guard without a script in `cases/scripts.rs`, every named step and every condition of the platform is left out,
/// one after the other. A run of either ledger must notice. The printed table is what `NOTICED` in `seeds.rs` should say.
#[test]
fn what_is_left_out_is_missed() {
    let mut unnoticed = Vec::new();
    println!("{:<32} {:<18} {:<11} prevents", "left out", "seed", "shows as");
    let asked = std::env::var("SIM_MUTANT").unwrap_or_default();
    for mutant in Mutant::all().into_iter().filter(|mutant| format!("{mutant:?}").contains(&asked)) {
        let by_pulse = mutant == Mutant::Without(ProtocolStep::Pulse);
        // First the seed that showed it the last time, then a few of either ledger in turn: only one of them may need it.
        let last = last_noticed(mutant).map(|(ledger, seed)| (Config { ledger, by_pulse, ..RECEIPTS }, seed..seed + 1));
        let turns = (0..MUTANT_SEEDS / TURN_SEEDS).map(|turn| turn * TURN_SEEDS..(turn + 1) * TURN_SEEDS);
        let configs = [RECEIPTS, WATERMARKS].map(|config| Config { by_pulse, ..config });
        let turns = turns.flat_map(|seeds| configs.map(|config| (config, seeds.clone())));
        let noticed = last.into_iter().chain(turns).find_map(|(config, seeds)| {
            let (failed, _) = first_failure(Config { mutant: Some(mutant), ..config }, seeds);
            failed.map(|(seed, failure)| (format!("{} {seed}", config.ledger), failure.category))
        });
        let (seed, category) = noticed.unwrap_or_else(|| {
            unnoticed.push(mutant);
            ("none".to_owned(), "nothing")
        });
        println!("{:<32} {seed:<18} {category:<11} {}", format!("{mutant:?}"), mutant.prevents());
    }
    assert!(unnoticed.is_empty(), "nothing needs {unnoticed:?}");
}

#[test]
fn a_run_that_fails_is_made_small_and_traced() {
    let config = Config { mutant: Some(Mutant::Unguarded(Purpose::Receipt)), ..RECEIPTS };
    let (mut from, mut tried) = (0, Vec::new());
    // A run whose steps depend on each other stays long, so one of a few must become short.
    while tried.len() < LONG_RUNS_MAX {
        let (failed, _) = first_failure(config, from..MUTANT_SEEDS);
        let (seed, failure) = failed.unwrap();
        from = seed + 1;
        // The sweep reports a drift only after a waiting time, so such a run cannot become short.
        if failure.category == "drift" {
            continue;
        }
        let (smallest, how) = smallest(config, seed, &failure);
        println!("{how}\n{}\n{failure}", smallest.trace.join("\n"));
        assert_eq!(smallest.failure.unwrap().category, failure.category);
        if smallest.trace.len() < TRACE_LINES_MAX {
            return;
        }
        tried.push(format!("seed {seed}: {} lines: {how}", smallest.trace.len()));
    }
    panic!("{tried:?}");
}
