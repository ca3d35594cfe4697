//! A table of another shape, declared in `examples/own-table/ripple.toml`. An application writes both halves of a follow
//! itself, mostly, and not always right; and derivations are added, changed, renamed and dropped while it is written to.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use serde_json::{Value, json};
use support::database::embedded_endpoint;
use tempfile::TempDir;
use tokio::{
    task::JoinSet,
    time::{Instant, interval},
};

use crate::{
    database::{Item, TABLE, client, item, n, put, s},
    recount::RIGHT_WAIT,
    ripple::{Ripple, VerifyOutput, json, ripple, said},
};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");

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

// ---- Derivations are added, changed, renamed and dropped ----

/// Users who follow each other before anything counts whom they follow.
const N_USERS: usize = 40;

/// Others who begin to follow at the same time, so that the stream is never empty.
const N_WRITERS: usize = 10;

/// How often each of them looks whether his follow is shown.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A count that the example does not have.
const FOLLOWING: &str = r#"
[derivation.following-count]
kind = "count"
from = "Follow"
into = "User.followingCount"
link = { userId = "followerId" }
"#;

/// What the table is declared as, one version after the other.
struct Manifests {
    folder: TempDir,
    shipped: String,
}

impl Manifests {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), shipped: fs::read_to_string(MANIFEST).unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// With whom a user follows counted.
    fn counting(&self) -> String {
        let displayed = self.shipped.replace(r#"["followerCount"]"#, r#"["followerCount", "followingCount"]"#);
        assert_ne!(displayed, self.shipped);
        displayed + FOLLOWING
    }
}

/// `ripple dev` with a manifest.
async fn deployed(endpoint: &str, manifest: &str) -> Ripple {
    Ripple::dev(&["--endpoint", endpoint, "--config", manifest]).await
}

/// `ripple catalogue diff`: its exit code, and by state the derivations, those in step left out.
fn diff(endpoint: &str, manifest: &str) -> (Option<i32>, Vec<[String; 2]>, Value) {
    let arguments = ["diff", "--endpoint", endpoint, "--config", manifest, "--json"];
    let output = ripple("catalogue", &arguments).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let all = report["derivations"].as_array().unwrap().iter();
    let stands = all.map(|entry| [text(entry, "state"), text(entry, "derivation")]);
    (output.status.code(), stands.filter(|[state, _]| state != "up_to_date").collect(), report)
}

fn stands(states: &[[&str; 2]]) -> Vec<[String; 2]> {
    states.iter().map(|state| state.map(str::to_owned)).collect()
}

fn follow(follower: usize, followed: usize, since: &str) -> crate::database::Item {
    item([
        ("pk", format!("USER#u{follower}")),
        ("sk", format!("FOLLOWS#u{followed}")),
        ("Type", "Follow".to_owned()),
        ("since", since.to_owned()),
    ])
}

async fn people(client: &Client) {
    for nth in 0..N_USERS {
        let user = [("pk", format!("USER#u{nth}")), ("sk", format!("USER#u{nth}")), ("Type", "User".to_owned())];
        put(client, item(user)).await;
        put(client, follow(nth, (nth + 1) % N_USERS, if nth % 2 == 0 { "2023" } else { "2024" })).await;
    }
}

/// Others who begin to follow all the time, some at once; the first of them is this one. They end with what is given.
fn busy(client: &Client, first: usize) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let (mut writers, n_begun) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..N_WRITERS {
        let (client, n_begun) = (client.clone(), Arc::clone(&n_begun));
        writers.spawn(async move {
            loop {
                let nth = first + n_begun.fetch_add(1, Ordering::Relaxed);
                put(&client, follow(nth, nth % N_USERS, "2023")).await;
                // Writers are only as fast as the functions, or the backlog would grow while the machine is busy.
                let mut again = interval(LOOK_EVERY);
                while !is_shown(&client, nth).await {
                    again.tick().await;
                }
            }
        });
    }
    (writers, n_begun)
}

/// Does the count that the followed user shows have the follow of one of the others?
async fn is_shown(client: &Client, nth: usize) -> bool {
    let key = format!("USER#u{}", nth % N_USERS);
    let user = item([("pk", key.clone()), ("sk", key)]);
    let user = client.get_item().table_name(TABLE).set_key(Some(user)).send().await.unwrap().item.unwrap();
    let shown = user.get("followerCount").and_then(|count| count.as_n().ok()?.parse::<usize>().ok());
    // One of the people follows each user, and of the others every so many-th.
    shown.is_some_and(|shown| shown > nth / N_USERS)
}

/// The database, and whoever asks it.
struct Table {
    endpoint: String,
    client: Client,
    manifests: Manifests,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn derivations_are_added_changed_renamed_and_dropped_while_somebody_writes() {
    let endpoint = embedded_endpoint().await;
    let table = Table { client: client(&endpoint), endpoint, manifests: Manifests::new() };
    let first = table.manifests.file("first.toml", &table.manifests.shipped);
    let first = first.to_str().unwrap();
    let mut service = deployed(&table.endpoint, first).await;
    people(&table.client).await;
    service.caught_up(&table.client).await;
    assert_eq!(diff(&table.endpoint, first).1, stands(&[]), "the table was made with it");
    let (service, n_others) = table.is_added(service).await;
    let (service, changed) = table.is_changed(service, n_others).await;
    let service = table.is_renamed(service, &changed).await;
    table.is_dropped(service, first).await;
}

impl Table {
    /// What was there before is missing, and counted by a backfill. Gives how many others follow by then.
    async fn is_added(&self, service: Ripple) -> (Ripple, usize) {
        let Self { endpoint, client, manifests } = self;
        let counting = manifests.file("counting.toml", &manifests.counting());
        let counting = counting.to_str().unwrap();
        let (code, stood, report) = diff(endpoint, counting);
        let new = [["added", "following-count"], ["added", "following-count-display"]];
        assert_eq!((code, stood), (Some(3), stands(&new)), "{report:#}");
        let cost = report["derivations"].as_array().unwrap().iter().find(|it| it["derivation"] == "following-count");
        assert_eq!(cost.unwrap()["write_units_max"], json!(6.0 * 40.0), "{report:#}");
        let refused = said("backfill", endpoint, &["following-count", "--config", counting]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains("no function has registered following-count"), "{refused:?}");

        assert_eq!(service.stop().code(), Some(0));
        let mut service = deployed(endpoint, counting).await;
        // Nobody has written since it was deployed; another instance may lack it for a second or two.
        let (_, stood, report) = diff(endpoint, counting);
        let has_report = |[state, _]: &[String; 2]| ["deployed", "to_fill"].contains(&state.as_str());
        assert!(stood.len() == 2 && stood.iter().all(has_report), "{report:#}");
        let (writers, n_begun) = busy(client, N_USERS);
        service.line(|line| line.starts_with("aggregate")).await;
        let before = n_begun.load(Ordering::Relaxed);
        let (code, report) = json("backfill", endpoint, &["following-count", "--config", counting]);
        assert_eq!((code, &report["undecided"]), (Some(0), &json!(0)), "{report:#}");
        assert!(report["done"].as_u64().unwrap() >= 40, "{report:#}");
        assert!(n_begun.load(Ordering::Relaxed) > before, "nobody has written meanwhile, so nothing was shown");
        assert_eq!(json("verify", endpoint, &["--config", counting]).1["findings"], json!([]));
        drop(writers);
        (service, n_begun.load(Ordering::Relaxed))
    }

    /// The same name counts something else.
    async fn is_changed(&self, service: Ripple, n_others: usize) -> (Ripple, String) {
        let Self { endpoint, client, manifests } = self;
        assert_eq!(service.stop().code(), Some(0));
        let text = manifests.counting() + "where = { since = \"2023\" }\n";
        let changed = manifests.file("changed.toml", &text);
        let changed = changed.to_str().unwrap();
        let (_, stood, report) = diff(endpoint, changed);
        assert!(stood.contains(&["changed", "following-count"].map(str::to_owned)), "{report:#}");
        let mut service = deployed(endpoint, changed).await;
        let (writers, _) = busy(client, N_USERS + n_others);
        service.line(|line| line.starts_with("aggregate")).await;
        let (code, report) = json("backfill", endpoint, &["following-count", "--config", changed]);
        assert_eq!((code, &report["refused"]), (Some(0), &json!(0)), "{report:#}");
        drop(writers);
        service.caught_up(client).await;
        let (code, report) = json("verify", endpoint, &["--config", changed]);
        assert_eq!((code, &report["unproven"]), (Some(0), &json!(0)), "{report:#}");
        let (code, stood, report) = diff(endpoint, changed);
        assert_eq!((code, stood), (Some(0), stands(&[])), "{report:#}");
        let all = report["derivations"].as_array().unwrap().iter();
        assert_eq!(all.filter(|it| it["version"] == json!(2)).count(), 1, "{report:#}");
        (service, text)
    }

    /// Of a copy nobody stores the name.
    async fn is_renamed(&self, service: Ripple, text: &str) -> Ripple {
        let Self { endpoint, client, manifests } = self;
        assert_eq!(service.stop().code(), Some(0));
        let text = text.replace("[derivation.follower-name]", "[derivation.name-copy]");
        let renamed = manifests.file("renamed.toml", &text);
        let renamed = renamed.to_str().unwrap();
        let (_, stood, report) = diff(endpoint, renamed);
        assert_eq!(stood, stands(&[["renamed", "name-copy"], ["undeclared", "follower-name"]]), "{report:#}");
        let mut service = deployed(endpoint, renamed).await;
        put(client, follow(1, 2, "2024")).await;
        service.caught_up(client).await;
        assert_eq!(diff(endpoint, renamed).1, stands(&[["dropped", "follower-name"]]));
        service
    }

    /// Its counters are what nothing explains.
    async fn is_dropped(&self, service: Ripple, first: &str) {
        let Self { endpoint, client, .. } = self;
        assert_eq!(service.stop().code(), Some(0));
        let mut service = deployed(endpoint, first).await;
        put(client, follow(1, 3, "2024")).await;
        service.caught_up(client).await;
        // For a second or two an instance that has it may still run, and until then nothing is deleted.
        let mut n_done = 0;
        let repaired = loop {
            let (code, report) = json("repair", endpoint, &["--config", first, "--apply"]);
            n_done += report["done"].as_u64().unwrap();
            if report["refused"] == json!(0) {
                break code;
            }
        };
        assert_eq!(repaired, Some(0));
        assert!(n_done >= 20, "{n_done} counters were deleted");
        let names = ["following-count", "following-count-display", "name-copy"];
        let forget = [&["forget", "--endpoint", endpoint, "--config", first], &names[..]].concat();
        for (name, why) in [("follower-count", "the functions have it"), ("following-cout", "did you mean")] {
            let wrong = [&forget[..5], &[name]].concat();
            let refused = ripple("catalogue", &wrong).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(refused.status.code() == Some(2) && said.contains(why), "{said}");
        }
        assert_eq!(ripple("catalogue", &forget).output().unwrap().status.code(), Some(0));
        let (code, stood, report) = diff(endpoint, first);
        assert_eq!((code, stood), (Some(0), stands(&[])), "the copy has its first name again: {report:#}");
        assert_eq!(service.stop().code(), Some(0));
    }
}
