//! A function's process that handles several invocations at once, as on Lambda Managed Instances: they share an engine
//! with its clock, and when one is killed, all are. Each has its own faults and its own account.

use std::sync::{Arc, Mutex};

use derive::{
    family::Family,
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use engine::{batch::Engine, ledger::LedgerKind};
use keys::{item::Item, key::Key};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, faulty::Faulty};

use crate::{
    caller::Caller,
    engines::function,
    executor::Gone,
    occurrences::EXCEPTION_PAGES,
    scene::Scene,
    world::{World, tasks::NewCaller},
};

/// After this many invocations a process ends, and the next one has what is deployed then.
const INVOCATIONS_MAX: usize = 20;

/// A process, which may have invocations under way.
pub(crate) struct Process {
    engine: Arc<Engine<Arc<TurnStore>>>,
    pub(crate) store: Arc<TurnStore>,
    gone: Gone,
    /// Position of the mapping that invokes it.
    mapping: usize,
    pub(crate) is_old: bool,
    /// Did it start when nothing went wrong any more?
    is_healed: bool,
    n_invocations: usize,
}

impl Process {
    fn new(scene: &Arc<Scene>, (families, ledger): (&[Family], LedgerKind), mapping: usize, is_old: bool) -> Self {
        let store = Arc::new(TurnStore { scene: Arc::clone(scene), turn: Mutex::default() });
        let engine = Arc::new(function(scene, families, ledger, Arc::clone(&store), is_old));
        let (gone, is_healed) = (Gone::default(), scene.is_healed());
        Self { engine, store, gone, mapping, is_old, is_healed, n_invocations: 0 }
    }

    /// Does it take another invocation by this mapping, of this version?
    fn takes(&self, scene: &Scene, mapping: usize, is_old: bool) -> bool {
        let is_asked = (self.mapping, self.is_old, self.is_healed) == (mapping, is_old, scene.is_healed());
        is_asked && !self.gone.is_set() && self.n_invocations < INVOCATIONS_MAX
    }
}

impl World {
    /// The engine of an invocation: of a process of its own, or of one that is shared.
    pub(crate) fn placed(&mut self, caller: &mut NewCaller, mapping: usize) -> Arc<Engine<Arc<TurnStore>>> {
        let (scene, at) = (&self.scene, &self.mappings[mapping]);
        let taken = self.processes.iter().position(|process| process.takes(scene, mapping, caller.is_old));
        let mut process = match taken {
            Some(taken) => self.processes.remove(taken),
            None => Process::new(scene, (&at.families, at.ledger), mapping, caller.is_old),
        };
        process.n_invocations += 1;
        let is_beside = |store: &Arc<TurnStore>| Arc::ptr_eq(store, &process.store);
        if self.tasks.iter().any(|running| running.process.as_ref().is_some_and(is_beside)) {
            scene.count("in one process");
        }
        caller.gone = process.gone.beside();
        let beside = Caller::new(scene, &caller.name, caller.role, &caller.gone, caller.deadline_ms);
        caller.store = Arc::new(Faulty::new(&scene.database, beside));
        caller.process = Some(Arc::clone(&process.store));
        let engine = Arc::clone(&process.engine);
        if self.shares_processes {
            self.processes.push(process);
        }
        engine
    }
}

/// The store of a process: a call is of the invocation whose turn it is.
#[derive(Debug)]
pub(crate) struct TurnStore {
    scene: Arc<Scene>,
    turn: Mutex<Option<Arc<Faulty<Caller>>>>,
}

impl TurnStore {
    /// From now on it is this invocation's turn.
    pub(crate) fn turn(&self, store: &Arc<Faulty<Caller>>) {
        *self.turn.lock().unwrap() = Some(Arc::clone(store));
    }

    fn own(&self) -> Arc<Faulty<Caller>> {
        Arc::clone(self.turn.lock().unwrap().as_ref().unwrap())
    }
}

impl Store for TurnStore {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.own().read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let is_later = after.is_some() && query.pk.starts_with("SHARD#");
        self.scene.count_all(EXCEPTION_PAGES, usize::from(is_later));
        self.own().query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.own().scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.own().write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.own().update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.own().transact(transaction).await
    }
}
