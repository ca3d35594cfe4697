//! The stores under test, and helpers for the cases.

use std::{
    collections::BTreeMap,
    env,
    future::Future,
    panic::{self, AssertUnwindSafe},
};

use aws_sdk_dynamodb::Client;
use derive::{
    query::Query,
    write::{Table, Transaction, Write},
};
use keys::{
    item::Item,
    key::Key,
    layout::{Index, Layout},
};
use store::{
    Cursor, Outcome, Page, Reason, Store, TransactOutcome, Units,
    dynamo::{DynamoStore, TableNames},
    memory::MemoryStore,
};
use tokio::runtime::Runtime;

use support::database::{client, create_table, embedded_endpoint, unique_names};

/// A store under test.
pub(crate) struct Bed<S> {
    /// The store's name, for messages.
    pub(crate) name: String,
    pub(crate) store: S,
    /// Is it DynamoDB Local? Its transactions differ from those of AWS: see [`Bed::same_units`] and
    /// [`Bed::is_rejected`].
    is_dynamodb_local: bool,
}

/// Runs a case against the model.
pub(crate) fn on_memory<F: Future<Output = ()>>(case: impl FnOnce(Bed<MemoryStore>) -> F) {
    runtime().block_on(case(memory()));
}

/// Runs a case against the embedded DynamoDB, which ends with the runtime.
pub(crate) fn on_embedded<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    runtime().block_on(async { case(embedded().await).await });
}

/// Runs a case against the DynamoDB at `CONTRACT_ENDPOINT`, if that is set.
pub(crate) fn on_endpoint<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    let Ok(endpoint) = env::var("CONTRACT_ENDPOINT") else {
        return;
    };
    let (runtime, client, names) = (runtime(), client(&endpoint), unique_names());
    let bed = runtime.block_on(dynamo(endpoint, client.clone(), names.clone()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(case(bed))));
    // The tables are deleted, whatever the result of the case.
    for name in [names.main, names.ledger] {
        runtime.block_on(client.delete_table().table_name(name).send()).unwrap();
    }
    if let Err(failure) = outcome {
        panic::resume_unwind(failure);
    }
}

pub(crate) fn memory() -> Bed<MemoryStore> {
    Bed { name: "memory".to_owned(), store: MemoryStore::new(layout()), is_dynamodb_local: false }
}

pub(crate) async fn embedded() -> Bed<DynamoStore> {
    let endpoint = embedded_endpoint().await;
    dynamo("embedded".to_owned(), client(&endpoint), unique_names()).await
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A table with an index that projects some attributes.
pub(crate) fn layout() -> Layout {
    Layout {
        entity_type: Some("EntityType".to_owned()),
        indexes: vec![Index {
            name: "GSI1".to_owned(),
            pk: "GSI1PK".to_owned(),
            sk: "GSI1SK".to_owned(),
            projection: Some(vec!["Name".to_owned(), "Value".to_owned()]),
        }],
        ..Layout::of("PK", "SK")
    }
}

async fn dynamo(name: String, client: Client, names: TableNames) -> Bed<DynamoStore> {
    let arn = create_table(&client, &names.main, &layout()).await;
    create_table(&client, &names.ledger, &Layout { indexes: Vec::new(), ..layout() }).await;
    let is_dynamodb_local = arn.contains(":ddblocal:");
    Bed { name, store: DynamoStore::new(client, layout(), names), is_dynamodb_local }
}

impl<S: Store> Bed<S> {
    /// The units of a successful write.
    pub(crate) async fn done(&self, write: &Write) -> Units {
        match self.store.write(write).await {
            Ok(Outcome::Done { units }) => units,
            other => panic!("{}: {write:?} should be done, and is {other:?}", self.name),
        }
    }

    pub(crate) async fn all_done(&self, writes: Vec<Write>) -> BTreeMap<Table, Units> {
        match self.transact(writes).await {
            TransactOutcome::Done { units } => units.into_iter().collect(),
            other @ TransactOutcome::Cancelled { .. } => panic!("{}: should be done, and is {other:?}", self.name),
        }
    }

    pub(crate) async fn transact(&self, writes: Vec<Write>) -> TransactOutcome {
        let transaction = Transaction::new(writes).unwrap();
        match self.store.transact(&transaction).await {
            Ok(outcome) => outcome,
            Err(error) => panic!("{}: {error:?}", self.name),
        }
    }

    /// Compares the units of a transaction with these. DynamoDB Local (1.25.1) reports those of the last action, doubled
    /// again.
    #[track_caller]
    pub(crate) fn same_units(
        &self,
        units: &BTreeMap<Table, Units>,
        wanted: &[(Table, Units)],
        about: impl std::fmt::Debug,
    ) {
        if !self.is_dynamodb_local {
            self.same(units, &wanted.iter().copied().collect(), about);
        }
    }

    /// Checks that a transaction was cancelled with these reasons, without the text of a rejection. DynamoDB Local
    /// (1.25.1) refuses the whole call if one action is rejected.
    pub(crate) async fn is_rejected(&self, writes: Vec<Write>, wanted: Vec<Reason>) {
        let reasons = match self.store.transact(&Transaction::new(writes).unwrap()).await {
            Ok(TransactOutcome::Cancelled { reasons }) => reasons,
            Err(error) if self.is_dynamodb_local && !error.is_retry() => return,
            other => panic!("{}: should be cancelled, and is {other:?}", self.name),
        };
        let without_text = |reason| match reason {
            Reason::Rejected(text) if !text.is_empty() => Reason::Rejected(String::new()),
            other => other,
        };
        self.same(&reasons.into_iter().map(without_text).collect(), &wanted, "reasons");
    }

    /// The item of the main table with this key.
    pub(crate) async fn item(&self, key: &Key) -> Option<Item> {
        let mut found = self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap();
        found.pop().map(|(_, item)| item)
    }

    /// All items of a query, and the number of pages.
    pub(crate) async fn query_all(&self, query: &Query) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.query(Table::Main, query, after).await).await
    }

    /// All items of a table, and the number of pages.
    pub(crate) async fn scan_all(&self, table: Table) -> (Vec<Item>, usize) {
        self.scan_segment(table, store::Segment::WHOLE).await
    }

    /// All items of a segment, and the number of pages.
    pub(crate) async fn scan_segment(&self, table: Table, segment: store::Segment) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.scan(table, segment, after).await).await
    }

    async fn pages<E: std::fmt::Debug>(
        &self,
        page: impl AsyncFn(Option<Cursor>) -> Result<Page, E>,
    ) -> (Vec<Item>, usize) {
        let (mut items, mut n_pages, mut after) = (Vec::new(), 0, None);
        loop {
            let Page { items: found, next } = page(after).await.unwrap();
            items.extend(found);
            n_pages += 1;
            after = next;
            if after.is_none() {
                return (items, n_pages);
            }
            assert!(n_pages < 1_000, "{}: the pages do not end", self.name);
        }
    }

    /// Checks that two values are equal, and names the store if not.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(&self, stored: &T, wanted: &T, about: impl std::fmt::Debug) {
        assert_eq!(stored, wanted, "in the {} store, about {about:?}", self.name);
    }
}
