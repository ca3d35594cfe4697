//! The embedded DynamoDB, clients, and tables: those of a layout, and those that do not fit the declarations.

use std::{
    env, process,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters,
    config::{BehaviorVersion, Credentials, Region},
    operation::create_table::builders::CreateTableFluentBuilder,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType, StreamSpecification, StreamViewType,
    },
};
use keys::layout::Layout;
use store::dynamo::TableNames;
use tokio::{net::TcpListener, runtime::Runtime};

/// Time limit for creating a table on AWS. A local table exists at once.
const TABLE_WAIT: Duration = Duration::from_mins(2);

/// Starts an embedded DynamoDB, which ends with the runtime, and returns its URL.
///
/// # Panics
///
/// If no port is free.
pub async fn embedded_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
    endpoint
}

/// Starts an embedded DynamoDB without tables, which ends with the runtime, and returns it with its URL.
///
/// # Panics
///
/// If no port is free.
#[must_use]
pub fn embedded() -> (Runtime, String) {
    let runtime = Runtime::new().unwrap();
    let endpoint = runtime.block_on(embedded_endpoint());
    (runtime, endpoint)
}

/// Names that no other table has.
///
/// # Panics
///
/// If the clock is before the epoch.
#[must_use]
pub fn unique_names() -> TableNames {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("contract-{}-{now}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    TableNames { main: format!("{name}-main"), ledger: format!("{name}-ledger") }
}

/// A client of the DynamoDB at a URL, with the credentials of the environment or invented ones.
#[must_use]
pub fn client(endpoint: &str) -> Client {
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

/// Creates a table, and returns its ARN.
///
/// # Panics
///
/// If it cannot be created.
pub async fn create_table(client: &Client, name: &str, layout: &Layout) -> String {
    let Layout { pk, sk, indexes, .. } = layout;
    let mut call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    call = call.set_key_schema(Some(key(pk, sk))).attribute_definitions(text(pk)).attribute_definitions(text(sk));
    for index in indexes {
        let of = match index.projection.as_deref() {
            None => ProjectionType::All,
            Some([]) => ProjectionType::KeysOnly,
            Some(_) => ProjectionType::Include,
        };
        let included = index.projection.clone().filter(|names| !names.is_empty());
        let projection = Projection::builder().projection_type(of).set_non_key_attributes(included).build();
        let secondary = GlobalSecondaryIndex::builder().index_name(&index.name).projection(projection);
        let secondary = secondary.set_key_schema(Some(key(&index.pk, &index.sk)));
        call = call.global_secondary_indexes(secondary.build().unwrap());
        call = call.attribute_definitions(text(&index.pk)).attribute_definitions(text(&index.sk));
    }
    let made = call.send().await.unwrap().table_description;
    client.wait_until_table_exists().table_name(name).wait(TABLE_WAIT).await.unwrap();
    made.and_then(|table| table.table_arn).unwrap_or_default()
}

/// Creates a table with this key, of type S, and these settings.
///
/// # Panics
///
/// If it cannot be created.
pub async fn make(
    client: &Client,
    name: &str,
    [pk, sk]: [&str; 2],
    more: impl FnOnce(CreateTableFluentBuilder) -> CreateTableFluentBuilder,
) {
    let call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let call = call.set_key_schema(Some(key(pk, sk))).attribute_definitions(text(pk)).attribute_definitions(text(sk));
    more(call).send().await.unwrap();
}

/// Creates a table without a sort key, with a stream of both images.
///
/// # Panics
///
/// If it cannot be created.
pub async fn make_simple(client: &Client, name: &str, pk: &str) {
    let mut key = key(pk, pk);
    key.truncate(1);
    let call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let call = call.set_key_schema(Some(key)).attribute_definitions(text(pk));
    streamed(call, StreamViewType::NewAndOldImages).send().await.unwrap();
}

fn key(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
    let element = |name: &str, part| KeySchemaElement::builder().attribute_name(name).key_type(part).build().unwrap();
    vec![element(pk, KeyType::Hash), element(sk, KeyType::Range)]
}

fn text(name: &str) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
}

fn index(name: &str, pk: &str, sk: &str, projects: bool) -> GlobalSecondaryIndex {
    let of = if projects { ProjectionType::All } else { ProjectionType::KeysOnly };
    let projection = Projection::builder().projection_type(of).build();
    let index = GlobalSecondaryIndex::builder().index_name(name).set_key_schema(Some(key(pk, sk)));
    index.projection(projection).build().unwrap()
}

/// The shipped table's indexes. The first has this sort key, and projects all attributes or only keys.
#[must_use]
pub fn indexed(call: CreateTableFluentBuilder, sk: &str, projects: bool) -> CreateTableFluentBuilder {
    let call =
        ["GSI1PK", "GSI2PK", "GSI2SK"].into_iter().fold(call, |call, name| call.attribute_definitions(text(name)));
    let call = if sk == "SK" { call } else { call.attribute_definitions(text(sk)) };
    let call = call.global_secondary_indexes(index("GSI1", "GSI1PK", sk, projects));
    call.global_secondary_indexes(index("GSI2", "GSI2PK", "GSI2SK", true))
}

/// Adds a stream with this view type.
///
/// # Panics
///
/// Never: the specification is complete.
#[must_use]
pub fn streamed(call: CreateTableFluentBuilder, view: StreamViewType) -> CreateTableFluentBuilder {
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view);
    call.stream_specification(stream.build().unwrap())
}
