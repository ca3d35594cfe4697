//! A manifest alone, `ripple wait` beside services that run and services that are gone, and other addresses.

use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use serde_json::{Value, json};
use support::database::client;
use tokio::runtime::Runtime;

use super::{database, fails, fails_saying, input::Dev, refuses, ripple, table_without_stream};

#[test]
fn a_manifest_is_checked_alone() {
    let ended = ripple(&["check", "examples/own-table/ripple.toml"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        entities       3  Follow, FollowedBy, User
        indexes        0
        derivations    4  follower-count, followed-by, followed-name, follower-name
    "#]]
    .assert_eq(&ended.stdout);
    let ended = ripple(&["check", "examples/own-table/ripple.toml", "--explain"]);
    let said = "follower-count: counts the Follow items into the User that `followedId` names; shows the count as User.followerCount\n";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    let ended = ripple(&["check", "examples/own-table/ripple.toml", "--json"]);
    let checked: Value = serde_json::from_str(&ended.stdout).unwrap();
    let entities = json!(["Follow", "FollowedBy", "User"]);
    assert_eq!((&checked["version"], &checked["entities"]), (&json!(1), &entities));
    refuses(&["check", "no/ripple.toml"], "cannot read no/ripple.toml: No such file or directory (os error 2)");
    let wrong = super::file("[table]\npartition-key = 7\n");
    let wrong = wrong.path().to_str().unwrap();
    let ended = ripple(&["check", wrong]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
    assert!(ended.stderr.starts_with(&format!("ripple: {wrong}:2:1: table.partition-key: ")), "{ended:?}");
}

#[test]
fn what_is_probably_not_meant_is_named_below_what_is_declared() {
    let text = include_str!("../../examples/own-table/ripple.toml");
    let wanting = text.replacen("derived-attributes = [", "derived-attributes = [\"postCount\", ", 1);
    let wanting = super::file(&wanting);
    let ended = ripple(&["check", wanting.path().to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""));
    let named: Vec<&str> = ended.stdout.lines().skip(3).collect();
    expect![[r#"
        not-derived  User.postCount
          found     it is declared as derived, and no derivation writes it
          matters   readers wait for what nothing writes
          to do     declare the derivation that writes it, or leave it out of `derived-attributes`"#]]
    .assert_eq(&named.join("\n"));
    let ended = ripple(&["check", wanting.path().to_str().unwrap(), "--json"]);
    let checked: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(checked["findings"][0]["check"], json!("not-derived"));
}

pub(super) async fn put(client: &Client, attributes: &[(&str, &str)]) {
    let put = client.put_item().table_name("ripple");
    let text = |value: &str| AttributeValue::S(value.to_owned());
    attributes.iter().fold(put, |put, (name, value)| put.item(*name, text(value))).send().await.unwrap();
}

/// Writes followers of a user, each under another name.
pub(super) async fn follow(client: &Client, names: impl Iterator<Item = usize>) {
    put(client, &[("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User")]).await;
    for name in names {
        let pk = format!("USER#f{name}");
        put(client, &[("PK", &pk), ("SK", "FOLLOWS#ada"), ("EntityType", "Follow")]).await;
    }
}

/// The number of followers that is displayed on the user.
async fn n_followers(client: &Client) -> Option<String> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let get = client.get_item().table_name("ripple").key("PK", text("USER#ada")).key("SK", text("PROFILE"));
    let user = get.send().await.unwrap().item?;
    user.get("FollowerCount")?.as_n().ok().cloned()
}

async fn items(client: &Client) -> Vec<BTreeMap<String, AttributeValue>> {
    let scanned = client.scan().table_name("ripple").send().await.unwrap().items.unwrap_or_default();
    scanned.into_iter().map(|item| item.into_iter().collect()).collect()
}

/// Waits for at most a minute.
pub(super) fn waited(endpoint: &str) {
    let ended = ripple(&["wait", "--timeout", "60", "--endpoint", endpoint]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let until = ended.stdout.strip_prefix("everything written before ").unwrap();
    assert!(until.ends_with("Z is handled\n"), "{until}");
}

#[test]
fn a_wait_ends_when_all_that_was_written_is_handled() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    waited(&dev.endpoint);
    assert_eq!(runtime.block_on(items(&client)), [], "nothing was written where the application sees it");
    for n_followers_now in [20, 25] {
        runtime.block_on(follow(&client, 0..n_followers_now));
        waited(&dev.endpoint);
        assert_eq!(runtime.block_on(n_followers(&client)), Some(n_followers_now.to_string()));
    }
    let ended = ripple(&["wait", "--json", "--endpoint", &dev.endpoint]);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &said["version"]), (Some(0), &json!(1)));
    assert!(said["handled_until"].is_string() && said["parked"] == 0, "{said}");
}

#[test]
fn a_wait_says_what_is_parked() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let counter = "PROFILE#COUNT#following-count#00";
    runtime.block_on(put(&client, &[("PK", "USER#f0"), ("SK", counter), ("EntityType", "Counter"), ("Value", "many")]));
    runtime.block_on(follow(&client, 0..2));
    let ended = ripple(&["wait", "--timeout", "60", "--endpoint", &dev.endpoint]);
    let parked = "what follows from 1 change is missing, since it is parked: see `ripple parked`";
    assert_eq!((ended.code, ended.stdout.lines().nth(1)), (Some(0), Some(parked)), "{ended:?}");
    let ended = ripple(&["wait", "--json", "--endpoint", &dev.endpoint]);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(said["parked"], 1, "{said}");
}

#[test]
fn a_wait_ends_by_its_limit_though_the_database_never_responds() {
    // It takes connections, and nobody reads them.
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", frozen.local_addr().unwrap());
    let line = format!("not everything was handled within 2 s: the database at {endpoint} does not respond");
    fails_saying(&["wait", "--timeout", "2", "--endpoint", &endpoint], &line);
}

#[test]
fn a_service_on_another_table_with_the_same_ledger_says_nothing_of_this_one() {
    let (runtime, endpoint) = database();
    runtime.block_on(table_without_stream(&endpoint, "other"));
    let _dev = Dev::run(&["--endpoint", &endpoint]);
    waited(&endpoint);
    let line = "not everything was handled within 10 s: no `ripple dev` has run on the table other with this ledger: \
                start one";
    let at = ["--endpoint", &endpoint, "--table", "other", "--ledger-table", "ripple-ledger"];
    fails_saying(&[&["wait", "--timeout", "10"][..], &at].concat(), line);
}

#[test]
fn an_item_whose_derived_keys_would_be_too_long_holds_up_nobody() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    // Each of these characters is three in the key of another item, and a partition key has 2,048 bytes.
    let pk = format!("USER#{}", "%".repeat(800));
    let user = [("PK", pk.as_str()), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", "Ada")];
    runtime.block_on(put(&client, &user));
    runtime.block_on(follow(&client, 0..2));
    waited(&dev.endpoint);
    assert_eq!(runtime.block_on(n_followers(&client)).as_deref(), Some("2"));
}

#[test]
fn a_wait_without_a_service_says_so_and_one_of_two_services_is_enough() {
    let (runtime, endpoint) = database();
    for table in ["quiet", "quiet-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    fails(
        &["wait", "--timeout", "10", "--endpoint", &endpoint, "--table", "quiet"],
        1,
        &expect![[r#"
            ripple: not everything was handled within 10 s: no `ripple dev` has run on the table quiet with this ledger: start one
        "#]],
    );
    let [first, second] = [(); 2].map(|()| Dev::run(&["--endpoint", &endpoint]));
    let client = client(&endpoint);
    runtime.block_on(follow(&client, 0..5));
    waited(&endpoint);
    first.killed();
    runtime.block_on(follow(&client, 5..7));
    waited(&endpoint);
    assert_eq!(runtime.block_on(n_followers(&client)).as_deref(), Some("7"));
    second.killed();
    let ended = ripple(&["wait", "--timeout", "10", "--endpoint", &endpoint]);
    let gone =
        "ripple: not everything was handled within 10 s: no `ripple dev` runs on the table ripple: the last one ";
    assert_eq!((ended.code, ended.stderr.starts_with(gone)), (Some(1), true), "{ended:?}");
    let on_aws = "wait knows only the functions of `ripple dev`: on AWS, watch the iterator age instead";
    refuses(&["wait", "--aws"], on_aws);
}

#[test]
fn another_address_is_bound_with_a_warning() {
    // Every address of 127.0.0.0/8 is of this machine.
    let other = |dev: &Dev| {
        let port = dev.endpoint.rsplit(':').next().unwrap();
        TcpStream::connect(format!("127.0.0.2:{port}")).is_ok()
    };
    let dev = Dev::start(&["--host", "0.0.0.0"]);
    assert!(dev.endpoint.starts_with("http://127.0.0.1:"), "{}", dev.endpoint);
    assert_eq!(other(&dev), cfg!(target_os = "linux"));
    let line = "warning: whoever reaches 0.0.0.0 can read and write this database: it asks for no password\n";
    assert_eq!(dev.killed(), line);
    let dev = Dev::start(&[]);
    assert!(!other(&dev));
    assert_eq!(dev.killed(), "");
    for own in [["--host", "0.0.0.0"], ["--data", "folder"], ["--port", "1"]] {
        let both = ripple(&[&["dev", "--endpoint", "http://127.0.0.1:1"], &own[..]].concat());
        let says = format!("cannot be used with '{} ", own[0]);
        assert!(both.code == Some(2) && both.stderr.contains(&says), "{both:?}");
    }
}
