//! The database, as a client that is not ours sees it.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Config, Credentials, Region, retry::RetryConfig},
    types::AttributeValue,
};

/// The application's table.
pub(crate) const TABLE: &str = "ripple";

/// The ledger's table.
pub(crate) const LEDGER: &str = "ripple-ledger";

/// An item.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A primary key: `PK` and `SK`.
pub(crate) type Key = (String, String);

/// A client that sends everything once.
pub(crate) fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("somebody", "else", None, None, "an emulator takes any"))
        .retry_config(RetryConfig::disabled())
        .build();
    Client::from_conf(config)
}

/// A key of these two texts.
pub(crate) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Key {
    (pk.into(), sk.into())
}

/// The key attributes.
pub(crate) fn key_item((pk, sk): &Key) -> Item {
    Item::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))])
}

/// A value of type S.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A value of type N.
pub(crate) fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The whole table.
pub(crate) async fn scan(client: &Client, table: &str) -> BTreeMap<Key, Item> {
    let mut pages = client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let mut items = BTreeMap::new();
    while let Some(item) = pages.next().await {
        let item = item.unwrap();
        let text = |name: &str| item[name].as_s().unwrap().clone();
        items.insert(key(text("PK"), text("SK")), item);
    }
    items
}

/// Puts an item.
pub(crate) async fn put(client: &Client, item: Item) {
    client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

/// Sets one attribute of an item, or removes it.
pub(crate) async fn alter(client: &Client, key: &Key, name: &str, value: Option<AttributeValue>) {
    let update = client.update_item().table_name(TABLE).set_key(Some(key_item(key)));
    let update = update.expression_attribute_names("#a", name);
    let update = match value {
        Some(value) => update.update_expression("SET #a = :a").expression_attribute_values(":a", value),
        None => update.update_expression("REMOVE #a"),
    };
    update.send().await.unwrap();
}

/// Deletes an item.
pub(crate) async fn delete(client: &Client, key: &Key) {
    client.delete_item().table_name(TABLE).set_key(Some(key_item(key))).send().await.unwrap();
}
