//! Fan-outs end by their own records, within a bounded number of them.

use std::collections::BTreeMap;

use engine::jobs::job::{Job, Task};
use keys::key::Key;

use crate::{failure::Failure, platform::stream::TableChange, scene::Scene};

/// Most records of a job in an hour, with faults and operators, and without. A job of the simulation searches through at
/// most a few dozen items, two on a page, and each change during it sends it through them once more. While a lane stands
/// still for days, the sweep begins a search again each half hour, so the records of all days are not bounded.
/// In 100 runs of each ledger one took 140 with faults, and one 8 without.
pub(crate) const RINGS_MAX: usize = 300;
pub(crate) const CALM_RINGS_MAX: usize = 40;

/// How long changes may take to reach everything when no call fails, in simulated milliseconds: a minute. In 100 runs of
/// each ledger it took at most 1.3 seconds.
pub(crate) const CONVERGED_MS_MAX: u64 = 60_000;

/// One hour in milliseconds.
const HOUR_MS: u64 = 3_600_000;

/// No fan-out of these changes took more records than this in an hour. Returns the most that one took.
pub(crate) fn rings_are_few(scene: &Scene, made: &[TableChange], rings_max: usize) -> Result<usize, Failure> {
    let mut rings: BTreeMap<&Key, (u64, usize)> = BTreeMap::new();
    let mut most = 0;
    for change in made {
        let is_fan_out = |item: &keys::item::Item| {
            Job::of(&scene.schema.layout, item).is_some_and(|job| matches!(job.task, Task::FanOut(_)))
        };
        if !change.old.iter().chain(&change.new).any(is_fan_out) {
            continue;
        }
        let (begin_ms, n_rings) = rings.entry(&change.key).or_default();
        if change.old.is_none() || change.at_ms > *begin_ms + HOUR_MS {
            (*begin_ms, *n_rings) = (change.at_ms, 0);
        }
        *n_rings += 1;
        most = most.max(*n_rings);
        if *n_rings > rings_max {
            return Err(Failure::new("rings", format!("{} was rung {n_rings} times in an hour", change.key)));
        }
    }
    Ok(most)
}
