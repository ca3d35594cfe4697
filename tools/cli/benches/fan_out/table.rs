//! The tables, and one user's comments in them, as a foreign client writes them.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Config, Credentials, Region},
    types::{
        AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, PutRequest,
        StreamSpecification, StreamViewType, WriteRequest,
    },
};
use functions::{config::Config as RuntimeConfig, handler::dynamo};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use store::dynamo::DynamoStore;

/// Number of posts of the comments. Each post is a partition.
const POSTS: usize = 100;

/// Items of one `BatchWriteItem`. Source: DynamoDB service quotas.
const BATCH_MAX: usize = 25;

/// Batches that are put at once.
const BATCHES_AT_ONCE: usize = 8;

/// An item.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A client of the database.
pub(crate) fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("somebody", "else", None, None, "an emulator takes any"))
        .build();
    Client::from_conf(config)
}

/// The table as the service writes it.
pub(crate) fn store(client: &Client, table: &str) -> DynamoStore {
    let config = RuntimeConfig::of(table.to_owned(), format!("{table}-ledger"));
    dynamo(client.clone(), &catalogue::schema(), &config)
}

/// A value of type S.
pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn item<const N: usize>(attributes: [(&str, &str); N]) -> Item {
    attributes.into_iter().map(|(name, text)| (name.to_owned(), s(text))).collect()
}

/// Key of the user.
pub(crate) fn user_key() -> Item {
    item([("PK", "USER#famous"), ("SK", "PROFILE")])
}

/// A comment of the user.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

/// The comments, in the order of their time.
pub(crate) fn comments(n_items: usize) -> Vec<Comment> {
    let comment = |at: usize| {
        let (minutes, seconds) = (at / 60, at % 60);
        let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
        let time = format!("2024-{:02}-{:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z", 1 + days / 28, 1 + days % 28);
        Comment { pk: format!("POST#p{:02}", at % POSTS), sk: format!("COMMENT#{time}#c{at:07}") }
    };
    (0..n_items).map(comment).collect()
}

impl Comment {
    /// Its primary key.
    pub(crate) fn key(&self) -> Item {
        item([("PK", &self.pk), ("SK", &self.sk)])
    }

    fn item(&self) -> Item {
        item([
            ("PK", &self.pk),
            ("SK", &self.sk),
            ("EntityType", "Comment"),
            ("GSI1PK", "USER#famous"),
            ("GSI1SK", &self.sk),
            ("UserId", "famous"),
            ("Text", "It says what everybody thinks, and says it in as many words as a comment has."),
            ("UserName", "Grace"),
        ])
    }
}

/// The keys and indexes of a table.
pub(crate) struct Shape {
    keys: Vec<KeySchemaElement>,
    attributes: Vec<AttributeDefinition>,
    indexes: Vec<GlobalSecondaryIndex>,
}

impl Shape {
    /// Those of an existing table.
    pub(crate) async fn of(client: &Client, table: &str) -> anyhow::Result<Self> {
        let described = client.describe_table().table_name(table).send().await?.table.expect("a description");
        let index = |index: &aws_sdk_dynamodb::types::GlobalSecondaryIndexDescription| {
            GlobalSecondaryIndex::builder()
                .set_index_name(index.index_name.clone())
                .set_key_schema(index.key_schema.clone())
                .set_projection(index.projection.clone())
                .build()
        };
        let indexes = described.global_secondary_indexes().iter().map(index).collect::<Result<_, _>>()?;
        let (keys, attributes) = (described.key_schema().to_vec(), described.attribute_definitions().to_vec());
        Ok(Self { keys, attributes, indexes })
    }

    /// Creates a table with them, without a stream.
    pub(crate) async fn make(&self, client: &Client, table: &str) -> anyhow::Result<()> {
        client
            .create_table()
            .table_name(table)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(self.keys.clone()))
            .set_attribute_definitions(Some(self.attributes.clone()))
            .set_global_secondary_indexes(Some(self.indexes.clone()))
            .send()
            .await?;
        Ok(())
    }
}

/// Puts the user, and this many comments with the user's name.
pub(crate) async fn fill(client: &Client, table: &str, n_items: usize) -> anyhow::Result<()> {
    let mut user = user_key();
    user.extend(item([
        ("EntityType", "User"),
        ("Name", "Grace"),
        ("Email", "grace@example.com"),
        ("CreatedAt", "2024-01-01T00:00:00.000Z"),
        ("UpdatedAt", "2024-01-01T00:00:00.000Z"),
    ]));
    client.put_item().table_name(table).set_item(Some(user)).send().await?;
    let comments = comments(n_items);
    let puts = comments.chunks(BATCH_MAX).map(|batch| async move {
        let put = |comment: &Comment| anyhow::Ok(PutRequest::builder().set_item(Some(comment.item())).build()?);
        let put = |comment| anyhow::Ok(WriteRequest::builder().put_request(put(comment)?).build());
        let puts = batch.iter().map(put).collect::<Result<_, _>>()?;
        let written = client.batch_write_item().request_items(table, puts).send().await?;
        anyhow::ensure!(written.unprocessed_items.is_none_or(|left| left.is_empty()), "the database takes all");
        Ok(())
    });
    stream::iter(puts).buffer_unordered(BATCHES_AT_ONCE).try_for_each(|()| async { Ok(()) }).await
}

/// Gives a table a stream.
pub(crate) async fn stream(client: &Client, table: &str) -> anyhow::Result<()> {
    let stream = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()?;
    client.update_table().table_name(table).stream_specification(stream).send().await?;
    Ok(())
}
