//! The model: the contract of [`Store`] in a map.
//!
//! It does what DynamoDB does, as far as the service can see it: guards, updates, indexes, pages, transactions, refusals
//! and units. The contract suite (`tests/database/contract.rs`) runs one set of tests, and random writes, against it and
//! against the embedded DynamoDB, so that it cannot drift. What it leaves to a store around it: lagging indexes,
//! conflicts, throttling and lost answers.
//!
//! It also keeps the stream of the main table: [`MemoryStore::take_records`]. A write that changes nothing makes no
//! record, as on AWS. It is the table under the simulation, so it is quick: indexes are kept and not calculated, and
//! [`MemoryStore::view`] looks at a table in place.
//!
//! ```
//! use derive::write::{Action, Table, Update, Write};
//! use keys::{key::Key, layout::Layout};
//! use serde_dynamo::AttributeValue;
//! use store::{Outcome, Store, memory::MemoryStore};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let layout = Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") };
//! let store = MemoryStore::new(layout.clone());
//! let key = Key::new("USER#a", "PROFILE");
//! let add = Action::Update (Update { add: [("Value".to_owned(), AttributeValue::N("2".into()))].into(), ..Update::default() });
//! let write = Write { table: Table::Main, key: key.clone(), action: add, guard: None };
//! assert_eq!(store.write(&write).await?, Outcome::Done { units: 1.0 });
//! assert_eq!(store.take_records().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod cost;
mod form;
mod index;
mod page;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    guard::Guard,
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{
    item::Item,
    key::{Key, for_log},
    layout::Layout,
    value::same_item,
};

use crate::{
    Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome, Units, Updated, check, operation,
    refusal::Refusal,
};

/// Bytes after which a page ends. Source: DynamoDB service quotas.
pub const PAGE_BYTES: usize = 1_024 * 1_024;

/// Decides whether a guard holds of an item.
pub type Judge = fn(&Guard, Option<&Item>) -> bool;

/// The model of DynamoDB: two tables in memory, and the stream of the main one.
#[derive(Debug)]
pub struct MemoryStore {
    layout: Layout,
    page_bytes: usize,
    judge: Judge,
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    main: BTreeMap<Key, Item>,
    ledger: BTreeMap<Key, Item>,
    /// What is in each index of the main table, in the layout's order.
    indexes: Vec<index::Places>,
    records: Vec<RecordedChange>,
    /// How many items of each table were written.
    n_written: BTreeMap<Table, u64>,
}

/// A key with the item under it before and after a write.
pub(crate) type RecordedChange = (Key, Option<Item>, Option<Item>);

impl MemoryStore {
    /// Two empty tables. The layout is the main one's; the ledger has its key attributes, and no index.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self::with_page_bytes(layout, PAGE_BYTES)
    }

    /// Like [`new`](Self::new), with pages that end after so many bytes; a page of 1 byte holds one item.
    #[must_use]
    pub fn with_page_bytes(layout: Layout, page_bytes: usize) -> Self {
        let indexes = layout.indexes.iter().map(|_| index::Places::new()).collect();
        let tables = Mutex::new(Tables { indexes, ..Tables::default() });
        Self { layout, page_bytes, judge: Guard::holds, tables }
    }

    /// The same with another judge of guards.
    #[must_use]
    pub fn judged(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// Takes the stream records of the main table that were made since the last call: key, old item, new item.
    #[must_use]
    pub fn take_records(&self) -> Vec<(Key, Option<Item>, Option<Item>)> {
        std::mem::take(&mut self.tables().records)
    }

    /// How many items of a table were written since it was made: two reads are of one moment if it is equal.
    pub(crate) fn n_written(&self, table: Table) -> u64 {
        self.tables().n_written.get(&table).copied().unwrap_or_default()
    }

    /// All items of a table, as they are.
    #[must_use]
    pub fn snapshot(&self, table: Table) -> BTreeMap<Key, Item> {
        self.tables().of(table).clone()
    }

    /// Looks at the items of a table in place. Nothing else can be done with the store meanwhile.
    pub fn view<T>(&self, table: Table, look: impl FnOnce(&BTreeMap<Key, Item>) -> T) -> T {
        look(self.tables().of(table))
    }

    /// Puts an item that no check has seen, as a stand-in for data that is older than a rule. It makes a record too.
    ///
    /// # Errors
    ///
    /// [`Refusal::KeyType`] when the item has no primary key.
    pub fn put_raw(&self, table: Table, item: Item) -> Result<(), Refusal> {
        let key = self.layout.key(&item).ok_or_else(|| Refusal::KeyType { attribute: self.layout.pk.clone() })?;
        self.tables().put(&self.layout, table, key, Some(item));
        Ok(())
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing here leaves a table half written when it panics.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one item; what it cost in the table, and in the indexes.
    fn do_write(&self, tables: &mut Tables, write: &Write, new: Option<Item>) -> (Units, Units) {
        let old = tables.of(write.table).get(&write.key);
        let index_units = match write.table {
            Table::Main => cost::index_units(&self.layout, old, new.as_ref()),
            Table::Ledger => 0.0,
        };
        let units = (cost::table_units(old, new.as_ref()), index_units);
        tables.put(&self.layout, write.table, write.key.clone(), new);
        units
    }

    fn write_now(&self, write: &Write) -> Result<Outcome, Refusal> {
        Ok(match self.update_now(write)? {
            Updated::Done { units, .. } => Outcome::Done { units },
            Updated::GuardFailed { .. } => Outcome::GuardFailed,
        })
    }

    /// Does one write; its item is empty where there is none any more.
    fn update_now(&self, write: &Write) -> Result<Updated, Refusal> {
        check::single(&self.layout, write)?;
        let mut tables = self.tables();
        let old = tables.of(write.table).get(&write.key);
        if write.guard.as_ref().is_some_and(|guard| !(self.judge)(guard, old)) {
            return Ok(Updated::GuardFailed { item: old.cloned() });
        }
        let new = apply::apply(&self.layout, write, old)?;
        let item = new.clone().unwrap_or_default();
        let (table_units, index_units) = self.do_write(&mut tables, write, new);
        Ok(Updated::Done { units: table_units + index_units, item })
    }

    fn transact_now(&self, transaction: &Transaction) -> TransactOutcome {
        let mut tables = self.tables();
        let mut reasons = Vec::new();
        let mut news = Vec::new();
        for write in transaction.writes() {
            let old = tables.of(write.table).get(&write.key);
            let reason = match apply::apply(&self.layout, write, old) {
                _ if write.guard.as_ref().is_some_and(|guard| !(self.judge)(guard, old)) => Reason::GuardFailed,
                Err(refusal) => Reason::Rejected(refusal.to_string()),
                Ok(new) => {
                    news.push((write, new));
                    Reason::None
                }
            };
            reasons.push(reason);
        }
        if reasons.iter().any(|reason| *reason != Reason::None) {
            return TransactOutcome::Cancelled { reasons };
        }
        let mut units = BTreeMap::<Table, Units>::new();
        for (write, new) in news {
            let (table_units, index_units) = self.do_write(&mut tables, write, new);
            *units.entry(write.table).or_default() += cost::TRANSACT_FACTOR * table_units + index_units;
        }
        TransactOutcome::Done { units: units.into_iter().collect() }
    }
}

impl Tables {
    fn of(&self, table: Table) -> &BTreeMap<Key, Item> {
        match table {
            Table::Main => &self.main,
            Table::Ledger => &self.ledger,
        }
    }

    fn put(&mut self, layout: &Layout, table: Table, key: Key, new: Option<Item>) {
        *self.n_written.entry(table).or_default() += 1;
        let items = match table {
            Table::Main => &mut self.main,
            Table::Ledger => &mut self.ledger,
        };
        let old = match &new {
            Some(item) => items.insert(key.clone(), item.clone()),
            None => items.remove(&key),
        };
        if table == Table::Ledger {
            return;
        }
        for (index, places) in layout.indexes.iter().zip(&mut self.indexes) {
            index::moved(index, places, &key, old.as_ref(), new.as_ref());
        }
        let changed = match (&old, &new) {
            (Some(old), Some(new)) => !same_item(old, new),
            (None, None) => false,
            _ => true,
        };
        if changed {
            self.records.push((key, old, new));
        }
    }
}

impl Store for MemoryStore {
    async fn read(
        &self,
        table: Table,
        keys: &[Key],
        _consistency: Consistency,
    ) -> Result<Vec<(Key, Item)>, StoreError> {
        let keys: BTreeSet<&Key> = keys.iter().filter(|key| check::key(&self.layout, table, key).is_ok()).collect();
        let tables = self.tables();
        let items = tables.of(table);
        Ok(keys.into_iter().filter_map(|key| Some((key.clone(), items.get(key)?.clone()))).collect())
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let ranges = check::query(&self.layout, table, query).map_err(|it| it.of("Query", &for_log(&query.pk)))?;
        if ranges.is_none() {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let tables = self.tables();
        let indexes = self.layout.indexes.iter().zip(&tables.indexes);
        let found = indexes.into_iter().find(|(index, _)| Some(&index.name) == query.index.as_ref());
        Ok(match found {
            Some(entries) => index::query(&self.layout, entries, &tables.main, query, after.as_ref(), self.page_bytes),
            None => page::query(&self.layout, tables.of(table), query, after.as_ref(), self.page_bytes),
        })
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        Ok(page::scan(&self.layout, self.tables().of(table), segment, after.as_ref(), self.page_bytes))
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.write_now(write).map_err(|refusal| refusal.of(operation(&write.action), &write.key.for_log()))
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.update_now(write).map_err(|refusal| refusal.of(operation(&write.action), &write.key.for_log()))
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        check::transaction(&self.layout, transaction)
            .map_err(|(key, refusal)| refusal.of("TransactWriteItems", &key.for_log()))?;
        Ok(self.transact_now(transaction))
    }
}
