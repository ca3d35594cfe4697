//! The stores under test, and helpers for the cases.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::write::{Action, Table, Update, Write};
use expect_test::Expect;
use keys::{item::Item, key::Key, layout::Layout};
use queries::{Queries, write_error::WriteError};
use serde_dynamo::AttributeValue;
use store::{Store, dynamo::DynamoStore, memory::MemoryStore};

use support::database::{client, create_table, embedded_endpoint, unique_names};

/// 2024-01-15T10:30:00.000Z.
pub(crate) const START_MS: u64 = 1_705_314_600_000;

/// A store under test, with the query interface on it.
pub(crate) struct Bed<S> {
    /// The store's name, for messages.
    name: &'static str,
    pub(crate) queries: Queries<Arc<S>>,
    pub(crate) store: Arc<S>,
    now_ms: Arc<AtomicU64>,
}

/// Runs a case against the model.
pub(crate) fn on_memory<F: Future<Output = ()>>(case: impl FnOnce(Bed<MemoryStore>) -> F) {
    runtime().block_on(case(Bed::new("memory", MemoryStore::new(layout()))));
}

/// Runs a case against the embedded DynamoDB, which ends with the runtime.
pub(crate) fn on_embedded<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    runtime().block_on(async {
        let (client, names) = (client(&embedded_endpoint().await), unique_names());
        create_table(&client, &names.main, &layout()).await;
        create_table(&client, &names.ledger, &Layout { indexes: Vec::new(), ..layout() }).await;
        case(Bed::new("embedded", DynamoStore::new(client, layout(), names))).await;
    });
}

/// The names of the shipped table.
pub(crate) fn layout() -> Layout {
    catalogue::schema().layout
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl<S: Store> Bed<S> {
    fn new(name: &'static str, store: S) -> Self {
        let (store, now_ms) = (Arc::new(store), Arc::new(AtomicU64::new(START_MS)));
        let clock = Arc::clone(&now_ms);
        let queries = Queries::new(Arc::clone(&store), move || clock.load(Ordering::Relaxed));
        Self { name, queries: queries.pausing(|_| Box::pin(tokio::task::yield_now())), store, now_ms }
    }

    /// Moves the clock by a second.
    pub(crate) fn later(&self) {
        self.now_ms.fetch_add(1_000, Ordering::Relaxed);
    }

    /// Puts an item as another client does.
    pub(crate) async fn given(&self, entity: &str, values: serde_json::Value) {
        let item = table_design::item(entity, values).unwrap();
        let key = layout().key(&item).unwrap();
        let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
        self.store.write(&write).await.unwrap();
    }

    /// Sets attributes of an item, as Ripple does with derived ones.
    pub(crate) async fn set(&self, key: &Key, attributes: impl IntoIterator<Item = (&'static str, AttributeValue)>) {
        let set: Item = attributes.into_iter().collect();
        let action = Action::Update(Update::set(set));
        let write = Write { table: Table::Main, key: key.clone(), action, guard: None };
        self.store.write(&write).await.unwrap();
    }

    pub(crate) async fn item(&self, key: &Key) -> Option<Item> {
        self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap().pop().map(|(_, item)| item)
    }

    /// All items, in order of their keys.
    pub(crate) async fn items(&self) -> Vec<(Key, Item)> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.scan(Table::Main, store::Segment::WHOLE, after).await.unwrap();
            items.extend(page.items.into_iter().map(|item| (layout().key(&item).unwrap(), item)));
            after = page.next;
            if after.is_none() {
                items.sort_by(|(one, _), (other, _)| one.cmp(other));
                return items;
            }
        }
    }

    /// Compares the whole table with this text.
    pub(crate) async fn holds(&self, wanted: Expect) {
        wanted.assert_eq(&shown(&self.items().await));
    }

    /// Checks that a write is refused with this error.
    #[track_caller]
    pub(crate) fn refuses<T: std::fmt::Debug>(&self, answer: Result<T, WriteError>, wanted: &str) {
        match answer {
            Ok(answer) => panic!("in the {} store: done ({answer:?}), should be refused: {wanted}", self.name),
            Err(error) => assert_eq!(error.to_string(), wanted, "in the {} store", self.name),
        }
    }
}

/// Items as text: one line for the key, and one for each attribute.
pub(crate) fn shown(items: &[(Key, Item)]) -> String {
    let mut lines = Vec::new();
    for (key, item) in items {
        lines.push(format!("{key}\n"));
        let attributes = item.iter().filter(|(name, _)| !["PK", "SK"].contains(name));
        lines.extend(attributes.map(|(name, value)| format!("    {name} = {}\n", value_shown(value))));
    }
    lines.concat()
}

fn value_shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => text.clone(),
        AttributeValue::N(number) => number.clone(),
        AttributeValue::Bool(flag) => flag.to_string(),
        AttributeValue::Ss(texts) => {
            let mut texts = texts.clone();
            texts.sort();
            format!("{texts:?}")
        }
        other => format!("{other:?}"),
    }
}

/// A number value.
pub(crate) fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A string value.
pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
