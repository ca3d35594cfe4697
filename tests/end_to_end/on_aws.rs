//! Verify where nobody can read how far the functions are, as on AWS: the ledger proves what is counted.
//!
//! An emulator in the standard AWS environment stands for the real AWS.

use serde_json::{Value, json};
use support::command::Ended;

use crate::{
    database::{alter, client, key, n, put},
    items::{follow, user},
    ripple::{Ripple, ripple},
};

const NOON: &str = "2024-03-01T12:00:00.000Z";

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
