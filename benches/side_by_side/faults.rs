//! The faults, drawn from a seed before anything runs, and the store that makes them happen and meters the calls.
//!
//! Each fault is drawn by the delivery and by the position of a change in it, never by how many calls a way of counting
//! has made before. So every way of counting gets the same deliveries, is killed after the same changes, and loses the
//! answers to calls at the same positions.

use std::{future::pending, ops::Range};

use benches::joins::read_halves;
use derive::{
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Write},
};
use keys::{item::Item, key::Key, size::item_bytes};
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, dynamo::DynamoStore};
use tokio::sync::{Mutex, Notify};

/// The seed of all draws.
const SEED: u64 = 17;

/// Changes of a batch.
const BATCH: usize = 100;

/// Of 100 deliveries, those in which the function is killed, and those that end well and come again anyway.
const N_KILLED: u64 = 10;
const N_AGAIN: u64 = 10;

/// Of 100 writes, those whose answer is lost.
pub(crate) const N_LOST: u64 = 5;

/// A batch as Lambda delivers it.
pub(crate) struct Delivery {
    /// Which it is.
    pub(crate) number: u64,
    /// Its changes.
    pub(crate) changes: Range<usize>,
    /// How many of its changes are counted when the function is killed, before it sees that the last of them is.
    /// A function that has fewer left to count is killed at its end, before Lambda sees its response.
    pub(crate) killed_after: Option<usize>,
}

/// A number below a bound, of what is drawn.
pub(crate) fn draw(what: [u64; 4], below: u64) -> u64 {
    // The mixing of SplitMix64, once for each part.
    let mixed = what.into_iter().fold(SEED, |state, part| {
        let state = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    });
    mixed % below
}

fn index(what: [u64; 4], below: usize) -> usize {
    usize::try_from(draw(what, below as u64)).expect("below an index")
}

/// The deliveries of so many changes, in order. A batch that comes again is cut elsewhere.
pub(crate) fn deliveries(n_changes: usize) -> Vec<Delivery> {
    let (mut all, mut from, mut is_again) = (Vec::new(), 0, false);
    while from < n_changes {
        let number = all.len() as u64;
        let n_taken = if is_again { 1 + index([number, 0, 0, 1], BATCH) } else { BATCH };
        let changes = from..n_changes.min(from + n_taken);
        let fate = draw([number, 0, 0, 2], 100);
        let killed_after = (fate < N_KILLED).then(|| 1 + index([number, 0, 0, 3], changes.len()));
        is_again = fate < N_KILLED + N_AGAIN;
        if !is_again {
            from = changes.end;
        }
        all.push(Delivery { number, changes, killed_after });
    }
    all
}

/// What is under way, and what it has cost.
#[derive(Default)]
pub(crate) struct Metered {
    delivery: u64,
    killed_after: Option<usize>,
    is_killed: bool,
    /// Changes of the delivery that are counted, and calls since the last of them.
    n_counted: usize,
    n_calls_here: u64,
    pub(crate) write_units: f64,
    pub(crate) read_halves: u64,
    /// Writes that were not done because a guard did not hold, all writes of a cancelled transaction among them. AWS
    /// charges them, and no answer reports it.
    pub(crate) n_refused: usize,
    pub(crate) n_lost: u64,
    pub(crate) n_killed: u64,
}

enum Fate {
    Answered,
    Lost,
    Killed,
}

impl Metered {
    fn fate(&mut self, n_changes: usize, n_lost: u64) -> Fate {
        let place = [self.delivery, self.n_counted as u64, self.n_calls_here, 4];
        self.n_calls_here += 1;
        if n_changes > 0 && self.killed_after.is_some_and(|after| self.n_counted + n_changes >= after) {
            self.is_killed = true;
            self.n_killed += 1;
            return Fate::Killed;
        }
        if draw(place, 100) < n_lost {
            self.n_lost += 1;
            return Fate::Lost;
        }
        if n_changes > 0 {
            self.n_counted += n_changes;
            self.n_calls_here = 0;
        }
        Fate::Answered
    }
}

/// The database with the faults. It does one call after another, so that the function dies between two calls.
pub(crate) struct Faulty {
    database: DynamoStore,
    /// Of 100 writes, those whose answer is lost.
    n_lost: u64,
    metered: Mutex<Metered>,
    killed: Notify,
}

impl Faulty {
    pub(crate) fn new(database: DynamoStore, n_lost: u64) -> Self {
        Self { database, n_lost, metered: Mutex::default(), killed: Notify::new() }
    }

    /// A function starts. It is killed as the delivery says, at its first attempt only.
    pub(crate) async fn starts(&self, delivery: &Delivery, n_attempts: u64) {
        let mut metered = self.metered.lock().await;
        metered.delivery = delivery.number + (n_attempts << 32);
        metered.killed_after = delivery.killed_after.filter(|_| n_attempts == 0);
        (metered.is_killed, metered.n_counted, metered.n_calls_here) = (false, 0, 0);
    }

    /// The function is killed by a call.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    /// The function has ended. Returns whether it is killed now, because no call has killed it before.
    pub(crate) async fn is_killed_at_its_end(&self) -> bool {
        let mut metered = self.metered.lock().await;
        let is_killed = metered.killed_after.is_some();
        metered.n_killed += u64::from(is_killed);
        is_killed
    }

    pub(crate) fn into_parts(self) -> (DynamoStore, Metered) {
        (self.database, self.metered.into_inner())
    }

    async fn reading<T>(
        &self,
        how: Consistency,
        read: impl Future<Output = Result<T, StoreError>>,
        bytes: impl FnOnce(&T) -> Vec<usize>,
    ) -> Result<T, StoreError> {
        let mut metered = self.alive().await;
        let answer = read.await?;
        let is_strong = how == Consistency::Strong;
        metered.read_halves += bytes(&answer).into_iter().map(|bytes| read_halves(bytes, is_strong)).sum::<u64>();
        Ok(answer)
    }

    /// A write of these, with what goes wrong with it.
    async fn writing<T>(
        &self,
        writes: &[Write],
        done: impl Future<Output = Result<T, StoreError>>,
        units: impl FnOnce(&T) -> Option<f64>,
    ) -> Result<T, StoreError> {
        let mut metered = self.alive().await;
        let answer = done.await?;
        let units = units(&answer);
        match units {
            Some(units) => metered.write_units += units,
            None => metered.n_refused += writes.len(),
        }
        let n_changes = if units.is_some() { writes.iter().map(n_added).sum() } else { 0 };
        match metered.fate(n_changes, self.n_lost) {
            Fate::Answered => Ok(answer),
            Fate::Lost => Err(StoreError::late()),
            Fate::Killed => {
                drop(metered);
                self.killed.notify_one();
                pending().await
            }
        }
    }

    /// Waits for the call before. A function that is killed waits forever.
    async fn alive(&self) -> tokio::sync::MutexGuard<'_, Metered> {
        let metered = self.metered.lock().await;
        if metered.is_killed {
            drop(metered);
            return pending().await;
        }
        metered
    }
}

/// Changes that a write counts.
fn n_added(write: &Write) -> usize {
    match &write.action {
        Action::Update(update) => match update.add.get("Value") {
            Some(AttributeValue::N(number)) => number.parse().expect("a number of joins"),
            _ => 0,
        },
        _ => 0,
    }
}

impl Store for Faulty {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        // An absent item costs as much as a small one.
        let bytes = |items: &Vec<(Key, Item)>| {
            let absent = std::iter::repeat_n(0, keys.len().saturating_sub(items.len()));
            items.iter().map(|(_, item)| item_bytes(item)).chain(absent).collect()
        };
        self.reading(how, self.database.read(table, keys, how), bytes).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let bytes = |page: &Page| vec![page.items.iter().map(item_bytes).sum()];
        self.reading(query.consistency, self.database.query(table, query, after), bytes).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        let bytes = |page: &Page| vec![page.items.iter().map(item_bytes).sum()];
        self.reading(Consistency::Strong, self.database.scan(table, segment, after), bytes).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let units = |outcome: &Outcome| match outcome {
            Outcome::Done { units } => Some(*units),
            Outcome::GuardFailed => None,
        };
        self.writing(std::slice::from_ref(write), self.database.write(write), units).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let units = |updated: &Updated| match updated {
            Updated::Done { units, .. } => Some(*units),
            Updated::GuardFailed { .. } => None,
        };
        self.writing(std::slice::from_ref(write), self.database.update(write), units).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let units = |outcome: &TransactOutcome| match outcome {
            TransactOutcome::Done { units } => Some(units.iter().map(|(_, units)| units).sum()),
            TransactOutcome::Cancelled { .. } => None,
        };
        self.writing(transaction.writes(), self.database.transact(transaction), units).await
    }
}
