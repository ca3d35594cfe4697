//! One source of choices: everything random in a run is a draw from it, and the draws are kept.
//!
//! A run of a seed draws numbers and records them. The same run is had again from the recorded list alone, and a
//! changed list makes a similar run: that is what shrinking does (as in Hypothesis). Past the list's end every draw is
//! 0, and 0 stands everywhere for the plainest thing: no fault, the next batch in order, nothing out of the way.

use std::sync::{Arc, Mutex, MutexGuard};

/// The choices of one run; clones draw from the same.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Arc<Mutex<Draws>>);

#[derive(Debug)]
struct Draws {
    choices: Vec<u32>,
    n_drawn: usize,
    /// State of the generator (`SplitMix64`); `None` when the choices are all there is.
    random: Option<u64>,
}

impl Chance {
    /// The choices of a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Draws { choices: Vec::new(), n_drawn: 0, random: Some(seed) })))
    }

    /// These choices, and zeros after them.
    pub(crate) fn of_choices(choices: Vec<u32>) -> Self {
        Self(Arc::new(Mutex::new(Draws { choices, n_drawn: 0, random: None })))
    }

    /// What was drawn so far.
    pub(crate) fn choices(&self) -> Vec<u32> {
        let draws = self.draws();
        draws.choices[..draws.n_drawn.min(draws.choices.len())].to_vec()
    }

    /// Is a list of choices at its end?
    pub(crate) fn is_exhausted(&self) -> bool {
        let draws = self.draws();
        draws.random.is_none() && draws.n_drawn >= draws.choices.len()
    }

    /// A number below `n`; 0, without a draw, where there is no choice.
    pub(crate) fn below(&self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        let mut draws = self.draws();
        let at = draws.n_drawn;
        draws.n_drawn += 1;
        match &mut draws.random {
            Some(state) => {
                let drawn = next(state) % u64::try_from(n).unwrap();
                draws.choices.push(u32::try_from(drawn).unwrap());
                usize::try_from(drawn).unwrap()
            }
            None => draws.choices.get(at).map_or(0, |choice| usize::try_from(*choice).unwrap().min(n - 1)),
        }
    }

    /// A number between these two, the second included.
    pub(crate) fn between(&self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Does it happen, in so many of a hundred cases?
    pub(crate) fn percent(&self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// One of these; `None` where there are none.
    pub(crate) fn one_of<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A position in a list of weights, as often as it weighs.
    pub(crate) fn weighted(&self, weights: &[usize]) -> usize {
        let mut drawn = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if drawn < *weight {
                return at;
            }
            drawn -= weight;
        }
        0
    }

    fn draws(&self) -> MutexGuard<'_, Draws> {
        self.0.lock().unwrap()
    }
}

/// The next number of the generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed(*state)
}

/// A number spread over all 64 bits.
pub(crate) fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_run_is_had_again_from_its_choices() {
    let draw = |chance: &Chance| (0..20).map(|at| chance.below(at * 3)).collect::<Vec<_>>();
    let first = Chance::of_seed(7);
    let drawn = draw(&first);
    assert!(!first.is_exhausted());
    let again = Chance::of_choices(first.choices());
    assert_eq!(draw(&again), drawn);
    assert!(again.is_exhausted());
    assert_eq!(again.below(9), 0);
}
