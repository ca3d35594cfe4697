//! What everybody in a run shares: the tables, the clock, the choices, and what is told of it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use derive::{catalogue::Catalogue, schema::Schema};
use engine::protocol::ProtocolStep;
use store::faulty::{Database, Lagging, Side};

use super::{chance::Chance, manual_clock::ManualClock, mutant::Mutant, tally::Tally, trace::Trace};

/// When a run begins, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

/// Bytes of a page: small, so that a search has several.
const PAGE_BYTES: usize = 400;

/// May an index lag? Off: the fan-out does not look a second time after a lagging index; its jobs will, and close that
/// hole. Until then an item that an index does not hold yet is missed.
const INDEXES_LAG: bool = false;

/// The shared part of a run.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) database: Arc<Database>,
    pub(crate) clock: ManualClock,
    pub(crate) chance: Chance,
    pub(crate) trace: Trace,
    pub(crate) mutant: Option<Mutant>,
    /// Of a thousand calls, how many go wrong.
    pub(crate) per_mille: usize,
    is_healed: AtomicBool,
    tally: Mutex<Tally>,
}

impl Scene {
    /// An empty table of this schema.
    pub(crate) fn new(
        (schema, catalogue): (&Arc<Schema>, &Arc<Catalogue>),
        chance: Chance,
        mutant: Option<Mutant>,
        is_traced: bool,
    ) -> Arc<Self> {
        let (layout, stale) = (schema.layout.clone(), mutant == Some(Mutant::Without(ProtocolStep::ConsistentRead)));
        let database = match (stale, INDEXES_LAG) {
            (true, _) => Database::lagging(layout, PAGE_BYTES, Lagging::Reads),
            (false, true) => Database::lagging(layout, PAGE_BYTES, Lagging::Indexes),
            (false, false) => Database::new(layout, PAGE_BYTES),
        };
        let per_mille = [0, 20, 60, 150][chance.below(4)];
        Arc::new(Self {
            schema: Arc::clone(schema),
            catalogue: Arc::clone(catalogue),
            database: Arc::new(database),
            clock: ManualClock::at(BEGIN_MS),
            chance,
            trace: Trace::new(is_traced),
            mutant,
            per_mille,
            is_healed: AtomicBool::new(false),
            tally: Mutex::default(),
        })
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.is_healed.store(true, Ordering::Relaxed);
    }

    /// Does nothing go wrong any more?
    pub(crate) fn is_healed(&self) -> bool {
        self.is_healed.load(Ordering::Relaxed)
    }

    /// Counts a fault of a call.
    pub(crate) fn count_call(&self, fault: &'static str, side: Side) {
        self.tally.lock().unwrap().call(fault, side);
    }

    /// Counts something else that happened.
    pub(crate) fn count(&self, what: &'static str) {
        self.count_all(what, 1);
    }

    /// Counts so many of something.
    pub(crate) fn count_all(&self, what: &'static str, n: usize) {
        self.tally.lock().unwrap().other(what, n);
    }

    /// The counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.lock().unwrap().clone()
    }
}
