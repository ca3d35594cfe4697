//! Counts that somebody made wrong by hand, and the repairs that mend them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use engine::count::target::Target;

/// The planted faults, and the repairs under way.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// Targets that were ever made wrong.
    pub(crate) ever: BTreeSet<Target>,
    /// Targets that no repair has mended since, with the number of their last fault.
    pub(crate) left: BTreeMap<Target, usize>,
    pub(crate) n_faults: usize,
    pub(crate) n_repairs: usize,
    pub(crate) under_way: Vec<RepairUnderWay>,
}

/// A repair under way.
#[derive(Debug)]
pub(crate) struct RepairUnderWay {
    /// The number of the last fault, and of the last loss, before it began.
    pub(crate) n_faults: usize,
    pub(crate) n_losses: usize,
    pub(crate) ended: Ended,
}

/// The result of a repair, once it has ended.
pub(crate) type Ended = Arc<Mutex<Option<Mended>>>;

/// What a repair has mended.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    /// Did it decide about everything but counts that wait, and write what it had to?
    pub(crate) is_done: bool,
    /// Does an item wait for what is under way?
    pub(crate) waits: bool,
    /// Did it see everything, and mend all that it could decide?
    pub(crate) is_whole: bool,
    /// Targets that it could not decide.
    pub(crate) undecided: BTreeSet<Target>,
    /// Derivations that are not wholly right.
    pub(crate) open: BTreeSet<String>,
}
