//! Counts that were made wrong by hand, and the repairs that mend them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use engine::count::target::Target;

/// What was made wrong by hand.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// Targets that were ever made wrong.
    pub(crate) ever: BTreeSet<Target>,
    /// Those that no repair has mended since, with the number of their last fault.
    pub(crate) left: BTreeMap<Target, usize>,
    pub(crate) n_faults: usize,
    pub(crate) n_repairs: usize,
    /// Repairs that are under way: the number of the last fault before each began, and what it mended when it has ended.
    pub(crate) under_way: Vec<(usize, Ended)>,
}

/// The targets that a repair mended, of those that it found.
pub(crate) type Ended = Arc<Mutex<Option<Mended>>>;

/// What a repair came to.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    /// Did it see and mend all that it could decide?
    pub(crate) is_whole: bool,
    /// Targets that it could not decide.
    pub(crate) undecided: BTreeSet<Target>,
    /// Derivations of which not all is right.
    pub(crate) open: BTreeSet<String>,
}
