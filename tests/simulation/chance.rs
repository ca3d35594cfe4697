//! One source of choices: everything random in a run is a draw from it, and the draws are kept.
//!
//! A run of a seed draws numbers and records them. The recorded list alone repeats the run, and a
//! changed list makes a similar run: that is what shrinking does (as in Hypothesis).
//!
//! The list has one part for each step of the scheduler, and a step draws from its own part only. So removing a part
//! removes one step, and the other parts keep their meaning. Past a part's end every draw is 0, and 0 always stands for
//! the plainest choice: no fault, the next batch in order, nothing unusual.

use std::sync::{Arc, Mutex, MutexGuard};

/// The draws of each step of the scheduler, without the zeros at its end.
pub(crate) type Choices = Vec<Vec<u32>>;

/// The choices of one run; clones draw from the same.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Arc<Mutex<Draws>>);

#[derive(Debug)]
struct Draws {
    source: ChoiceSource,
    /// The draws so far, including the current step.
    drawn: Choices,
}

#[derive(Debug)]
enum ChoiceSource {
    /// State of the generator (`SplitMix64`).
    Random(u64),
    /// A given list, and zeros after it.
    Given(Choices),
}

impl Chance {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self::of(ChoiceSource::Random(seed))
    }

    /// A given list, and zeros after it.
    pub(crate) fn of_choices(choices: Choices) -> Self {
        Self::of(ChoiceSource::Given(choices))
    }

    fn of(source: ChoiceSource) -> Self {
        Self(Arc::new(Mutex::new(Draws { source, drawn: vec![Vec::new()] })))
    }

    /// A step of the scheduler begins.
    pub(crate) fn step(&self) {
        self.draws().drawn.push(Vec::new());
    }

    /// The draws so far. Of a given list only the given steps.
    pub(crate) fn choices(&self) -> Choices {
        let draws = self.draws();
        let n_steps = match &draws.source {
            ChoiceSource::Random(_) => draws.drawn.len(),
            ChoiceSource::Given(choices) => choices.len().min(draws.drawn.len()),
        };
        let trimmed = |step: &Vec<u32>| {
            let len = step.iter().rposition(|choice| *choice != 0).map_or(0, |last| last + 1);
            step[..len].to_vec()
        };
        draws.drawn[..n_steps].iter().map(trimmed).collect()
    }

    /// Has a given list ended?
    pub(crate) fn is_exhausted(&self) -> bool {
        let draws = self.draws();
        matches!(&draws.source, ChoiceSource::Given(choices) if draws.drawn.len() > choices.len())
    }

    /// A number below `n`; 0 without a draw when there is no choice.
    pub(crate) fn below(&self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        let mut draws = self.draws();
        let Draws { source, drawn } = &mut *draws;
        let at = drawn.len() - 1;
        let choice = match source {
            ChoiceSource::Random(state) => usize::try_from(next(state) % u64::try_from(n).unwrap()).unwrap(),
            ChoiceSource::Given(choices) => {
                let given = choices.get(at).and_then(|step| step.get(drawn[at].len()));
                given.map_or(0, |choice| usize::try_from(*choice).unwrap().min(n - 1))
            }
        };
        drawn[at].push(u32::try_from(choice).unwrap());
        choice
    }

    /// A number between these two, the second included.
    pub(crate) fn between(&self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// One of these; `None` when there are none.
    pub(crate) fn one_of<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A position in a list of weights, drawn by weight.
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
    let draw = |chance: &Chance| {
        let step = |n_draws: usize| {
            chance.step();
            (0..n_draws).map(|at| chance.below(at * 3)).collect::<Vec<_>>()
        };
        [step(20), step(0), step(7)]
    };
    let first = Chance::of_seed(7);
    let drawn = draw(&first);
    assert!(!first.is_exhausted());
    let again = Chance::of_choices(first.choices());
    assert_eq!((draw(&again), again.choices()), (drawn.clone(), first.choices()));
    again.step();
    assert_eq!((again.is_exhausted(), again.below(9)), (true, 0));

    let mut without = first.choices();
    without.remove(1);
    assert_eq!(draw(&Chance::of_choices(without))[1], drawn[2][..0], "the second step takes what the third had");
}
