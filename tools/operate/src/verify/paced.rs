//! A store that limits its read units per second, so that a verification does not slow down the application. It also
//! adds the units up.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::size::item_bytes;
use keys::{item::Item, key::Key};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};
use tokio::time::{Instant, sleep_until};

use super::check::UNIT_BYTES;

/// A store whose reads are delayed to keep the limit.
pub(crate) struct Paced<S> {
    store: S,
    /// Limit; unlimited if `None`.
    units_a_second: Option<f64>,
    /// When the limit has paid for all reads so far.
    free_at: Mutex<Option<Instant>>,
    used: UsedUnits,
}

/// The read units of all reads so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedUnits(Arc<Mutex<f64>>);

impl UsedUnits {
    pub(crate) fn get(&self) -> f64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, units: f64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += units;
    }
}

impl<S> Paced<S> {
    /// A store with this limit on read units a second.
    pub(crate) fn new(store: S, units_a_second: Option<u32>) -> Self {
        let (units_a_second, used) = (units_a_second.map(f64::from), UsedUnits::default());
        Self { store, units_a_second, free_at: Mutex::new(None), used }
    }

    /// A shared counter, which keeps counting as long as this store reads.
    pub(crate) fn used(&self) -> UsedUnits {
        self.used.clone()
    }

    /// Waits until the limit has paid for earlier reads.
    async fn turn(&self) {
        let free_at = *self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free_at) = free_at {
            sleep_until(free_at).await;
        }
    }

    fn charge(&self, units: f64) {
        self.used.add(units);
        let Some(rate) = self.units_a_second else { return };
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let from = free_at.map_or_else(Instant::now, |free_at| free_at.max(Instant::now()));
        *free_at = Some(from + Duration::from_secs_f64(units / rate));
    }

    fn charge_page(&self, page: &Page, is_consistent: bool) {
        self.charge(units(page.items.iter().map(item_bytes).sum(), is_consistent));
    }
}

/// The read units of this many bytes, read together.
fn units(bytes: usize, is_consistent: bool) -> f64 {
    let units = f64::from(u32::try_from(bytes.div_ceil(UNIT_BYTES).max(1)).unwrap_or(u32::MAX));
    if is_consistent { units } else { units / 2.0 }
}

impl<S: Store> Store for Paced<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.turn().await;
        let items = self.store.read(table, keys, consistency).await?;
        let is_consistent = consistency == Consistency::Strong;
        // A missing item costs as much as a small one.
        let n_absent = keys.len().saturating_sub(items.len());
        let absent = std::iter::repeat_n(1, n_absent);
        let all = items.iter().map(|(_, item)| item_bytes(item)).chain(absent);
        self.charge(all.map(|bytes| units(bytes, is_consistent)).sum());
        Ok(items)
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.turn().await;
        let page = self.store.query(table, query, after).await?;
        self.charge_page(&page, query.consistency == Consistency::Strong);
        Ok(page)
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.turn().await;
        let page = self.store.scan(table, segment, after).await?;
        self.charge_page(&page, true);
        Ok(page)
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.store.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.store.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.store.transact(transaction).await
    }
}

#[cfg(test)]
mod tests {
    use keys::layout::Layout;
    use store::memory::MemoryStore;

    use super::*;

    #[test]
    fn a_unit_is_four_kilobytes_or_part_of_it() {
        let charged = [0, 1, 4_096, 4_097].map(|bytes| [true, false].map(|is_consistent| units(bytes, is_consistent)));
        assert_eq!(format!("{charged:?}"), "[[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [2.0, 1.0]]");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_until_those_before_it_are_paid_for() {
        let layout = Layout::of("PK", "SK");
        let paced = Paced::new(MemoryStore::new(layout), Some(2));
        let keys = [Key::new("a", "a"), Key::new("b", "b"), Key::new("c", "c"), Key::new("d", "d")];
        let began = Instant::now();
        paced.get(Table::Main, &keys).await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(50), "the first waits for nobody");
        paced.get(Table::Main, &keys[..1]).await.unwrap();
        assert!((paced.used().get() - 5.0).abs() < f64::EPSILON, "each of the keys, of which none is there, is one");
        assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}: four units at two a second", began.elapsed());
    }
}
