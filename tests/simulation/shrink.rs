//! Making a failing run smaller: fewer choices, and plainer ones, that fail in the same way.

/// Runs that may be spent on it.
const RUNS_MAX: usize = 1_500;

/// The smallest list that was found, and in how many runs. `fails` gives the choices that a run really drew, when it
/// fails in the same way.
pub(crate) fn shrunk(choices: Vec<u32>, fails: &mut impl FnMut(Vec<u32>) -> Option<Vec<u32>>) -> (Vec<u32>, usize) {
    let mut best = Best { choices, n_runs: 0 };
    loop {
        let before = best.choices.clone();
        best.shorten(fails);
        best.blocks(fails, Vec::clear);
        best.blocks(fails, |block| block.iter_mut().for_each(|choice| *choice = 0));
        best.blocks(fails, |block| block.iter_mut().for_each(|choice| *choice /= 2));
        if best.choices == before || best.n_runs >= RUNS_MAX {
            return (best.choices, best.n_runs);
        }
    }
}

struct Best {
    choices: Vec<u32>,
    n_runs: usize,
}

impl Best {
    /// Cuts the end off, as far as half and half again.
    fn shorten(&mut self, fails: &mut impl FnMut(Vec<u32>) -> Option<Vec<u32>>) {
        let (mut low, mut high) = (0, self.choices.len());
        while low < high && self.n_runs < RUNS_MAX {
            let middle = usize::midpoint(low, high);
            if self.takes(self.choices[..middle.min(self.choices.len())].to_vec(), fails) {
                high = middle.min(self.choices.len());
            } else {
                low = middle + 1;
            }
        }
    }

    /// Changes blocks of the list, large ones first.
    fn blocks(&mut self, fails: &mut impl FnMut(Vec<u32>) -> Option<Vec<u32>>, change: impl Fn(&mut Vec<u32>)) {
        let mut size = self.choices.len().next_power_of_two() / 2;
        while size > 0 {
            let mut start = 0;
            while start < self.choices.len() && self.n_runs < RUNS_MAX {
                let end = (start + size).min(self.choices.len());
                let mut block = self.choices[start..end].to_vec();
                change(&mut block);
                let changed = block.len() < end - start || block[..] != self.choices[start..end];
                let candidate = [&self.choices[..start], &block, &self.choices[end..]].concat();
                if !changed || !self.takes(candidate, fails) || end - start == block.len() {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    fn takes(&mut self, candidate: Vec<u32>, fails: &mut impl FnMut(Vec<u32>) -> Option<Vec<u32>>) -> bool {
        self.n_runs += 1;
        match fails(candidate) {
            Some(choices) if (choices.len(), &choices) < (self.choices.len(), &self.choices) => {
                self.choices = choices;
                true
            }
            _ => false,
        }
    }
}

#[test]
fn a_list_is_made_as_small_as_its_failure_allows() {
    // Fails where two of the numbers are above 10.
    let mut fails = |choices: Vec<u32>| (choices.iter().filter(|choice| **choice > 10).count() >= 2).then_some(choices);
    let choices: Vec<u32> = (0..200).map(|at| at % 40).collect();
    let (smallest, _) = shrunk(choices, &mut fails);
    assert_eq!(smallest.len(), 2);
    assert!(smallest.iter().all(|choice| (11..22).contains(choice)), "{smallest:?}");
}
