//! What is logged holds no name, no email and no text of any item.

use std::{collections::BTreeSet, process::Output, time::Duration};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use serde_json::Value;
use support::database::embedded_endpoint;

use crate::{
    NOON,
    database::{client, comment, like, put, scan, user},
    ripple::{Ripple, json, ripple, said},
};

/// How often the tables are read while the demonstration runs.
const POLL: Duration = Duration::from_millis(200);

/// Attributes whose values are of a few known words, or ids of the table: logs may have those.
const WORDS: [&str; 10] =
    ["PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "EntityType", "Status", "Category", "Role"];

/// Texts that are shorter stand in other words by chance.
const LETTERS_MIN: usize = 4;

/// The texts of the items that are not ids, times, or of a few known words.
async fn texts(client: &Client) -> BTreeSet<String> {
    let tables = client.list_tables().send().await.map(|listed| listed.table_names.unwrap_or_default());
    let mut texts = BTreeSet::new();
    for table in tables.unwrap_or_default().iter().filter(|name| !name.ends_with("-ledger")) {
        // The demonstration deletes its tables at its end.
        if client.describe_table().table_name(table).send().await.is_err() {
            continue;
        }
        // Jobs are the service's own, and hold keys.
        let items = scan(client, table).await.into_iter().filter(|((pk, _), _)| !pk.starts_with("JOBS#"));
        for (name, value) in items.flat_map(|(_, item)| item) {
            let is_word = WORDS.contains(&name.as_str()) || name.ends_with("Id") || name.ends_with("At");
            if let (AttributeValue::S(text), false) = (value, is_word) {
                texts.extend((text.len() >= LETTERS_MIN).then_some(text));
            }
        }
    }
    texts
}

/// The texts that stand in a log, each with its line.
fn leaks<'a>(texts: &'a BTreeSet<String>, log: &'a str) -> Vec<(&'a str, &'a str)> {
    let of_line =
        |line: &'a str| texts.iter().filter(|text| line.contains(*text)).map(move |text| (text.as_str(), line));
    log.lines().flat_map(of_line).collect()
}

#[test]
fn a_leak_is_found() {
    let texts = BTreeSet::from(["ada@example.com", "Ada Lovelace"].map(str::to_owned));
    let log =
        "INFO handled\nWARN GetItem on EMAIL#ada@example.com / CLAIM: refused\nERROR numeric value: Ada Lovelace!";
    let found: Vec<&str> = leaks(&texts, log).into_iter().map(|(text, _)| text).collect();
    assert_eq!(found, ["ada@example.com", "Ada Lovelace"]);
    assert_eq!(leaks(&texts, "WARN GetItem on EMAIL#… / CLAIM: refused"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_the_logs_of_a_demonstration_is_a_name_an_email_or_a_text_of_an_item() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let arguments = ["--writes", "500", "--seed", "7", "--endpoint", &endpoint];
    let mut demo = ripple("demo", &arguments);
    demo.env("RUST_LOG", "trace");
    let running = tokio::task::spawn_blocking(move || demo.output().expect("ripple starts"));
    let (mut all, mut ticks) = (BTreeSet::new(), tokio::time::interval(POLL));
    while !running.is_finished() {
        ticks.tick().await;
        all.extend(texts(&client).await);
    }
    let Output { status, stdout, stderr } = running.await.unwrap();
    let log = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(0), "{log}");
    // There was something that could leak, and a log that it could leak into.
    for kind in ["@example.", ", who is new", ".png"] {
        assert!(all.iter().any(|text| text.contains(kind)), "no text of an item has {kind}");
    }
    assert!(log.contains("started a cascade"), "{log}");
    assert_eq!(leaks(&all, &log), []);
}

// ---- `ripple rates` counts what was written, and `ripple cost` takes what it prints ----

/// How many changes of an entity, or fan-outs of a derivation, a rate stands for.
fn n_of(rates: &Value, list: &str, by: &str, name: &str) -> f64 {
    let entry = rates[list].as_array().unwrap().iter().find(|entry| entry[by] == name);
    (entry.map_or(0.0, |entry| entry["a_second"].as_f64().unwrap()) * rates["seconds"].as_f64().unwrap()).round()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_are_those_of_what_was_written_and_cost_takes_them() {
    let mut service = Ripple::embedded(&[]).await;
    let client = client(&service.endpoint);
    for id in ["ann", "bob"] {
        put(&client, user(id, id, NOON)).await;
    }
    for id in ["c1", "c2", "c3"] {
        put(&client, comment("p", id, NOON, "ann", "Well said.")).await;
    }
    for post in ["p", "q"] {
        put(&client, like("bob", post, NOON)).await;
    }
    service.caught_up(&client).await;
    put(&client, user("ann", "Anna", NOON)).await;
    service.caught_up(&client).await;

    let (code, rates) = json("rates", &service.endpoint, &[]);
    assert_eq!(code, Some(0), "{rates}");
    for (entity, n) in [("User", 2.0), ("Comment", 3.0), ("Like", 2.0), ("Follow", 0.0)] {
        assert!((n_of(&rates, "entities", "entity", entity) - n).abs() < 0.5, "{entity}: {rates}");
    }
    assert!((n_of(&rates, "fan_outs", "derivation", "comment-author") - 1.0).abs() < 0.5, "{rates}");
    let fan_outs = rates["fan_outs"].as_array().unwrap();
    let items = fan_outs.iter().find(|it| it["derivation"] == "comment-author").map(|it| it["items"].as_f64());
    assert_eq!(items, Some(Some(3.0)), "the three comments were written again, after each had got a name: {rates}");
    let targets = rates["targets"].as_array().unwrap();
    let likes = targets.iter().find(|it| it["derivation"] == "like-count").map(|it| it["targets"].as_u64());
    assert_eq!(likes, Some(Some(2)));

    let options = said("rates", &service.endpoint, &[]).stdout;
    let words: Vec<&str> = options.split_whitespace().collect();
    let cost = ripple("cost", &words).output().unwrap();
    assert!(cost.status.success(), "{options}: {}", String::from_utf8_lossy(&cost.stderr));
}
