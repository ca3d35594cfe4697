//! A table of another shape, declared in `examples/own-table/ripple.toml`, and an application that writes both halves
//! of a follow itself: mostly, and not always right.

use std::{collections::BTreeMap, fs, time::Duration};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use serde_json::json;
use support::database::embedded_endpoint;
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, TABLE, client, n, put, s},
    items::item,
    ripple::{Ripple, VerifyOutput, json},
};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");

/// Longest wait until all is right.
const RIGHT_WAIT: Duration = Duration::from_mins(1);

/// How often it is looked.
const RIGHT_POLL: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_another_shape_is_kept_right_without_rust() {
    is_kept_right(MANIFEST, Typed::Yes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_a_type_attribute_is_kept_right_by_its_keys() {
    let text = fs::read_to_string(MANIFEST).unwrap();
    let untyped = text.replace("type = \"Type\"\n", "");
    assert_ne!(text, untyped);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ripple.toml");
    fs::write(&file, untyped).unwrap();
    is_kept_right(file.to_str().unwrap(), Typed::No).await;
}

/// Do items say of which entity they are?
#[derive(Clone, Copy, PartialEq)]
enum Typed {
    Yes,
    No,
}

impl Typed {
    fn put(self, mut item: Item) -> Item {
        // Derived items alone name their entity, also those that an application wrote.
        if self == Self::No
            && let Some(of) = item.remove("Type").filter(|of| *of == s("FollowedBy"))
        {
            item.insert("RippleType".to_owned(), of);
        }
        item
    }

    /// The lines of the items, in the form of the expectations.
    fn lines(self, lines: &[&str]) -> Vec<String> {
        let types = [(" User ", " "), (" FollowedBy ", " RippleType=FollowedBy "), (" Follow ", " ")];
        let types = types.into_iter().filter(|_| self == Self::No);
        let untyped = |line: &&str| types.clone().fold((*line).to_owned(), |line, (from, to)| line.replace(from, to));
        lines.iter().map(untyped).collect()
    }
}

async fn is_kept_right(manifest: &str, typed: Typed) {
    let endpoint = embedded_endpoint().await;
    let arguments = ["--endpoint", endpoint.as_str(), "--config", manifest];
    let service = Ripple::dev(&arguments).await;
    let client = client(&endpoint);
    for item in town() {
        put(&client, typed.put(item)).await;
    }
    let settled = typed.lines(&[
        "USER#ada / FOLLOWEDBY#grace FollowedBy followerName=Grace since=2024-02-01",
        "USER#ada / FOLLOWEDBY#lin FollowedBy followerName=Lin since=2024-02-03",
        "USER#ada / FOLLOWS#grace Follow followedName=Grace since=2024-02-02",
        "USER#ada / SETTINGS theme=dark",
        "USER#ada / USER#ada User followerCount=2 joinedOn=2024-01-15 userName=Ada",
        "USER#grace / FOLLOWEDBY#ada FollowedBy followerName=Ada since=2024-02-02",
        "USER#grace / FOLLOWS#ada Follow followedName=Ada since=2024-02-01",
        "USER#grace / USER#grace User followerCount=1 joinedOn=2024-01-16 userName=Grace",
        "USER#lin / FOLLOWS#ada Follow followedName=Ada since=2024-02-03",
        "USER#lin / USER#lin User joinedOn=2024-01-17 userName=Lin",
    ]);
    becomes(&client, &settled, &[("USER#ada", 2), ("USER#grace", 1)]).await;

    put(&client, typed.put(user("ada", "Ada Lovelace", "2024-01-15"))).await;
    delete(&client, "USER#lin", "FOLLOWS#ada").await;
    let renamed = typed.lines(&[
        "USER#ada / FOLLOWEDBY#grace FollowedBy followerName=Grace since=2024-02-01",
        "USER#ada / FOLLOWS#grace Follow followedName=Grace since=2024-02-02",
        "USER#ada / SETTINGS theme=dark",
        "USER#ada / USER#ada User followerCount=1 joinedOn=2024-01-15 userName=Ada Lovelace",
        "USER#grace / FOLLOWEDBY#ada FollowedBy followerName=Ada Lovelace since=2024-02-02",
        "USER#grace / FOLLOWS#ada Follow followedName=Ada Lovelace since=2024-02-01",
        "USER#grace / USER#grace User followerCount=1 joinedOn=2024-01-16 userName=Grace",
        "USER#lin / USER#lin User joinedOn=2024-01-17 userName=Lin",
    ]);
    let counts = [("USER#ada", 1), ("USER#grace", 1)];
    becomes(&client, &renamed, &counts).await;
    assert_eq!(service.stop().code(), Some(0));
    let verified = verify(&endpoint, manifest);
    assert_eq!((verified.code, &verified.json["findings"]), (Some(0), &json!([])));
    assert_eq!(verified.json["ignored"], json!(1));

    // What is altered by hand while nothing runs is named, and mended once it runs.
    let half = ("USER#ada", "FOLLOWEDBY#grace");
    alter(&client, half, "followerName", s("Mallory")).await;
    alter(&client, ("USER#grace", "USER#grace"), "followerCount", n(99)).await;
    let verified = verify(&endpoint, manifest);
    assert_eq!(verified.code, Some(3), "{:#}", verified.json);
    let found = [["follower-count-display", "USER#grace", "USER#grace"], ["follower-name", half.0, half.1]];
    assert_eq!(verified.named("findings"), found);
    let service = Ripple::dev(&arguments).await;
    becomes(&client, &renamed, &counts).await;
    assert_eq!(service.stop().code(), Some(0));
    assert_eq!(verify(&endpoint, manifest).code, Some(0));
}

/// Three users, who follow each other by halves.
fn town() -> Vec<Item> {
    vec![
        item([("pk", "USER#ada".to_owned()), ("sk", "SETTINGS".to_owned()), ("theme", "dark".to_owned())]),
        // Both halves, of which one is wrong about the day.
        half("FOLLOWS", "Follow", ["grace", "ada"], "2024-02-01"),
        half("FOLLOWEDBY", "FollowedBy", ["ada", "grace"], "2023-12-31"),
        user("ada", "Ada", "2024-01-15"),
        user("grace", "Grace", "2024-01-16"),
        // The other half first.
        half("FOLLOWEDBY", "FollowedBy", ["grace", "ada"], "2024-02-02"),
        half("FOLLOWS", "Follow", ["ada", "grace"], "2024-02-02"),
        // The other half forgotten, and one that is left of a follow that is gone.
        half("FOLLOWS", "Follow", ["lin", "ada"], "2024-02-03"),
        half("FOLLOWEDBY", "FollowedBy", ["ada", "mallory"], "2024-02-04"),
        user("lin", "Lin", "2024-01-17"),
    ]
}

fn user(user: &str, name: &str, joined: &str) -> Item {
    item([
        ("pk", format!("USER#{user}")),
        ("sk", format!("USER#{user}")),
        ("Type", "User".to_owned()),
        ("userName", name.to_owned()),
        ("joinedOn", joined.to_owned()),
    ])
}

/// A half of a follow, in the collection of the first user.
fn half(prefix: &str, of: &str, [one, other]: [&str; 2], since: &str) -> Item {
    item([
        ("pk", format!("USER#{one}")),
        ("sk", format!("{prefix}#{other}")),
        ("Type", of.to_owned()),
        ("since", since.to_owned()),
    ])
}

fn key(pk: &str, sk: &str) -> Item {
    item([("pk", pk.to_owned()), ("sk", sk.to_owned())])
}

async fn delete(client: &Client, pk: &str, sk: &str) {
    client.delete_item().table_name(TABLE).set_key(Some(key(pk, sk))).send().await.unwrap();
}

async fn alter(client: &Client, (pk, sk): (&str, &str), name: &str, value: AttributeValue) {
    let update = client.update_item().table_name(TABLE).set_key(Some(key(pk, sk)));
    let update = update.expression_attribute_names("#a", name).expression_attribute_values(":a", value);
    update.update_expression("SET #a = :a").send().await.unwrap();
}

/// `ripple verify --config`
fn verify(endpoint: &str, manifest: &str) -> VerifyOutput {
    // Nothing runs when it is called.
    let (code, json) = json("verify", endpoint, &["--config", manifest, "--at-rest"]);
    VerifyOutput { code, json }
}

/// Waits until the table has these items, and its counters these counts by user.
async fn becomes(client: &Client, items: &[String], counts: &[(&str, i64)]) {
    let deadline = Instant::now() + RIGHT_WAIT;
    let mut again = interval(RIGHT_POLL);
    loop {
        again.tick().await;
        let (there, counted) = table(client).await;
        if there == items && counted.iter().map(|(pk, count)| (pk.as_str(), *count)).eq(counts.iter().copied()) {
            return;
        }
        assert!(Instant::now() < deadline, "{}\n{counted:?}", there.join("\n"));
    }
}

/// The items, a line each, without revisions and counters; and the counts that these hold, shards added up.
async fn table(client: &Client) -> (Vec<String>, Vec<(String, i64)>) {
    let mut pages = client.scan().table_name(TABLE).consistent_read(true).into_paginator().items().send();
    let (mut items, mut counts) = (Vec::new(), BTreeMap::new());
    while let Some(item) = pages.next().await {
        let mut item: BTreeMap<String, AttributeValue> = item.unwrap().into_iter().collect();
        let mut text = |name: &str| item.remove(name).map(|value| value.as_s().unwrap().clone()).unwrap_or_default();
        let (pk, sk, of) = (text("pk"), text("sk"), text("Type"));
        if sk.contains("#COUNT#") {
            assert!(["Counter", ""].contains(&of.as_str()), "{of}");
            assert_eq!(
                sk.strip_prefix(&pk).map(|rest| &rest[..rest.len() - 2]),
                Some("#COUNT#follower-count#"),
                "{pk}"
            );
            *counts.entry(pk).or_default() += item["Value"].as_n().unwrap().parse::<i64>().unwrap();
            continue;
        }
        let mut line = format!("{pk} / {sk} {of}").trim_end().to_owned();
        for (name, value) in item.iter().filter(|(name, _)| !name.ends_with(":rev")) {
            let value = value.as_s().or_else(|value| value.as_n()).unwrap();
            line.extend([" ", name, "=", value]);
        }
        items.push(line);
    }
    items.sort();
    (items, counts.into_iter().filter(|(_, count)| *count != 0).collect())
}
