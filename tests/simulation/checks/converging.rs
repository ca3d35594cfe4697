//! What follows from changes ends: fan-outs within a bounded number of records, and every item within a bounded number of writes.

use std::collections::BTreeMap;

use engine::jobs::job::{Job, Task};
use keys::{job::JobKey, key::Key};

use crate::{
    failure::Failure,
    platform::stream::{Author, TableChange},
    scene::Scene,
};

/// Most records of a job in an hour, with faults and operators, and without. A job of the simulation searches through at
/// most a few dozen items, two on a page, and each change during it sends it through them once more. While a lane stands
/// still for days, the sweep begins a search again each half hour, so the records of all days are not bounded.
/// In 100 runs of each ledger one took 140 with faults, and one 8 without.
pub(crate) const RINGS_MAX: usize = 300;
pub(crate) const CALM_RINGS_MAX: usize = 40;

/// How long changes may take to reach everything when no call fails, in simulated milliseconds: a minute. In 100 runs of
/// each ledger it took at most 1.3 seconds.
pub(crate) const CONVERGED_MS_MAX: u64 = 60_000;

/// How often the service may write one item, and once more for every second change by others. In 10 runs of each kind it wrote
/// one 27 times for 216 changes, with faults and operators, and 7 times for 12 changes without. The path of a folder in a
/// circle grows by each write to its limit, and does so again when a write that was late has put an old one back.
const WRITES: usize = 400;

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

/// How often the service wrote each item, held against the number of changes by others. Two derivations that want different
/// values in one place write it back and forth without end, and no number of changes explains that.
#[derive(Debug, Default)]
pub(crate) struct WriteCounts {
    n_changes: usize,
    of: BTreeMap<Key, usize>,
    excess: Option<Failure>,
}

impl WriteCounts {
    /// Counts a change. Jobs are counted by their records, and a pulse is written at each run of the sweep.
    pub(crate) fn note(&mut self, author: Author, key: &Key) {
        if author != Author::Service {
            self.n_changes += 1;
        } else if JobKey::parse(key).is_none() && key.sk != "PULSE" {
            let n_written = self.of.entry(key.clone()).or_default();
            *n_written += 1;
            if *n_written > WRITES + self.n_changes / 2 && self.excess.is_none() {
                let text = format!("{key} was written {n_written} times for {} changes by others", self.n_changes);
                self.excess = Some(Failure::new("excess", text));
            }
        }
    }

    /// Fails when an item was written too often.
    pub(crate) fn are_few(&self) -> Result<(), Failure> {
        self.excess.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_two_derivations_write_back_and_forth_is_named() {
        let (source, derived) = (Key::new("POST#p", "METADATA"), Key::new("CATEGORY#other", "METADATA"));
        let mut writes = WriteCounts::default();
        for _ in 0..100 {
            writes.note(Author::Application, &source);
            writes.note(Author::Service, &Key::new(format!("CATEGORY#{}", writes.n_changes), "METADATA"));
        }
        (0..WRITES + 50).for_each(|_| writes.note(Author::Service, &derived));
        assert_eq!(writes.are_few(), Ok(()), "changes explain so many writes");
        writes.note(Author::Service, &derived);
        let text = "CATEGORY#other / METADATA was written 451 times for 100 changes by others".to_owned();
        assert_eq!(writes.are_few(), Err(Failure::new("excess", text)));
    }
}
