//! The application's store, which records the cost of its writes and the time of each response.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use derive::{
    query::{Consistency, Query},
    write::{Action, Table, Transaction, Write},
};
use engine::clock::{Clock as _, SystemClock};
use keys::{
    item::{Item, text},
    key::Key,
};
use mimalloc::MiMalloc;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, dynamo::DynamoStore};

/// Identifies a write in the stream: the item, and its `UpdatedAt`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    pub(crate) key: Key,
    pub(crate) updated_at: String,
    pub(crate) removed: bool,
}

/// Time of the response to each write, in milliseconds since the epoch.
pub(crate) type Answered = HashMap<Stamp, u64>;

/// True if the lag of this item's changes is measured.
pub(crate) type HasLag = fn(&Key) -> bool;

/// The writes so far.
#[derive(Debug, Default)]
pub(crate) struct WriteTotals {
    pub(crate) units: f64,
    /// Responses to the writes whose lag is measured.
    pub(crate) answered_ms: Answered,
    pub(crate) n_refused: usize,
}

pub(crate) struct Metered {
    store: Arc<DynamoStore>,
    has_lag: HasLag,
    written: Mutex<WriteTotals>,
}

impl Metered {
    pub(crate) fn new(store: Arc<DynamoStore>, has_lag: HasLag) -> Self {
        Self { store, has_lag, written: Mutex::default() }
    }

    pub(crate) fn written(&self) -> MutexGuard<'_, WriteTotals> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stamps of these writes. A deletion contains no time, so its stamp has the `UpdatedAt` of the deleted item.
    async fn stamps(&self, writes: &[Write]) -> Result<Vec<Stamp>, StoreError> {
        let updated_at = |item: &Item| text(item, "UpdatedAt").map(str::to_owned);
        let mut stamps = Vec::new();
        for Write { key, action, .. } in writes.iter().filter(|write| (self.has_lag)(&write.key)) {
            let removed = matches!(action, Action::Delete);
            let updated_at = match action {
                Action::Put(item) => updated_at(item),
                Action::Update(update) => updated_at(&update.set),
                Action::Delete => {
                    let old = self.store.get(Table::Main, std::slice::from_ref(key)).await?;
                    old.first().and_then(|(_, item)| updated_at(item))
                }
                Action::Check => None,
            };
            stamps.extend(updated_at.map(|updated_at| Stamp { key: key.clone(), updated_at, removed }));
        }
        Ok(stamps)
    }

    fn answered(&self, stamps: Vec<Stamp>, units: f64) {
        let now_ms = SystemClock.now_ms();
        let mut written = self.written();
        written.units += units;
        written.answered_ms.extend(stamps.into_iter().map(|stamp| (stamp, now_ms)));
    }
}

impl Store for Metered {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.store.read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let stamps = self.stamps(std::slice::from_ref(write)).await?;
        let outcome = self.store.write(write).await?;
        if let Outcome::Done { units } = outcome {
            self.answered(stamps, units);
        }
        Ok(outcome)
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let stamps = self.stamps(std::slice::from_ref(write)).await?;
        let outcome = self.store.update(write).await?;
        if let Updated::Done { units, .. } = outcome {
            self.answered(stamps, units);
        }
        Ok(outcome)
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let stamps = self.stamps(transaction.writes()).await?;
        let outcome = self.store.transact(transaction).await?;
        if let TransactOutcome::Done { units } = &outcome {
            self.answered(stamps, units.iter().map(|(_, units)| *units).sum());
        }
        Ok(outcome)
    }
}

// ---- memory ----

/// Replaces the system's allocator, which takes a quarter of a fan-out's time: the database and the SDK allocate for
/// each value of an item.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Peak memory so far, in MB of 1,048,576 bytes; `None` if the system does not report it. Only Linux does.
pub(crate) fn peak_mb() -> Option<f64> {
    high_water_mb(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the peak from the text of a process's status, in MB with one decimal.
fn high_water_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u32 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((f64::from(kilobytes) / 1024.0 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        let status = "Name:\tripple\nVmPeak:\t  999999 kB\nVmHWM:\t   65664 kB\nVmRSS:\t   60000 kB\n";
        assert_eq!(high_water_mb(status), Some(64.1));
        for none in ["", "VmRSS:\t 1 kB", "VmHWM:\t many kB", "VmHWM:\t 12"] {
            assert_eq!(high_water_mb(none), None, "{none}");
        }
    }
}
