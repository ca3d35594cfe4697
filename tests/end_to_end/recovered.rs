//! The procedures of docs/recover.md and docs/parked-and-replay.md, each with the commands of the page.

use aws_sdk_dynamodb::{
    Client,
    types::{StreamSpecification, StreamViewType},
};
use serde_json::{Value, json};
use support::database::embedded_endpoint;

use crate::{
    NOON,
    database::{LEDGER, TABLE, alter, client, delete, key, key_item, n, put, s},
    items::{comment, follow, user},
    recount::{differing_now, right},
    ripple::{Ripple, json, said},
    small_town,
};

/// The ledger's table after the first one.
const NEW_LEDGER: &str = "ripple-ledger-2";

async fn written(client: &Client) {
    for item in small_town() {
        put(client, item).await;
    }
    right(client).await;
}

/// Restore and import: the derived data is as old as the rest, and the ledger is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_table_is_filled_under_a_new_ledger() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    written(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    // These changes were in the stream, and are not counted; some of what was derived is lost.
    put(&client, follow("cy", "bob", NOON)).await;
    delete(&client, &key("USER#ada", "FOLLOWER#bob")).await;
    alter(&client, &key("USER#ada", "PROFILE"), "FollowerCount", None).await;
    set_stream(&client, false).await;
    set_stream(&client, true).await;

    let of = ["--ledger-table", NEW_LEDGER];
    let mut service = Ripple::dev(&[&["--endpoint", &endpoint][..], &of].concat()).await;
    service.caught_up(&client).await;
    assert_ne!(differing_now(&client).await, [""; 0]);
    let (code, jobs) = json("jobs", &endpoint, &of);
    assert_eq!((code, &jobs["jobs"]), (Some(0), &json!([])));
    let (code, filled) = json("backfill", &endpoint, &[&["--all"][..], &of].concat());
    assert_eq!((code, &filled["refused"], &filled["undecided"]), (Some(0), &json!(0), &json!(0)), "{filled:#}");
    assert!(filled["done"].as_u64().unwrap() > 0, "{filled:#}");
    assert_eq!(json("verify", &endpoint, &of).0, Some(0));
    put(&client, follow("ada", "cy", NOON)).await;
    right(&client).await;
    assert_eq!(json("verify", &endpoint, &of).0, Some(0));
}

async fn set_stream(client: &Client, is_enabled: bool) {
    let stream = StreamSpecification::builder().stream_enabled(is_enabled);
    let stream = if is_enabled { stream.stream_view_type(StreamViewType::NewAndOldImages) } else { stream };
    let update = client.update_table().table_name(TABLE).stream_specification(stream.build().unwrap());
    update.send().await.unwrap();
}

/// A new stream: nobody writes until the functions have it, so each change counts once. The embedded database gives the old
/// records again in the new stream, which receipts alone know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_stream_counts_on_after_a_pause() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let service = Ripple::dev(&["--endpoint", &endpoint, "--ledger", "receipts"]).await;
    written(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    set_stream(&client, false).await;
    set_stream(&client, true).await;
    let _service = Ripple::dev(&["--endpoint", &endpoint, "--ledger", "receipts"]).await;
    let (code, verified) = json("verify", &endpoint, &[]);
    assert_eq!((code, &verified["findings"]), (Some(0), &json!([])), "{verified:#}");
    for item in [user("dee", "Dee", NOON), follow("dee", "ada", NOON), comment("p1", "c7", NOON, "dee", "Hello")] {
        put(&client, item).await;
    }
    right(&client).await;
    assert_eq!(json("verify", &endpoint, &[]).0, Some(0));
}

/// An entry of the counts to recount: `verify` shows the count, `repair` corrects it, and the entry is deleted by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_that_is_listed_for_a_recount_is_repaired_and_taken_off_the_list() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    written(&client).await;
    let event = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/insert.json");
    assert_eq!(said("replay", &endpoint, &[event]).code, Some(3));
    let (_, parked) = json("parked", &endpoint, &[]);
    let listed = parked["recount"].as_array().unwrap().clone();
    assert!(!listed.is_empty());
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    alter(&client, &counter, "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    assert_eq!(said("verify", &endpoint, &[]).code, Some(3));
    assert_eq!(said("repair", &endpoint, &["--apply"]).code, Some(0));
    let field = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    for entry in &listed {
        let sk = ["derivation", "pk", "sk"].map(|name| field(entry, name)).join("#");
        let at = key_item(&key("RECOUNT", sk));
        client.delete_item().table_name(LEDGER).set_key(Some(at)).send().await.unwrap();
    }
    assert_eq!(said("parked", &endpoint, &[]).stdout, "0 parked, 0 counts to recount, 0 items unreadable\n");
    assert_eq!(said("verify", &endpoint, &[]).code, Some(0));
}

/// The whole counter of a parked change was deleted: the redrive comes first, and then the repair.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_was_deleted_whole_is_redriven_and_then_repaired() {
    let mut service = Ripple::embedded(&["--ledger", "watermarks"]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    written(&client).await;
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    alter(&client, &counter, "Value", Some(s("many"))).await;
    put(&client, follow("bob", "cy", NOON)).await;
    service.line(|line| line.contains(" parked,")).await;
    delete(&client, &counter).await;
    assert_eq!(said("redrive", &endpoint, &["--all"]).code, Some(0));
    assert_eq!(said("verify", &endpoint, &[]).code, Some(3));
    assert_eq!(said("repair", &endpoint, &["--apply"]).code, Some(0));
    right(&client).await;
    assert_eq!(said("parked", &endpoint, &[]).code, Some(0));
}
