//! `ripple verify`, `repair` and `backfill` while somebody writes all the time.

use std::{
    path::Path,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use serde_json::json;
use support::database::embedded_endpoint;
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, interval_at},
};

use crate::{
    NOON,
    application::Application,
    database::{Item, Key, TABLE, alter, client, delete, follow, item, key, n, put, put_each, s, scan, user},
    recount::right,
    ripple::{Ripple, json, ripple, said},
};

/// Actions of the application until it waits for the service.
const BURST_ACTIONS: usize = 20;

/// Users who follow each other in a ring, of whom the application knows nothing.
const N_USERS: usize = 60;

/// How the partition keys of theirs begin.
const THEIRS: [&str; 2] = ["--pk", "USER#ring"];

fn name(nth: usize) -> String {
    format!("ring{:02}", nth % N_USERS)
}

/// Puts the ring.
async fn ring(client: &Client) {
    for nth in 0..N_USERS {
        put(client, user(&name(nth), "R", NOON)).await;
        put(client, follow(&name(nth), &name(nth + 1), NOON)).await;
    }
}

fn counter(nth: usize, derivation: &str) -> Key {
    key(format!("USER#{}", name(nth)), format!("PROFILE#COUNT#{derivation}#00"))
}

/// Makes a hundred values wrong that do not mend themselves, and gives derivation and key of each.
async fn plant(client: &Client) -> Vec<[String; 3]> {
    let mut planted = Vec::new();
    let mut note = |derivation: &str, (pk, sk): Key| planted.push([derivation.to_owned(), pk, sk]);
    for nth in 0..30 {
        // Too high, negative, and not there.
        let wrong = counter(nth, "following-count");
        match nth % 3 {
            0 => alter(client, &wrong, "Value", Some(n(7))).await,
            1 => alter(client, &wrong, "Value", Some(n(-2))).await,
            _ => delete(client, &wrong).await,
        }
        note("following-count", wrong);
        // Of nobody, of a derivation that nobody declared, and a key of an index that its writer forgot.
        let nobody = key(format!("USER#ring-nobody{nth:02}"), "PROFILE#COUNT#follower-count#00".to_owned());
        put(client, counter_item(&nobody, 3)).await;
        note("follower-count", nobody);
        let dropped = counter(nth, "dropped-count");
        put(client, counter_item(&dropped, 5)).await;
        note("dropped-count", dropped);
    }
    for nth in 30..40 {
        let forgotten = key(format!("USER#{}", name(nth)), "PROFILE".to_owned());
        alter(client, &forgotten, "GSI2SK", Some(s("1999"))).await;
        note("index keys", forgotten);
    }
    planted.sort_unstable();
    planted
}

fn counter_item((pk, sk): &Key, value: i64) -> Item {
    let mut counter = item([("PK", pk.clone()), ("SK", sk.clone()), ("EntityType", "Counter".to_owned())]);
    counter.insert("Value".to_owned(), n(value));
    counter
}

/// What `ripple verify` finds of the ring, as derivation and key.
fn found(endpoint: &str) -> Vec<[String; 3]> {
    let (code, json) = json("verify", endpoint, &THEIRS);
    let nothing = ["undecided", "waiting", "unreadable"].map(|list| json[list] == json!([]));
    assert_eq!(nothing, [true; 3], "{json:#}");
    let entries = json["findings"].as_array().unwrap();
    let field = |entry: &serde_json::Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let mut found: Vec<[String; 3]> =
        entries.iter().map(|entry| ["derivation", "pk", "sk"].map(|name| field(entry, name))).collect();
    found.sort_unstable();
    assert_eq!(code, Some(if found.is_empty() { 0 } else { 3 }), "{json:#}");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_mend_itself_is_found_and_repaired_while_others_write() {
    let mut service = Ripple::embedded(&[]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    ring(&client).await;
    service.caught_up(&client).await;
    let (_clients, here) = watch::channel(client.clone());
    let (done, n_done) = watch::channel(0);
    let service = Arc::new(Mutex::new(service));
    let load = tokio::spawn(paced(Arc::clone(&service), client.clone(), here, done));

    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());
    let planted = plant(&client).await;
    assert_eq!(planted.len(), 100);
    assert_eq!(found(&endpoint), planted);

    let (code, report) = json("repair", &endpoint, &THEIRS);
    assert_eq!((code, &report["would"]), (Some(3), &json!(100)), "{report:#}");
    let (code, report) = json("repair", &endpoint, &[&THEIRS[..], &["--apply"]].concat());
    assert_eq!((code, &report["done"], &report["refused"]), (Some(3), &json!(70), &json!(30)), "{report:#}");
    delete_unexplained(&client, found(&endpoint)).await;
    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());

    // The counters of a whole derivation are dropped, and built anew.
    for nth in 0..N_USERS {
        delete(&client, &counter(nth, "following-count")).await;
    }
    assert_eq!(found(&endpoint).len(), N_USERS);
    let (code, report) = json("backfill", &endpoint, &[&["following-count"], &THEIRS[..]].concat());
    assert_eq!((code, &report["done"]), (Some(0), &json!(N_USERS)), "{report:#}");
    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());
    assert!(!load.is_finished(), "the others have ended before, so nothing was shown");
    assert!(*n_done.borrow() > 0, "the others have done nothing");
    load.abort();
    right(&client).await;
}

/// Deletes by hand what no repair deletes, and nothing else is left: counters of a derivation that no function ever had.
async fn delete_unexplained(client: &Client, found: Vec<[String; 3]>) {
    assert_eq!(found.len(), 30);
    for [derivation, pk, sk] in found {
        assert_eq!(derivation, "dropped-count");
        delete(client, &(pk, sk)).await;
    }
}

/// Others who write, for as long as they are let: in bursts, each after the service has caught up, so that no machine is
/// too slow for it.
async fn paced(service: Arc<Mutex<Ripple>>, client: Client, here: watch::Receiver<Client>, done: watch::Sender<usize>) {
    let mut application = Application::new(7);
    for n_bursts in 1.. {
        for _ in 0..BURST_ACTIONS {
            application.act(&here).await;
        }
        done.send_replace(n_bursts * BURST_ACTIONS);
        service.lock().await.caught_up(&client).await;
    }
}

/// Begins a command that reads so slowly that it can be killed on the way, and kills it.
async fn killed(command: &str, endpoint: &str, arguments: &[&str], file: &Path) {
    let slowly = ["--read-units", "5", "--segments", "1", "--json", "--endpoint", endpoint, "--progress"];
    let mut child: Child = ripple(command, &[arguments, &slowly, &[file.to_str().unwrap()]].concat())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let on_the_way = Duration::from_millis(1_500);
    interval_at(Instant::now() + on_the_way, on_the_way).tick().await;
    assert!(child.try_wait().unwrap().is_none(), "{command} has ended, so nothing is shown");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_killed_goes_on_and_ends_right() {
    let mut service = Ripple::embedded(&[]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    ring(&client).await;
    service.caught_up(&client).await;
    let planted = plant(&client).await;
    let folder = tempfile::tempdir().unwrap();
    let resumed = |command: &str, arguments: &[&str], file: &Path| {
        let more = ["--segments", "1", "--progress", file.to_str().unwrap()];
        json(command, &endpoint, &[arguments, &more].concat())
    };

    let file = folder.path().join("verify");
    killed("verify", &endpoint, &[], &file).await;
    put(&client, user("ringer", "A", NOON)).await;
    put(&client, follow("ringer", "ring00", NOON)).await;
    let (code, report) = resumed("verify", &[], &file);
    assert_eq!((code, report["findings"].as_array().unwrap().len()), (Some(3), planted.len()), "{report:#}");

    let file = folder.path().join("repair");
    killed("repair", &endpoint, &["--apply"], &file).await;
    put(&client, follow("ringer", "ring01", NOON)).await;
    let (code, report) = resumed("repair", &["--apply"], &file);
    assert_eq!((code, &report["done"], &report["refused"]), (Some(3), &json!(70), &json!(30)), "{report:#}");
    // Once more, it adds nothing once more.
    assert_eq!(resumed("repair", &["--apply"], &file).0, Some(3));
    delete_unexplained(&client, found(&endpoint)).await;
    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());

    for nth in 0..N_USERS {
        delete(&client, &counter(nth, "following-count")).await;
    }
    let file = folder.path().join("backfill");
    killed("backfill", &endpoint, &["following-count"], &file).await;
    assert_eq!(resumed("backfill", &["following-count"], &file).0, Some(0));
    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());
    right(&client).await;
}

/// A counter of a derivation that the command lacks is right as long as the functions have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_lacks_derivations_of_the_functions_repairs_nothing() {
    let mut service = Ripple::embedded(&[]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    ring(&client).await;
    service.caught_up(&client).await;
    let before = scan(&client, TABLE).await;
    let lacking = ["--disable", "follower-count,follower-count-display"];
    let repairs: [(&str, &[&str]); 7] = [
        ("repair", &["--apply"]),
        ("repair", &["--apply", "--at-rest"]),
        ("repair", &["--apply", "--derivation", "like-count"]),
        ("repair", &["--apply", "--derivation", "like-count", "--at-rest"]),
        ("repair", &[]),
        ("backfill", &["like-count"]),
        ("backfill", &["like-count", "--at-rest"]),
    ];
    for (command, arguments) in repairs {
        let said = said(command, &endpoint, &[&lacking[..], arguments].concat());
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{command} {arguments:?}: {}", said.stderr);
        let names = "the functions have follower-count, follower-count-display, which this manifest lacks";
        assert!(said.stderr.contains(names), "{}", said.stderr);
        assert!(said.stderr.contains("without --disable and DISABLED"), "{}", said.stderr);
    }
    assert_eq!(scan(&client, TABLE).await, before);
    assert_eq!(found(&endpoint), Vec::<[String; 3]>::new());
    let (code, report) = json("repair", &endpoint, &["--apply"]);
    assert_eq!((code, &report["done"]), (Some(0), &json!(0)), "{report:#}");
}

/// A change of another derivation is parked, so a backfill marks nothing as filled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_beside_a_parked_change_says_that_it_has_to_be_run_again() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let mut service = Ripple::dev(&["--endpoint", &endpoint, "--disable", "like-count,like-count-display"]).await;
    put_each(&client, [user("ada", "Ada", NOON), user("bob", "Bob", NOON), follow("bob", "ada", NOON)]).await;
    service.caught_up(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    alter(&client, &key("USER#ada", "PROFILE#COUNT#follower-count#00"), "Value", Some(s("many"))).await;
    put(&client, follow("cy", "ada", NOON)).await;
    service.line(|line| line.contains(" parked,")).await;
    let filled = said("backfill", &endpoint, &["like-count"]);
    let says = "redrive or discard 1 parked change, and run this again";
    assert!(filled.code == Some(3) && filled.stderr.contains(says), "{filled:?}");
}
