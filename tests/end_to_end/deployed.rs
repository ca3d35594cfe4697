//! Derivations that are added, changed, renamed and dropped on a table that is written to all the time.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use support::database::embedded_endpoint;
use tempfile::TempDir;
use tokio::{task::JoinSet, time::interval};

use crate::{
    database::{TABLE, client, put},
    items::item,
    ripple::{Ripple, json, ripple, said},
};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");

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
