//! A store that writes nothing: it reports what each write would have done.
//!
//! *Keeps true*: it only sends reads. A write is applied to the current item in the model of DynamoDB
//! ([`memory`](crate::memory)), so that its guard, refusals and units are those of a write that is sent at this moment.
//! It costs a consistent read of each item that would be written.
//!
//! The results are remembered until [`forget`](Observing::forget). Reads by key and guards see them: an engine that
//! moves a watermark twice in an invocation finds its first move. Queries and scans see the stored tables.
//!
//! Two simultaneous writes on one item may both find it unchanged. Then both are reported as done, although one would
//! have conflicted with the other.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key, layout::Layout};

use crate::{
    Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, memory::MemoryStore, operation,
};

/// Items as they would be; `None` for an item that would not exist.
type Unwritten = BTreeMap<(Table, Key), Option<Item>>;

/// A store that passes reads on, and writes nothing.
#[derive(Debug)]
pub struct Observing<S> {
    store: S,
    layout: Layout,
    unwritten: Mutex<Unwritten>,
}

impl<S: Store> Observing<S> {
    /// Observes a store of this layout.
    pub fn new(store: S, layout: Layout) -> Self {
        Self { store, layout, unwritten: Mutex::default() }
    }

    /// Forgets the remembered results, so that reads see the stored items again: at the start of each invocation.
    pub fn forget(&self) {
        self.unwritten().clear();
    }

    fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A model with the items of these writes, as they would be by now.
    async fn model(&self, writes: &[Write]) -> Result<MemoryStore, StoreError> {
        let model = MemoryStore::new(self.layout.clone());
        for table in [Table::Main, Table::Ledger] {
            let own = writes.iter().filter(|write| write.table == table);
            let keys: Vec<Key> = own.map(|write| write.key.clone()).collect();
            if keys.is_empty() {
                continue;
            }
            for (key, item) in self.read(table, &keys, Consistency::Strong).await? {
                let write = writes.iter().find(|write| write.target() == (table, &key));
                let named = write.map_or("PutItem", |write| operation(&write.action));
                model.put_raw(table, item).map_err(|refusal| refusal.of(named, &key.for_log()))?;
            }
        }
        Ok(model)
    }

    /// Remembers the items after these writes in the model.
    fn remember(&self, writes: &[Write], model: &MemoryStore) {
        for table in [Table::Main, Table::Ledger] {
            let own = writes.iter().filter(|write| write.table == table);
            let made = model.view(table, |items| {
                own.map(|write| ((table, write.key.clone()), items.get(&write.key).cloned())).collect::<Unwritten>()
            });
            self.unwritten().extend(made);
        }
    }
}

impl<S: Store> Store for Observing<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        let known: BTreeMap<Key, Option<Item>> = {
            let unwritten = self.unwritten();
            let known = |key: &Key| Some((key.clone(), unwritten.get(&(table, key.clone()))?.clone()));
            keys.iter().filter_map(known).collect()
        };
        let unknown: Vec<Key> = keys.iter().filter(|key| !known.contains_key(*key)).cloned().collect();
        let stored =
            if unknown.is_empty() { Vec::new() } else { self.store.read(table, &unknown, consistency).await? };
        let would_be = known.into_iter().filter_map(|(key, item)| Some((key, item?)));
        Ok(stored.into_iter().chain(would_be).collect())
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        let writes = std::slice::from_ref(write);
        let model = self.model(writes).await?;
        let outcome = model.write(write).await?;
        if matches!(outcome, Outcome::Done { .. }) {
            self.remember(writes, &model);
        }
        Ok(outcome)
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        let writes = std::slice::from_ref(write);
        let model = self.model(writes).await?;
        let outcome = model.update(write).await?;
        if matches!(outcome, Updated::Done { .. }) {
            self.remember(writes, &model);
        }
        Ok(outcome)
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        let model = self.model(transaction.writes()).await?;
        let outcome = model.transact(transaction).await?;
        if matches!(outcome, TransactOutcome::Done { .. }) {
            self.remember(transaction.writes(), &model);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derive::{
        guard::{Guard, Purpose},
        write::{Action, Update},
    };
    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::Reason;

    fn layout() -> Layout {
        Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") }
    }

    fn key(sk: &str) -> Key {
        Key::new("p", sk)
    }

    fn item(sk: &str, value: &str) -> Item {
        let value = [("Value".to_owned(), AttributeValue::N(value.to_owned()))];
        layout().key_item(&key(sk)).iter().map(|(n, v)| (n.to_owned(), v.clone())).chain(value).collect()
    }

    fn write(table: Table, sk: &str, action: Action, guard: Option<Guard>) -> Write {
        Write { table, key: key(sk), action, guard }
    }

    fn add() -> Action {
        let one = Item::from([("Value".to_owned(), AttributeValue::N("1".to_owned()))]);
        Action::Update(Update { add: one, ..Update::default() })
    }

    /// A table with one item, and its observing store.
    fn observed() -> (Arc<MemoryStore>, Observing<Arc<MemoryStore>>) {
        let store = Arc::new(MemoryStore::new(layout()));
        store.put_raw(Table::Main, item("held", "5")).unwrap();
        let observing = Observing::new(Arc::clone(&store), layout());
        (store, observing)
    }

    fn tables(store: &MemoryStore) -> [BTreeMap<Key, Item>; 2] {
        [Table::Main, Table::Ledger].map(|table| store.snapshot(table))
    }

    #[tokio::test]
    async fn nothing_is_written_and_each_write_ends_as_if_it_were() {
        let (store, observing) = observed();
        let before = tables(&store);
        let writes = [
            write(Table::Main, "held", add(), Some(Guard::present(Purpose::Update))),
            write(Table::Main, "held", Action::Put(item("held", "1")), Some(Guard::absent(Purpose::Receipt))),
            write(Table::Main, "none", add(), Some(Guard::present(Purpose::Update))),
            write(Table::Ledger, "new", Action::Put(item("new", "1")), Some(Guard::absent(Purpose::Receipt))),
            write(Table::Main, "held", Action::Delete, None),
        ];
        for write in &writes {
            let observed = observing.write(write).await.unwrap();
            observing.forget();
            // The write on a separate table, where it is done.
            let written = MemoryStore::new(layout());
            written.put_raw(Table::Main, item("held", "5")).unwrap();
            assert_eq!(observed, written.write(write).await.unwrap(), "{write:?}");
        }
        assert_eq!(tables(&store), before);
    }

    #[tokio::test]
    async fn a_transaction_ends_by_the_items_as_they_stand() {
        let (store, observing) = observed();
        let before = tables(&store);
        let receipt = || {
            write(Table::Ledger, "receipt", Action::Put(item("receipt", "1")), Some(Guard::absent(Purpose::Receipt)))
        };
        let transaction = Transaction::new(vec![receipt(), write(Table::Main, "held", add(), None)]).unwrap();
        let done = observing.transact(&transaction).await.unwrap();
        let units = vec![(Table::Main, 2.0), (Table::Ledger, 2.0)];
        assert_eq!(done, TransactOutcome::Done { units });
        let again = observing.transact(&transaction).await.unwrap();
        let reasons = vec![Reason::GuardFailed, Reason::None];
        assert_eq!(again, TransactOutcome::Cancelled { reasons }, "the receipt would be there");
        observing.forget();
        assert_eq!(observing.transact(&transaction).await.unwrap(), done, "and it is not");
        assert_eq!(tables(&store), before);
    }

    #[tokio::test]
    async fn what_would_have_been_written_is_read_until_it_is_forgotten() {
        let (_, observing) = observed();
        observing.write(&write(Table::Main, "held", add(), None)).await.unwrap();
        observing.write(&write(Table::Main, "new", add(), None)).await.unwrap();
        let keys = ["held", "new", "none"].map(key);
        let values = |read: Vec<(Key, Item)>| -> Vec<(String, AttributeValue)> {
            read.into_iter().map(|(key, item)| (key.sk, item.get("Value").unwrap().clone())).collect()
        };
        let number = |sk: &str, n: &str| (sk.to_owned(), AttributeValue::N(n.to_owned()));
        let read = observing.get(Table::Main, &keys).await.unwrap();
        assert_eq!(values(read), [number("held", "6"), number("new", "1")]);
        observing.forget();
        let read = observing.get(Table::Main, &keys).await.unwrap();
        assert_eq!(values(read), [number("held", "5")]);
    }
}
