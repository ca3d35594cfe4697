//! End to end: the built `ripple dev`, a client that is not ours, and a recount by hand.
//!
//! Nothing waits for a time: each test waits until what it reads is right, and fails with the differences when that
//! takes too long. The recount reads items as the access patterns describe them, and asks none of our own crates;
//! `ripple verify` is asked too, and must say the same.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by a panic, and prints what the service said"
)]

mod application;
mod console;
mod database;
mod killed;
mod ledgers;
mod logs;
mod own_table;
mod permitted;
mod recount;
mod recovered;
mod repaired;
mod replayed;
mod ripple;

use application::Application;
use aws_sdk_dynamodb::Client;
use database::{
    Item, Key, LEDGER, TABLE, alter, client, comment, delete, follow, group, item, key, like, membership, n, post, put,
    put_each, s, scan, user,
};
use recount::{RIGHT_WAIT, differing, differing_now, missing_kinds, right};
use ripple::{Ripple, VerifyOutput, verify, verify_at_rest};
use serde_json::json;
use support::database::embedded_endpoint;
use tokio::{sync::watch, time::Instant};

/// Actions of the application in one test.
const N_ACTIONS: usize = 500;

/// How often a service is killed meanwhile.
const N_KILLS: usize = 3;

const NOON: &str = "2024-03-01T12:00:00.000Z";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_another_client_writes_everything_derived_ends_right() {
    let mut service = Ripple::embedded(&[]).await;
    let client = client(&service.endpoint);
    let (_clients, here) = watch::channel(client.clone());
    Application::new(1).run(N_ACTIONS, here, watch::Sender::default()).await;
    service.caught_up(&client).await;
    assert_eq!(differing_now(&client).await, [""; 0]);
    in_step(&service.endpoint);
    // The load was one that shows something.
    assert_eq!(missing_kinds(&scan(&client, TABLE).await), [""; 0]);
    assert_eq!(service.stop().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_goes_on_in_its_folder() {
    for ledger in ["receipts", "watermarks"] {
        let folder = tempfile::tempdir().unwrap();
        goes_on(2, &["--port", "0", "--data", folder.path().to_str().unwrap(), "--ledger", ledger]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_goes_on_at_an_endpoint_that_lives_on() {
    goes_on(3, &["--endpoint", &embedded_endpoint().await]).await;
}

/// An application writes to a service with these arguments, which is killed on the way and started again.
async fn goes_on(seed: u64, arguments: &[&str]) {
    let mut service = Ripple::dev(arguments).await;
    let (clients, here) = watch::channel(client(&service.endpoint));
    let (done, mut n_done) = watch::channel(0);
    let load = tokio::spawn(Application::new(seed).run(N_ACTIONS, here, done));
    for kill in 1..=N_KILLS {
        n_done.wait_for(|n_done| *n_done >= kill * N_ACTIONS / (N_KILLS + 1)).await.unwrap();
        service.line(|line| line.starts_with("aggregate")).await;
        assert!(*n_done.borrow() < N_ACTIONS, "the load is over");
        service.kill();
        service = Ripple::dev(arguments).await;
        clients.send_replace(client(&service.endpoint));
    }
    load.await.unwrap();
    right(&client(&service.endpoint)).await;
    in_step(&service.endpoint);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_client_alters_is_named_and_all_but_the_counter_mends() {
    let endpoint = embedded_endpoint().await;
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let client = client(&endpoint);
    put_each(&client, small_town()).await;
    right(&client).await;
    in_step(&endpoint);
    assert_eq!(service.stop().code(), Some(0));

    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    let copy = key("POST#p1", format!("COMMENT#{NOON}#c1"));
    let mirror = key("USER#ada", "FOLLOWER#cy");
    let display = key("USER#ada", "PROFILE");
    alter(&client, &counter, "Value", Some(n(7))).await;
    alter(&client, &copy, "UserName", Some(s("Mallory"))).await;
    alter(&client, &mirror, "CreatedAt", Some(s("2000-01-01T00:00:00.000Z"))).await;
    alter(&client, &display, "FollowerCount", Some(n(99))).await;
    let altered = [
        ("comment-author", &copy),
        ("follower-count-display", &display),
        ("follower-mirror", &mirror),
        ("following-count", &counter),
        // It does not show what the counter says, which is what it is derived from.
        ("following-count-display", &key("USER#bob", "PROFILE")),
    ];
    found(&endpoint, &altered);

    // The records of the alterations are in the stream still. A counter is the authority, so its display follows it.
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let of_the_counter = ["USER#bob / PROFILE", "USER#bob / PROFILE#COUNT#following-count"];
    differing(&client, &of_the_counter).await;
    found(&endpoint, &[("following-count", &counter)]);

    // With the service running the others mend as well, whatever is done to them.
    alter(&client, &copy, "UserName", None).await;
    delete(&client, &mirror).await;
    alter(&client, &display, "FollowerCount", None).await;
    put(&client, forged_mirror()).await;
    differing(&client, &of_the_counter).await;
    alter(&client, &counter, "Value", Some(n(1))).await;
    right(&client).await;
    in_step(&endpoint);
    assert_eq!(service.stop().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_items_are_ignored_or_listed_and_their_neighbours_are_applied() {
    let mut service = Ripple::embedded(&["--readers", "one"]).await;
    let client = client(&service.endpoint);
    put(&client, item([("PK", "USER#ada".to_owned()), ("SK", "SETTINGS".to_owned())])).await;
    put(&client, item([("PK", "GADGET#7".to_owned()), ("SK", "X".to_owned()), ("EntityType", "Gadget".to_owned())]))
        .await;
    // The filters keep both from the function, and `dev` reports them all the same.
    for ignored in ["items without EntityType are ignored", "items of the type \"Gadget\" are ignored"] {
        service.line(|line| line.starts_with(ignored)).await;
    }
    // A number is no text, so the post is not published, and nothing of it is unreadable.
    let mut untold = post("ada", "p9", NOON, "", "Status is a number");
    untold.insert("Status".to_owned(), n(1));
    put(&client, untold).await;
    let mut unsigned = comment("p1", "c9", NOON, "bob", "UserId is a number");
    unsigned.insert("UserId".to_owned(), n(1));
    put(&client, unsigned).await;
    let mut misfit = follow("bob", "cy", NOON);
    misfit.insert("SK".to_owned(), s("FOLLOWING"));
    put(&client, misfit).await;
    put_each(&client, small_town()).await;
    right(&client).await;

    let verified = verify(&service.endpoint);
    assert_eq!(verified.code, Some(3), "{}", verified.json);
    let allowed = ripple::json("verify", &service.endpoint, &["--allow-unreadable"]);
    assert_eq!(allowed.0, Some(0), "{}", allowed.1);
    assert_eq!(verified.json["ignored"], json!(2));
    let listed = [["*", "USER#bob", "FOLLOWING"], ["comment-author", "POST#p1", "COMMENT#2024-03-01T12:00:00.000Z#c9"]];
    assert_eq!(verified.named("unreadable"), listed);
    let expected = listed.map(|[derivation, pk, sk]| format!("{derivation}#{pk}#{sk}"));
    assert_eq!(unreadable(&client).await, expected);

    // Mended, they are applied and come off the list.
    put(&client, post("ada", "p9", NOON, "published", "Status is text")).await;
    put(&client, comment("p1", "c9", NOON, "bob", "UserId is text")).await;
    delete(&client, &key("USER#bob", "FOLLOWING")).await;
    right(&client).await;
    in_step(&service.endpoint);
    assert_eq!(unreadable(&client).await, [""; 0]);
}

/// A few people, a post and what they do with it.
fn small_town() -> Vec<Item> {
    vec![
        comment("p1", "c1", NOON, "bob", "Well put"),
        follow("bob", "ada", NOON),
        follow("cy", "ada", NOON),
        follow("ada", "bob", NOON),
        like("cy", "p1", NOON),
        post("ada", "p1", NOON, "published", "Notes"),
        group("g1", "Engines"),
        membership("bob", "g1", "reader"),
        user("ada", "Ada", NOON),
        user("bob", "Bob", NOON),
        user("cy", "Cy", NOON),
    ]
}

/// A mirror of a follow that nobody made.
fn forged_mirror() -> Item {
    let mut forged = follow("ada", "x", NOON);
    forged.insert("SK".to_owned(), s("FOLLOWER#bob's cat"));
    forged.insert("EntityType".to_owned(), s("Follower"));
    forged
}

/// `ripple verify` finds nothing, once what a cascade deleted has been seen; but for posts of one id, which several have.
fn in_step(endpoint: &str) {
    let deadline = Instant::now() + RIGHT_WAIT;
    let is_right = |verified: &VerifyOutput| {
        let findings = verified.json["findings"].as_array().unwrap();
        let are_claims =
            findings.iter().all(|finding| finding["derivation"] == "post-detail" && finding["flaw"] != json!(null));
        let is_nothing = |name: &str| verified.json[name] == json!([]);
        are_claims && ["undecided", "waiting", "unreadable"].into_iter().all(is_nothing)
    };
    loop {
        let verified = verify(endpoint);
        if is_right(&verified) {
            return;
        }
        assert!(Instant::now() < deadline, "{:#}", verified.json);
    }
}

/// `ripple verify` finds these while nothing runs, and nothing else.
fn found(endpoint: &str, wanted: &[(&str, &Key)]) {
    let verified = verify_at_rest(endpoint);
    let wanted: Vec<[&str; 3]> =
        wanted.iter().map(|(derivation, key)| [*derivation, key.0.as_str(), key.1.as_str()]).collect();
    assert_eq!((verified.named("findings"), verified.code), (wanted, Some(3)), "{:#}", verified.json);
}

/// Sort keys of the service's list of the unreadable.
async fn unreadable(client: &Client) -> Vec<String> {
    let ledger = scan(client, LEDGER).await;
    ledger.into_keys().filter(|(pk, _)| pk == "UNREADABLE").map(|(_, sk)| sk).collect()
}
