//! A ledger's table stays with the kind that it began with, until somebody switches it by the steps of docs/ledgers.md. It
//! keeps the marks of a possible loss, and proves what is counted where nobody can read how far the functions are.

use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use support::{command::Ended, database::embedded_endpoint};
use tokio::sync::watch;

use crate::{
    NOON,
    application::Application,
    database::{Item, LEDGER, alter, client, delete, folder, follow, key, key_item, n, put, put_each, s, user},
    in_step,
    recount::right,
    ripple::{Ripple, ripple, said, verify_at_rest},
};

/// Actions of the application under each ledger.
const N_ACTIONS: usize = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_of_one_kind_is_not_used_as_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", folder.path().to_str().unwrap()];
    let service = Ripple::embedded(&data).await;
    assert_eq!(service.stop().code(), Some(0));

    let output = ripple("dev", &[&["--port", "0", "--ledger", "receipts"], &data[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("ripple: the ledger table was created for watermarks, and receipts is configured"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");

    let service = Ripple::embedded(&data).await;
    assert_eq!(service.stop().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_data_is_switched_to_watermarks_and_back_by_the_documented_steps() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    for (seed, ledger) in (5..).zip(["receipts", "watermarks", "receipts"]) {
        let of = ["--endpoint", &endpoint, "--ledger", ledger];
        if seed > 5 {
            refused(&of, ledger);
            let settings = key("LEDGER", "SETTINGS");
            client.delete_item().table_name(LEDGER).set_key(Some(key_item(&settings))).send().await.unwrap();
        }
        let service = Ripple::dev(&of).await;
        written(&client, seed).await;
        // Nobody writes any more, and all is handled: what was written under each ledger is counted once.
        right(&client).await;
        in_step(&endpoint);
        assert_eq!(service.stop().code(), Some(0));
    }
}

/// The other kind does not start before the table is switched.
fn refused(arguments: &[&str], ledger: &str) {
    let output = ripple("dev", arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("and {ledger} is configured")) && said.contains("docs/ledgers.md"), "{said}");
}

/// An application writes beside the service.
async fn written(client: &Client, seed: u64) {
    let (_clients, here) = watch::channel(client.clone());
    let (done, _n_done) = watch::channel(0);
    Application::new(seed).run(N_ACTIONS, here, done).await;
}

// ---- Marks of a possible loss, as an operator meets them ----

/// The families of derivations.
const FAMILIES: [&str; 2] = ["additive", "level-triggered"];

/// Whether each mark was removed, in the order of the families.
fn cleared(verified: &Value) -> Vec<Value> {
    verified["possible_loss"].as_array().unwrap().iter().map(|mark| mark["cleared"].clone()).collect()
}

async fn mark(client: &Client, family: &str) {
    let mark = Item::from([
        ("PK".to_owned(), s("LOSS")),
        ("SK".to_owned(), s(format!("{family}#2024-03-01T00:00:00.000#shard-1"))),
        ("Family".to_owned(), s(family)),
        ("Stream".to_owned(), s("arn:aws:dynamodb:r:1:table/ripple/stream/2024-03-01T00:00:00.000")),
        ("Shard".to_owned(), s("shard-1")),
        ("Since".to_owned(), n(1_709_280_000_000)),
        ("Until".to_owned(), n(1_709_283_600_000)),
        ("LateMs".to_owned(), n(79_200_000)),
    ]);
    client.put_item().table_name(LEDGER).set_item(Some(mark)).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_of_a_possible_loss_stays_until_a_verify_finds_nothing_of_its_family() {
    let endpoint = embedded_endpoint().await;
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let client = client(&endpoint);
    put_each(&client, [user("ada", "Ada", NOON), user("bob", "Bob", NOON), follow("bob", "ada", NOON)]).await;
    right(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    for family in FAMILIES {
        mark(&client, family).await;
    }

    delete(&client, &key("USER#ada", "FOLLOWER#bob")).await;
    // No count is wrong, and a mirror is missing.
    let verified = verify_at_rest(&endpoint);
    assert_eq!((verified.code, cleared(&verified.json)), (Some(3), vec![json!(true), json!(false)]));

    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    right(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    let partial = said("verify", &endpoint, &["--at-rest", "--disable", "follower-name"]);
    assert!(partial.stdout.contains("with all derivations of the functions"), "{partial:?}");
    let verified = said("verify", &endpoint, &["--at-rest"]);
    let lines = "possible loss  level-triggered 2024-03-01T00:00:00.000 shard-1  records came 22 hours late, \
                 from 2024-03-01T08:00:00.000Z to 2024-03-01T09:00:00.000Z\n  nothing that can be \
                 corrected is missing: the mark is removed\n";
    assert!(verified.stdout.ends_with(lines), "{verified:?}");
    assert_eq!(verify_at_rest(&endpoint).json["possible_loss"], json!([]));

    // What an earlier run read proves nothing of a loss since then.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("progress");
    let resumed = ["--at-rest", "--progress", file.to_str().unwrap()];
    assert_eq!(said("verify", &endpoint, &resumed).code, Some(0));
    mark(&client, "additive").await;
    let verified = said("verify", &endpoint, &resumed);
    assert!(verified.stdout.contains("only a verify of the whole table can remove it, in one run"), "{verified:?}");
}

/// Two folders that are each other's parents are a finding of every verify, and no repair corrects it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_correct_keeps_no_mark_of_a_possible_loss() {
    let endpoint = embedded_endpoint().await;
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let client = client(&endpoint);
    put_each(&client, [folder("a", "b"), folder("b", "a")]).await;
    assert_eq!(service.stop().code(), Some(0));
    for family in FAMILIES {
        mark(&client, family).await;
    }
    let verified = verify_at_rest(&endpoint);
    let flaws = verified.json["findings"].as_array().unwrap();
    assert!(verified.code == Some(3) && flaws.iter().all(|it| it["flaw"].is_string()), "{flaws:?}");
    assert_eq!(cleared(&verified.json), [json!(true), json!(true)]);
}

// ---- Verify where nobody can read how far the functions are: an emulator in the standard AWS environment stands for AWS ----

/// What `ripple verify --aws --json` says, without an iterator age.
fn verified(endpoint: &str) -> Value {
    let mut verify = ripple("verify", &["--aws", "--region", "us-east-1", "--wait", "600", "--json"]);
    verify.envs([("AWS_ENDPOINT_URL", endpoint), ("AWS_ACCESS_KEY_ID", "somebody"), ("AWS_SECRET_ACCESS_KEY", "else")]);
    let ended = Ended::of(&mut verify);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_is_decided_by_the_receipts_of_its_changes_and_by_no_age() {
    let mut service = Ripple::embedded(&[]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    for id in ["ann", "bob"] {
        put(&client, user(id, "R", NOON)).await;
    }
    put(&client, follow("ann", "bob", NOON)).await;
    service.caught_up(&client).await;
    let wrong = key("USER#ann", "PROFILE#COUNT#following-count#00");
    alter(&client, &wrong, "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    let json = verified(&endpoint);
    let found: Vec<&Value> = json["findings"].as_array().unwrap().iter().map(|finding| &finding["sk"]).collect();
    assert_eq!((found, &json["undecided"]), (vec![&json!(wrong.1)], &json!([])), "{json:#}");
}
