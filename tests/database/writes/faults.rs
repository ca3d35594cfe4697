//! The model with faults, and the query interface on it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use derive::{guard::Guard, write::Table};
use entities::table::layout;
use keys::{item::Item, key::Key};
use queries::Queries;
use store::{
    faulty::{Call, Database, Decider, Fault, Faulty, Side},
    memory::PAGE_BYTES,
};

use crate::writes::bed::START_MS;

/// The calls that fail.
pub(crate) enum Faults {
    /// None.
    None,
    /// The writes with these numbers fail in this way, counted from 0; reads are not counted.
    Writes(Side, Fault, std::ops::Range<usize>),
    /// One call in three fails in some way, at random from this state.
    OneInThree(Mutex<u64>),
}

/// Decides by the faults, and counts the decisions.
pub(crate) struct Chance {
    faults: Faults,
    n_writes: AtomicUsize,
    n_faults: Arc<AtomicUsize>,
}

/// The model with faults.
pub(crate) struct Model {
    pub(crate) database: Arc<Database>,
    pub(crate) queries: Queries<Arc<Faulty<Chance>>>,
    pub(crate) n_faults: Arc<AtomicUsize>,
}

impl Model {
    /// An empty table.
    pub(crate) fn new(faults: Faults) -> Self {
        Self::on(&Arc::new(Database::new(layout(), PAGE_BYTES)), faults)
    }

    /// Another caller of the same table, with other faults.
    pub(crate) fn on(database: &Arc<Database>, faults: Faults) -> Self {
        Self::at(database, faults, START_MS)
    }

    /// The same caller at another time.
    pub(crate) fn at(database: &Arc<Database>, faults: Faults, now_ms: u64) -> Self {
        let n_faults = Arc::new(AtomicUsize::new(0));
        let chance = Chance { faults, n_writes: AtomicUsize::new(0), n_faults: Arc::clone(&n_faults) };
        let store = Arc::new(Faulty::new(database, chance));
        let queries = Queries::new(store, move || now_ms).pausing(|_| Box::pin(tokio::task::yield_now()));
        Self { database: Arc::clone(database), queries, n_faults }
    }

    /// All items, in order of their keys.
    pub(crate) fn items(&self) -> Vec<(Key, Item)> {
        self.database.memory().snapshot(Table::Main).into_iter().collect()
    }

    pub(crate) fn item(&self, pk: &str, sk: &str) -> Option<Item> {
        self.database.memory().view(Table::Main, |items| items.get(&Key::new(pk, sk)).cloned())
    }

    /// Number of failed calls.
    pub(crate) fn n_faults(&self) -> usize {
        self.n_faults.load(Ordering::Relaxed)
    }
}

impl Chance {
    fn decided(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        match &self.faults {
            Faults::None => None,
            Faults::Writes(side, fault, numbers) => {
                let number = (!call.is_read()).then(|| self.n_writes.fetch_add(1, Ordering::Relaxed))?;
                numbers.contains(&number).then(|| (*side, fault.clone()))
            }
            Faults::OneInThree(state) => {
                let mut state = state.lock().unwrap();
                let mut below = |bound: u64| {
                    // Knuth's multiplier; its upper bits are the good ones.
                    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (*state >> 33) % bound
                };
                if below(3) > 0 {
                    return None;
                }
                let side = if below(2) == 0 { Side::Before } else { Side::After };
                let position = below(call.n_writes().max(1) as u64);
                let conflict = Fault::Conflict(usize::try_from(position).unwrap());
                Some((side, if below(2) == 0 { conflict } else { Fault::Unanswered }))
            }
        }
    }
}

impl Decider for Chance {
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        let fault = self.decided(call);
        self.n_faults.fetch_add(usize::from(fault.is_some()), Ordering::Relaxed);
        fault
    }

    fn ended(&self, _call: &Call<'_>, _how: &str) {}

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}
