//! The stores under test, and how a case speaks with them.

use std::{
    collections::BTreeMap,
    env,
    future::Future,
    panic::{self, AssertUnwindSafe},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters,
    config::{BehaviorVersion, Credentials, Region},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType,
    },
};
use derive::write::{Query, Table, Transaction, Write};
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
use tokio::{net::TcpListener, runtime::Runtime};

/// How long a table may take to be made, on AWS. A local one is there at once.
const TABLE_WAIT: Duration = Duration::from_mins(2);

/// A store under test.
pub(crate) struct Bed<S> {
    /// Which store it is, for messages.
    pub(crate) name: String,
    pub(crate) store: S,
    /// Is it DynamoDB Local? Its transactions are not like those of AWS: see [`Bed::same_units`] and
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

/// Runs a case against the DynamoDB at `CONTRACT_ENDPOINT`, where that is set.
pub(crate) fn on_endpoint<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    let Ok(endpoint) = env::var("CONTRACT_ENDPOINT") else {
        return;
    };
    let (runtime, client, names) = (runtime(), client(&endpoint), unique_names());
    let bed = runtime.block_on(dynamo(endpoint, client.clone(), names.clone()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(case(bed))));
    // The tables go, however the case went.
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
    dynamo("embedded".to_owned(), client(&endpoint), unique_names()).await
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A table with an index that projects some attributes.
pub(crate) fn layout() -> Layout {
    Layout {
        pk: "PK".to_owned(),
        sk: "SK".to_owned(),
        entity_type: "EntityType".to_owned(),
        time_to_live: None,
        indexes: vec![Index {
            name: "GSI1".to_owned(),
            pk: "GSI1PK".to_owned(),
            sk: "GSI1SK".to_owned(),
            projection: vec!["Name".to_owned(), "Value".to_owned()],
        }],
    }
}

async fn dynamo(name: String, client: Client, names: TableNames) -> Bed<DynamoStore> {
    let arn = create_table(&client, &names.main, &layout().indexes).await;
    create_table(&client, &names.ledger, &[]).await;
    let is_dynamodb_local = arn.contains(":ddblocal:");
    Bed { name, store: DynamoStore::new(client, layout(), names), is_dynamodb_local }
}

fn unique_names() -> TableNames {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("contract-{}-{now}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    TableNames { main: format!("{name}-main"), ledger: format!("{name}-ledger") }
}

fn client(endpoint: &str) -> Client {
    let of = |name: &str| env::var(name).ok();
    let key = of("AWS_ACCESS_KEY_ID").unwrap_or_else(|| "test".to_owned());
    let secret = of("AWS_SECRET_ACCESS_KEY").unwrap_or_else(|| "test".to_owned());
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(of("AWS_REGION").unwrap_or_else(|| "us-east-1".to_owned())))
        .credentials_provider(Credentials::new(key, secret, of("AWS_SESSION_TOKEN"), None, "contract"))
        .endpoint_url(endpoint)
        .build();
    Client::from_conf(config)
}

/// Makes a table; its ARN.
async fn create_table(client: &Client, name: &str, indexes: &[Index]) -> String {
    let key =
        |name: &str, key_type| KeySchemaElement::builder().attribute_name(name).key_type(key_type).build().unwrap();
    let text = |name: &str| {
        let definition = AttributeDefinition::builder().attribute_name(name);
        definition.attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let Layout { pk, sk, .. } = layout();
    let mut call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    call = call.key_schema(key(&pk, KeyType::Hash)).key_schema(key(&sk, KeyType::Range));
    call = call.attribute_definitions(text(&pk)).attribute_definitions(text(&sk));
    for index in indexes {
        let projection = Projection::builder().projection_type(ProjectionType::Include);
        let projection = projection.set_non_key_attributes(Some(index.projection.clone())).build();
        let secondary = GlobalSecondaryIndex::builder().index_name(&index.name).projection(projection);
        let secondary = secondary.key_schema(key(&index.pk, KeyType::Hash));
        let secondary = secondary.key_schema(key(&index.sk, KeyType::Range)).build().unwrap();
        call = call.global_secondary_indexes(secondary);
        call = call.attribute_definitions(text(&index.pk)).attribute_definitions(text(&index.sk));
    }
    let made = call.send().await.unwrap().table_description;
    client.wait_until_table_exists().table_name(name).wait(TABLE_WAIT).await.unwrap();
    made.and_then(|table| table.table_arn).unwrap_or_default()
}

impl<S: Store> Bed<S> {
    /// What a write that is done costs.
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

    /// Holds the units of a transaction to be these. DynamoDB Local (1.25.1) tells those of the last action, doubled
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

    /// Holds a transaction to be cancelled with these reasons, the text of a rejection left out. DynamoDB Local (1.25.1)
    /// refuses the whole call where one action is to be rejected.
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

    /// The item of the main table under a key.
    pub(crate) async fn item(&self, key: &Key) -> Option<Item> {
        let mut found = self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap();
        found.pop().map(|(_, item)| item)
    }

    /// All items of a query, and on how many pages they came.
    pub(crate) async fn query_all(&self, query: &Query) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.query(Table::Main, query, after).await).await
    }

    /// All items of a table, and on how many pages they came.
    pub(crate) async fn scan_all(&self, table: Table) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.scan(table, after).await).await
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

    /// Holds two things to be equal, and says in which store they are not.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(&self, stored: &T, wanted: &T, about: impl std::fmt::Debug) {
        assert_eq!(stored, wanted, "in the {} store, about {about:?}", self.name);
    }
}
