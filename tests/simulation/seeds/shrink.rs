//! Makes a failing run smaller: fewer and plainer steps that fail in the same way.

use crate::chance::Choices;

/// Most runs of a search.
const RUNS_MAX: usize = 3_000;

/// The smallest choices found, and the number of runs. `fails` returns the choices that a run really drew if it fails in
/// the same way.
pub(crate) fn shrunk(choices: Choices, fails: &mut impl FnMut(Choices) -> Option<Choices>) -> (Choices, usize) {
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
