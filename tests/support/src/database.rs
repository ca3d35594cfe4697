//! The embedded DynamoDB, clients, and tables of a layout.

use std::{
    env, process,
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
    let key =
        |name: &str, key_type| KeySchemaElement::builder().attribute_name(name).key_type(key_type).build().unwrap();
    let text = |name: &str| {
        let definition = AttributeDefinition::builder().attribute_name(name);
        definition.attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let Layout { pk, sk, indexes, .. } = layout;
    let mut call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    call = call.key_schema(key(pk, KeyType::Hash)).key_schema(key(sk, KeyType::Range));
    call = call.attribute_definitions(text(pk)).attribute_definitions(text(sk));
    for index in indexes {
        let projection = Projection::builder().projection_type(ProjectionType::Include);
        let projection = projection.set_non_key_attributes(index.projection.clone()).build();
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
