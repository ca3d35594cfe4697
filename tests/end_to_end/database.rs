//! The database, as a client that is not ours sees it, and items of the application, their attributes and index keys
//! written out by hand.

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

pub(crate) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Key {
    (pk.into(), sk.into())
}

pub(crate) fn key_item((pk, sk): &Key) -> Item {
    Item::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))])
}

pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

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

pub(crate) async fn put(client: &Client, item: Item) {
    client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

/// Puts items, one after the other.
pub(crate) async fn put_each(client: &Client, items: impl IntoIterator<Item = Item>) {
    for item in items {
        put(client, item).await;
    }
}

/// Makes a counter one that cannot be added to, so that each change of it is parked.
pub(crate) async fn make_unaddable(client: &Client, counter: &Key) {
    alter(client, counter, "EntityType", Some(s("Counter"))).await;
    alter(client, counter, "Value", Some(s("many"))).await;
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

pub(crate) async fn delete(client: &Client, key: &Key) {
    client.delete_item().table_name(TABLE).set_key(Some(key_item(key))).send().await.unwrap();
}

// ---- Items of the application ----

/// An item of these texts.
pub(crate) fn item<'a>(attributes: impl IntoIterator<Item = (&'a str, String)>) -> Item {
    attributes.into_iter().map(|(name, text)| (name.to_owned(), s(text))).collect()
}

/// An id as it stands in a key.
pub(crate) fn segment(id: &str) -> String {
    id.replace('%', "%25").replace('#', "%23")
}

/// The id of a segment of a key.
pub(crate) fn id(segment: &str) -> String {
    segment.replace("%23", "#").replace("%25", "%")
}

/// The suffix of a static partition key: CRC-32 of the id, mod 8, two digits.
pub(crate) fn spread(id: &str) -> String {
    let mut crc = u32::MAX;
    for byte in id.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    format!("{:02}", !crc % 8)
}

pub(crate) fn user(user: &str, name: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", "PROFILE".to_owned()),
        ("EntityType", "User".to_owned()),
        ("GSI1PK", format!("EMAIL#{}", segment(&format!("{user}@example.com")))),
        ("GSI1SK", format!("USER#{}", segment(user))),
        ("GSI2PK", format!("USERS#{}", spread(user))),
        ("GSI2SK", format!("{at}#{}", segment(user))),
        ("Name", name.to_owned()),
        ("Email", format!("{user}@example.com")),
        ("Avatar", format!("https://example.com/{name}.png")),
        ("CreatedAt", at.to_owned()),
        ("UpdatedAt", at.to_owned()),
    ])
}

pub(crate) fn follow(follower: &str, followee: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(follower))),
        ("SK", format!("FOLLOWS#{}", segment(followee))),
        ("EntityType", "Follow".to_owned()),
        ("CreatedAt", at.to_owned()),
        ("UpdatedAt", at.to_owned()),
    ])
}

/// A folder in another.
pub(crate) fn folder(folder: &str, parent: &str) -> Item {
    item([
        ("PK", format!("FOLDER#{folder}")),
        ("SK", "METADATA".to_owned()),
        ("EntityType", "Folder".to_owned()),
        ("GSI1PK", format!("FOLDER#{parent}")),
        ("GSI1SK", format!("FOLDER#{folder}#{folder}")),
        ("Name", folder.to_owned()),
        ("ParentId", parent.to_owned()),
    ])
}

pub(crate) fn post(author: &str, post: &str, at: &str, status: &str, title: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(author))),
        ("SK", format!("POST#{at}#{}", segment(post))),
        ("EntityType", "Post".to_owned()),
        ("Title", title.to_owned()),
        ("Content", "Lorem ipsum dolor sit amet.".to_owned()),
        ("Status", status.to_owned()),
    ])
}

pub(crate) fn comment(post: &str, comment: &str, at: &str, user: &str, text: &str) -> Item {
    item([
        ("PK", format!("POST#{}", segment(post))),
        ("SK", format!("COMMENT#{at}#{}", segment(comment))),
        ("EntityType", "Comment".to_owned()),
        ("GSI1PK", format!("USER#{}", segment(user))),
        ("GSI1SK", format!("COMMENT#{at}#{}", segment(comment))),
        ("UserId", user.to_owned()),
        ("Text", text.to_owned()),
    ])
}

pub(crate) fn like(user: &str, post: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("LIKE#POST#{}", segment(post))),
        ("EntityType", "Like".to_owned()),
        ("GSI1PK", format!("POST#{}", segment(post))),
        ("GSI1SK", format!("LIKE#USER#{}", segment(user))),
        ("CreatedAt", at.to_owned()),
    ])
}

pub(crate) fn view(user: &str, post: &str, at: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("VIEW#{at}#{}", segment(post))),
        ("EntityType", "View".to_owned()),
    ])
}

pub(crate) fn group(group: &str, name: &str) -> Item {
    item([
        ("PK", format!("GROUP#{}", segment(group))),
        ("SK", "METADATA".to_owned()),
        ("EntityType", "Group".to_owned()),
        ("Name", name.to_owned()),
        ("Description", "Those who are in it".to_owned()),
    ])
}

pub(crate) fn membership(user: &str, group: &str, role: &str) -> Item {
    item([
        ("PK", format!("USER#{}", segment(user))),
        ("SK", format!("GROUP#{}", segment(group))),
        ("EntityType", "Membership".to_owned()),
        ("Role", role.to_owned()),
    ])
}
