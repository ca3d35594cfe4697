//! The model: the contract of [`Store`] in a map.
//!
//! It behaves like DynamoDB, as far as the service can see: guards, updates, indexes, pages, transactions, refusals and
//! units. The contract suite (`tests/database/contract.rs`) runs the same tests, and random writes, against it and
//! against the embedded DynamoDB, so that they cannot drift apart. A store around it adds lagging indexes, conflicts,
//! throttling and lost responses.
//!
//! It also keeps the stream of the main table: [`MemoryStore::take_records`]. A write that changes nothing creates no
//! record, as on AWS. The simulation runs on it, so it is fast: indexes are maintained and not recomputed, and
//! [`MemoryStore::view`] reads a table in place.
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
//!
//! # Cost
//!
//! The units that a write consumes, by DynamoDB's rules.
//!
//! | arm   | before and after                    | units                  |
//! |-------|-------------------------------------|------------------------|
//! | table | whatever they are                   | the larger, at least 1 |
//! | index | no entry, or the same entry         | none                   |
//! | index | one entry, or two in the same place | the larger             |
//! | index | two entries in different places     | both                   |
//!
//! In a transaction the table's arm counts twice, an index's once. Source: dynoxide's captures of eu-west-2.

mod index;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    guard::Guard,
    query::{Consistency, Order, Query},
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{
    item::Item,
    key::{Key, for_log},
    layout::{Index, Layout},
    number,
    size::item_bytes,
    value::same_item,
};
use serde_dynamo::AttributeValue;

use crate::{
    Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome, Units, Updated,
    check::{self, Refusal},
    operation, returns_item, write_units,
};

// ---- The units that a write consumes, by DynamoDB's rules ----

/// A transaction writes to the table twice: prepare and commit.
const TRANSACT_FACTOR: Units = 2.0;

fn table_units(old: Option<&Item>, new: Option<&Item>) -> Units {
    let bytes = |item: Option<&Item>| item.map_or(0, item_bytes);
    write_units(bytes(old).max(bytes(new)))
}

fn index_units(layout: &Layout, old: Option<&Item>, new: Option<&Item>) -> Units {
    layout.indexes.iter().map(|index| one_index_units(layout, index, old, new)).sum()
}

fn one_index_units(layout: &Layout, index: &Index, old: Option<&Item>, new: Option<&Item>) -> Units {
    let entry = |item: Option<&Item>| {
        let item = item?;
        let (pk, sk) = index::keys(index, item)?;
        Some(((pk.to_owned(), sk.to_owned()), index::entry(layout, index, item)))
    };
    let units = |entry: &Item| write_units(item_bytes(entry));
    match (entry(old), entry(new)) {
        (None, None) => 0.0,
        (Some((_, entry)), None) | (None, Some((_, entry))) => units(&entry),
        (Some((old_place, old)), Some((new_place, new))) => {
            if old_place != new_place {
                units(&old) + units(&new)
            } else if same_item(&old, &new) {
                0.0
            } else {
                units(&old).max(units(&new))
            }
        }
    }
}

// ---- The stored form of a value ----

/// The value in DynamoDB's form: canonical numbers, sorted sets.
fn canonical(value: &AttributeValue) -> AttributeValue {
    let number = |text: &String| number::canonical(text).unwrap_or_else(|| text.clone());
    match value {
        AttributeValue::N(text) => AttributeValue::N(number(text)),
        AttributeValue::Ss(set) => AttributeValue::Ss(sorted(set.clone())),
        AttributeValue::Ns(set) => AttributeValue::Ns(sorted(set.iter().map(number).collect())),
        AttributeValue::Bs(set) => AttributeValue::Bs(sorted(set.clone())),
        AttributeValue::L(list) => AttributeValue::L(list.iter().map(canonical).collect()),
        AttributeValue::M(map) => {
            AttributeValue::M(map.iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        scalar => scalar.clone(),
    }
}

fn sorted<T: Ord>(mut set: Vec<T>) -> Vec<T> {
    set.sort();
    set
}

// ---- Pages of a table's items, in order of their keys ----

fn run_query(
    layout: &Layout,
    items: &BTreeMap<Key, Item>,
    query: &Query,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let first = Key::new(&query.pk, query.sk.first());
    let among = items
        .range((Bound::Included(first), Bound::Unbounded))
        .take_while(|(key, _)| key.pk == query.pk && !query.sk.is_past(&key.sk))
        .filter(|(key, _)| query.sk.holds(&key.sk));
    let after = after.and_then(|Cursor(item)| layout.key(item));
    let names = [&layout.pk, &layout.sk];
    match query.order {
        Order::Ascending => {
            let found = among.filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after));
            paged(found.map(|(_, item)| item.clone()), &names, page_bytes, query.limit)
        }
        Order::Descending => {
            let found: Vec<_> = among.filter(|(key, _)| after.as_ref().is_none_or(|after| *key < after)).collect();
            paged(found.into_iter().rev().map(|(_, item)| item.clone()), &names, page_bytes, query.limit)
        }
    }
}

fn scan(
    layout: &Layout,
    items: &BTreeMap<Key, Item>,
    segment: Segment,
    after: Option<&Cursor>,
    page_bytes: usize,
) -> Page {
    let from = after.and_then(|Cursor(item)| layout.key(item)).map_or(Bound::Unbounded, Bound::Excluded);
    let found = items.range((from, Bound::Unbounded)).filter(|(key, _)| segment_of(key, segment.of) == segment.number);
    paged(found.map(|(_, item)| item.clone()), &[&layout.pk, &layout.sk], page_bytes, None)
}

/// The segment of an item, of this many: all items of a partition are in one segment.
fn segment_of(key: &Key, n_segments: u32) -> u32 {
    let sum = key.pk.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    sum % n_segments.max(1)
}

/// The items up to the one that fills the page, by bytes or by the query's limit.
///
/// A full page has a cursor even if no item follows, as in DynamoDB.
fn paged(found: impl Iterator<Item = Item>, cursor_names: &[&String], page_bytes: usize, limit: Option<u32>) -> Page {
    let n_items_max = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let mut bytes = 0;
    for item in found {
        bytes += item_bytes(&item);
        if bytes >= page_bytes || items.len() + 1 >= n_items_max {
            let next = item.iter().filter(|(name, _)| cursor_names.iter().any(|cursor| cursor == name));
            let next = next.map(|(name, value)| (name, value.clone())).collect();
            items.push(item);
            return Page { items, next: Some(Cursor(next)) };
        }
        items.push(item);
    }
    Page { items, next: None }
}

/// Bytes after which a page ends. Source: DynamoDB service quotas.
pub const PAGE_BYTES: usize = 1_024 * 1_024;

/// Evaluates a guard for an item.
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
    /// The entries of each index of the main table, in the layout's order.
    indexes: Vec<index::Places>,
    records: Vec<RecordedChange>,
    /// Number of writes to each table.
    n_written: BTreeMap<Table, u64>,
}

/// A key with its item before and after a write.
pub(crate) type RecordedChange = (Key, Option<Item>, Option<Item>);

impl MemoryStore {
    /// Two empty tables. The layout is the main one's; the ledger has the same key attributes, and no index.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self::with_page_bytes(layout, PAGE_BYTES)
    }

    /// Like [`new`](Self::new), with pages that end after this many bytes; a page of 1 byte has one item.
    #[must_use]
    pub fn with_page_bytes(layout: Layout, page_bytes: usize) -> Self {
        let indexes = layout.indexes.iter().map(|_| index::Places::new()).collect();
        let tables = Mutex::new(Tables { indexes, ..Tables::default() });
        Self { layout, page_bytes, judge: Guard::holds, tables }
    }

    /// Replaces the judge of guards.
    #[must_use]
    pub fn judged(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// Takes the stream records of the main table since the last call: key, old item, new item.
    #[must_use]
    pub fn take_records(&self) -> Vec<(Key, Option<Item>, Option<Item>)> {
        std::mem::take(&mut self.tables().records)
    }

    /// Number of writes to a table since its creation: if it is equal, two reads are of one moment.
    pub(crate) fn n_written(&self, table: Table) -> u64 {
        self.tables().n_written.get(&table).copied().unwrap_or_default()
    }

    /// A copy of all items of a table.
    #[must_use]
    pub fn snapshot(&self, table: Table) -> BTreeMap<Key, Item> {
        self.tables().of(table).clone()
    }

    /// Reads the items of a table in place. The store is locked meanwhile.
    pub fn view<T>(&self, table: Table, look: impl FnOnce(&BTreeMap<Key, Item>) -> T) -> T {
        look(self.tables().of(table))
    }

    /// Puts an item without any check, to represent data older than a rule. It creates a record too.
    ///
    /// # Errors
    ///
    /// [`Refusal::KeyType`] if the item has no primary key.
    pub fn put_raw(&self, table: Table, item: Item) -> Result<(), Refusal> {
        let key = self.layout.key(&item).ok_or_else(|| Refusal::KeyType { attribute: self.layout.pk.clone() })?;
        self.tables().put(&self.layout, table, key, Some(item));
        Ok(())
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A panic here leaves no table half written.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one item, and returns its units in the table, and in the indexes.
    fn do_write(&self, tables: &mut Tables, write: &Write, new: Option<Item>) -> (Units, Units) {
        let old = tables.of(write.table).get(&write.key);
        let index_units = match write.table {
            Table::Main => index_units(&self.layout, old, new.as_ref()),
            Table::Ledger => 0.0,
        };
        let units = (table_units(old, new.as_ref()), index_units);
        tables.put(&self.layout, write.table, write.key.clone(), new);
        units
    }

    fn write_now(&self, write: &Write) -> Result<Outcome, Refusal> {
        Ok(match self.update_now(write)? {
            Updated::Done { units, .. } => Outcome::Done { units },
            Updated::GuardFailed { .. } => Outcome::GuardFailed,
        })
    }

    /// Does one write; the returned item is empty if none is left.
    fn update_now(&self, write: &Write) -> Result<Updated, Refusal> {
        check::single(&self.layout, write)?;
        let mut tables = self.tables();
        let old = tables.of(write.table).get(&write.key);
        if write.guard.as_ref().is_some_and(|guard| !(self.judge)(guard, old)) {
            return Ok(Updated::GuardFailed { item: old.cloned() });
        }
        let new = apply(&self.layout, write, old)?;
        let item = new.clone().filter(|_| returns_item(write)).unwrap_or_default();
        let (table_units, index_units) = self.do_write(&mut tables, write, new);
        Ok(Updated::Done { units: table_units + index_units, item })
    }

    fn transact_now(&self, transaction: &Transaction) -> TransactOutcome {
        let mut tables = self.tables();
        let mut reasons = Vec::new();
        let mut news = Vec::new();
        for write in transaction.writes() {
            let old = tables.of(write.table).get(&write.key);
            let reason = match apply(&self.layout, write, old) {
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
            *units.entry(write.table).or_default() += TRANSACT_FACTOR * table_units + index_units;
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
            None => run_query(&self.layout, tables.of(table), query, after.as_ref(), self.page_bytes),
        })
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        Ok(scan(&self.layout, self.tables().of(table), segment, after.as_ref(), self.page_bytes))
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

// ---- Applying a write to an item ----

/// The item after the write; `None` if none is left.
pub(super) fn apply(layout: &Layout, write: &Write, old: Option<&Item>) -> Result<Option<Item>, Refusal> {
    match &write.action {
        Action::Put(item) => Ok(Some(canonical_item(item))),
        Action::Delete => Ok(None),
        Action::Check => Ok(old.cloned()),
        Action::Update(Update { set, remove, add, delete, count_from }) => {
            if old.is_none() && set.is_empty() && add.is_empty() && count_from.is_empty() {
                // Removing from a missing item creates none, as seen on AWS with the older parameters
                // (https://github.com/scylladb/scylladb/issues/5862); the emulators create one with only the key. The
                // service sends no such update without a guard.
                return Ok(None);
            }
            let mut item = old.cloned().unwrap_or_else(|| layout.key_item(&write.key));
            item.extend(canonical_item(set));
            item.retain(|name, _| !remove.contains(name));
            for (name, amount) in add {
                let value = added(name, item.get(name), amount)?;
                item.insert(name.to_owned(), value);
            }
            for (name, from) in count_from {
                let value = added(name, item.get(name).or(Some(from)), &AttributeValue::N("1".to_owned()))?;
                item.insert(name.to_owned(), value);
            }
            for (name, elements) in delete {
                match taken(name, item.get(name), elements)? {
                    Some(value) => drop(item.insert(name.to_owned(), value)),
                    None => drop(item.remove(name)),
                }
            }
            check::stored_size(layout, write.target(), &item)?;
            Ok(Some(item))
        }
    }
}

fn added(name: &str, value: Option<&AttributeValue>, amount: &AttributeValue) -> Result<AttributeValue, Refusal> {
    let refused = || Refusal::AddType { attribute: name.to_owned() };
    match (value, amount) {
        (value, AttributeValue::N(amount)) => {
            let text = match value {
                None => number::canonical(amount),
                Some(AttributeValue::N(text)) => number::sum(text, amount),
                Some(_) => return Err(refused()),
            };
            text.map(AttributeValue::N).ok_or_else(|| Refusal::Number { attribute: name.to_owned() })
        }
        (None, AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_)) => Ok(canonical(amount)),
        (Some(AttributeValue::Ss(stored)), AttributeValue::Ss(more)) => Ok(AttributeValue::Ss(union(stored, more))),
        (Some(AttributeValue::Ns(stored)), AttributeValue::Ns(more)) => {
            let AttributeValue::Ns(more) = canonical(&AttributeValue::Ns(more.clone())) else { return Err(refused()) };
            Ok(AttributeValue::Ns(union(stored, &more)))
        }
        (Some(AttributeValue::Bs(stored)), AttributeValue::Bs(more)) => Ok(AttributeValue::Bs(union(stored, more))),
        _ => Err(refused()),
    }
}

fn union<T: Ord + Clone>(stored: &[T], more: &[T]) -> Vec<T> {
    stored.iter().chain(more).collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// A set without these elements; `None` if none is left, since a set cannot be empty.
fn taken(
    name: &str,
    value: Option<&AttributeValue>,
    elements: &AttributeValue,
) -> Result<Option<AttributeValue>, Refusal> {
    let left = match (value, canonical(elements)) {
        (None, _) => None,
        (Some(AttributeValue::Ss(stored)), AttributeValue::Ss(less)) => without(stored, &less).map(AttributeValue::Ss),
        (Some(AttributeValue::Ns(stored)), AttributeValue::Ns(less)) => without(stored, &less).map(AttributeValue::Ns),
        (Some(AttributeValue::Bs(stored)), AttributeValue::Bs(less)) => without(stored, &less).map(AttributeValue::Bs),
        _ => return Err(Refusal::AddType { attribute: name.to_owned() }),
    };
    Ok(left)
}

fn without<T: PartialEq + Clone>(stored: &[T], less: &[T]) -> Option<Vec<T>> {
    let left: Vec<T> = stored.iter().filter(|element| !less.contains(element)).cloned().collect();
    (!left.is_empty()).then_some(left)
}

fn canonical_item(item: &Item) -> Item {
    item.iter().map(|(name, value)| (name, canonical(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let index = Index { name: "I".into(), pk: "IPK".into(), sk: "ISK".into(), projection: Some(vec![]) };
        Layout { entity_type: Some("EntityType".into()), indexes: vec![index], ..Layout::of("PK", "SK") }
    }

    fn item(sk: &str, more: &[(&str, AttributeValue)]) -> Item {
        let mut item = layout().key_item(&Key::new("P", sk));
        item.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        item
    }

    fn write(table: Table, sk: &str, action: Action) -> Write {
        Write { table, key: Key::new("P", sk), action, guard: None }
    }

    fn put(sk: &str, more: &[(&str, AttributeValue)]) -> Write {
        write(Table::Main, sk, Action::Put(item(sk, more)))
    }

    fn update(sk: &str, set: Item, remove: &str) -> Write {
        let remove = BTreeSet::from([remove.to_owned()]);
        write(Table::Main, sk, Action::Update(Update { set, remove, ..Update::default() }))
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn done(store: &MemoryStore, write: &Write) {
        assert!(matches!(store.write_now(write).unwrap(), Outcome::Done { .. }), "{write:?}");
    }

    #[test]
    fn every_change_of_the_main_table_makes_a_record() {
        let store = MemoryStore::new(layout());
        done(&store, &put("a", &[("V", n("1"))]));
        done(&store, &put("a", &[("V", n("2"))]));
        done(&store, &write(Table::Main, "a", Action::Delete));
        store.put_raw(Table::Main, item("b", &[])).unwrap();
        let key = |sk: &str| Key::new("P", sk);
        let (one, two) = (item("a", &[("V", n("1"))]), item("a", &[("V", n("2"))]));
        let wanted = vec![
            (key("a"), None, Some(one.clone())),
            (key("a"), Some(one), Some(two.clone())),
            (key("a"), Some(two), None),
            (key("b"), None, Some(item("b", &[]))),
        ];
        assert_eq!(store.take_records(), wanted);
        assert_eq!(store.take_records(), vec![], "taken");
    }

    #[test]
    fn a_write_that_changes_nothing_makes_no_record() {
        let store = MemoryStore::new(layout());
        done(&store, &put("a", &[("V", n("1"))]));
        assert_eq!(store.take_records().len(), 1);
        done(&store, &put("a", &[("V", n("1.0"))]));
        done(&store, &update("a", Item::from([("V".to_owned(), n("1"))]), "Missing"));
        done(&store, &write(Table::Main, "missing", Action::Delete));
        done(&store, &update("missing", Item::new(), "V"));
        done(&store, &write(Table::Ledger, "a", Action::Put(item("a", &[]))));
        assert_eq!(store.take_records(), vec![]);
        assert_eq!(store.snapshot(Table::Main).len(), 1, "a removal from nothing makes no item");
        assert_eq!(store.snapshot(Table::Ledger).len(), 1);
    }

    #[test]
    fn a_cancelled_transaction_makes_no_record() {
        let store = MemoryStore::new(layout());
        let failing =
            Write { guard: Some(derive::guard::Guard::present(derive::guard::Purpose::Update)), ..put("b", &[]) };
        let outcome = store.transact_now(&Transaction::new(vec![put("a", &[]), failing]).unwrap());
        assert_eq!(outcome, TransactOutcome::Cancelled { reasons: vec![Reason::None, Reason::GuardFailed] });
        assert_eq!(store.take_records(), vec![]);
        assert_eq!(store.snapshot(Table::Main), BTreeMap::new());
    }

    #[test]
    fn an_item_without_a_key_cannot_be_put() {
        let store = MemoryStore::new(layout());
        assert!(store.put_raw(Table::Main, Item::from([("PK".to_owned(), s("P"))])).is_err());
    }

    #[tokio::test]
    async fn pages_of_one_item_hold_everything_in_order() {
        let store = MemoryStore::with_page_bytes(layout(), 1);
        // The index reverses the order, and two of its sort keys are equal.
        for (sk, index_sk) in [("a", "3"), ("b", "2"), ("c", "2"), ("d", "1")] {
            done(&store, &put(sk, &[("IPK", s("I")), ("ISK", s(index_sk)), ("V", n("1"))]));
        }
        let query = |index: Option<&str>, pk: &str| Query::prefix(index, pk, "");
        for (about, query, wanted) in [
            ("scan", None, "abcd"),
            ("query", Some(query(None, "P")), "abcd"),
            ("index", Some(query(Some("I"), "I")), "dbca"),
        ] {
            let (mut found, mut n_pages, mut after) = (String::new(), 0, None);
            loop {
                let page = match &query {
                    Some(query) => store.query(Table::Main, query, after).await.unwrap(),
                    None => store.scan(Table::Main, Segment::WHOLE, after).await.unwrap(),
                };
                found.extend(page.items.iter().map(|item| keys::item::text(item, "SK").unwrap()));
                n_pages += 1;
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!((found.as_str(), n_pages), (wanted, 5), "{about}: the last page is empty");
        }
    }
}
