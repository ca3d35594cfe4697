//! The model with faults, before a call and after it.
//!
//! A call may be refused for now; be done and its answer lost; be given up by the caller and land much later, as a dead
//! invocation's does; be cancelled by another writer. It also lets other invocations run between any two calls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use derive::write::{Query, Table, Transaction, Write};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Reason, Store, StoreError, TransactOutcome, memory::MemoryStore};

use super::chance::Chance;

/// A handle on the store; its clones share it.
#[derive(Clone)]
pub(crate) struct Faulty(Arc<Inner>);

struct Inner {
    memory: MemoryStore,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    /// How many of a hundred calls fail.
    percent: usize,
    late: Vec<Late>,
    counts: BTreeMap<&'static str, usize>,
}

/// A call whose caller is gone.
enum Late {
    Write(Box<Write>),
    Transact(Transaction),
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    NotDone,
    AnswerLost,
    DoneLate,
    Busy,
}

impl Faulty {
    /// An empty store whose calls fail in so many of a hundred cases.
    pub(crate) fn new(layout: Layout, seed: u64, percent: usize) -> Self {
        // Small pages, so that a search has several.
        let memory = MemoryStore::with_page_bytes(layout, 400);
        let state = State { chance: Chance::new(seed), percent, late: Vec::new(), counts: BTreeMap::new() };
        Self(Arc::new(Inner { memory, state: Mutex::new(state) }))
    }

    /// The store without its faults.
    pub(crate) fn memory(&self) -> &MemoryStore {
        &self.0.memory
    }

    /// From now on nothing fails.
    pub(crate) fn heal(&self) {
        self.state(|state| state.percent = 0);
    }

    /// How often each fault occurred.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.state(|state| state.counts.clone())
    }

    /// Lets one call land whose caller is gone; false when there is none.
    pub(crate) async fn land_one(&self) -> bool {
        let late = self.state(|state| {
            let at = state.chance.below(state.late.len());
            (!state.late.is_empty()).then(|| state.late.swap_remove(at))
        });
        match late {
            None => return false,
            // Nobody hears how it ends.
            Some(Late::Write(write)) => drop(self.memory().write(&write).await),
            Some(Late::Transact(transaction)) => drop(self.memory().transact(&transaction).await),
        }
        true
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.0.state.lock().unwrap())
    }

    async fn others_run(&self) {
        let n_yields = self.state(|state| state.chance.below(4));
        for _ in 0..n_yields {
            tokio::task::yield_now().await;
        }
    }

    fn fault(&self, of: &[Fault]) -> Fault {
        self.state(|state| {
            let fails = state.chance.percent(state.percent);
            let fault = state.chance.one_of(of).copied().filter(|_| fails).unwrap_or(Fault::None);
            let name = match fault {
                Fault::None => return fault,
                Fault::NotDone => "not done",
                Fault::AnswerLost => "answer lost",
                Fault::DoneLate => "done late",
                Fault::Busy => "busy",
            };
            *state.counts.entry(name).or_default() += 1;
            fault
        })
    }

    async fn read(&self, operation: &'static str) -> Result<(), StoreError> {
        self.others_run().await;
        match self.fault(&[Fault::NotDone]) {
            Fault::None => Ok(()),
            _ => Err(retry(operation)),
        }
    }
}

fn retry(operation: &'static str) -> StoreError {
    StoreError::Retry { operation, item: "an item".to_owned(), source: "a fault of the test".into() }
}

impl Store for Faulty {
    async fn get(&self, table: Table, keys: &[Key]) -> Result<Vec<(Key, Item)>, StoreError> {
        self.read("BatchGetItem").await?;
        self.memory().get(table, keys).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.read("Query").await?;
        self.memory().query(table, query, after).await
    }

    async fn scan(&self, table: Table, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.memory().scan(table, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.others_run().await;
        match self.fault(&[Fault::NotDone, Fault::AnswerLost, Fault::DoneLate, Fault::DoneLate]) {
            Fault::None | Fault::Busy => return self.memory().write(write).await,
            Fault::NotDone => {}
            Fault::AnswerLost => drop(self.memory().write(write).await),
            Fault::DoneLate => self.state(|state| state.late.push(Late::Write(Box::new(write.clone())))),
        }
        Err(retry("a write"))
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.others_run().await;
        match self.fault(&[Fault::NotDone, Fault::AnswerLost, Fault::DoneLate, Fault::Busy, Fault::Busy]) {
            Fault::None => return self.memory().transact(transaction).await,
            Fault::NotDone => {}
            Fault::AnswerLost => drop(self.memory().transact(transaction).await),
            Fault::DoneLate => self.state(|state| state.late.push(Late::Transact(transaction.clone()))),
            Fault::Busy => {
                let mut reasons = vec![Reason::None; transaction.writes().len()];
                let at = self.state(|state| state.chance.below(reasons.len()));
                reasons[at] = Reason::Busy;
                return Ok(TransactOutcome::Cancelled { reasons });
            }
        }
        Err(retry("TransactWriteItems"))
    }
}
