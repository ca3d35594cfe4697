//! A change that cannot be applied is parked, listed, and redriven once; and the procedures of docs/recover.md and
//! docs/parked-and-replay.md, each with the commands of the page.

use aws_sdk_dynamodb::{
    Client,
    primitives::Blob,
    types::{AttributeValue, StreamSpecification, StreamViewType},
};
use serde_json::json;
use support::database::embedded_endpoint;

use crate::{
    NOON,
    database::{
        Key, LEDGER, TABLE, alter, client, comment, delete, follow, key, key_item, make_unaddable, n, put, put_each, s,
        scan, user,
    },
    in_step,
    recount::{differing_now, right},
    ripple::{Ripple, json, said},
    small_town,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_change_is_told_and_redriven_once_its_counter_is_mended() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let endpoint = service.endpoint.clone();
    let client = client(&endpoint);
    assert_eq!(said("parked", &endpoint, &[]).stdout, "0 parked, 0 counts to recount, 0 items unreadable\n");
    let (code, redriven) = json("redrive", &endpoint, &["--all"]);
    assert_eq!((code, redriven), (Some(0), json!({"version": 1, "redriven": [], "unknown": []})));

    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    make_unaddable(&client, &counter).await;
    put(&client, user("ada", "Ada", NOON)).await;
    put(&client, user("bob", "Bob", NOON)).await;
    put(&client, follow("bob", "ada", NOON)).await;
    service.line(|line| line.contains(" parked,")).await;

    let (code, listed) = json("parked", &endpoint, &[]);
    let parked = &listed["parked"][0];
    assert_eq!((code, listed["parked"].as_array().unwrap().len()), (Some(3), 1), "{listed:#}");
    assert_eq!((&parked["family"], &parked["shard"]), (&json!("additive"), &json!(null)));
    assert_eq!(parked["item"], json!({"pk": "USER#bob", "sk": "FOLLOWS#ada"}));
    assert!(parked["stream"].as_str().unwrap().contains(":table/ripple/stream/"), "{parked:#}");
    assert!(parked["parked_at"].as_str().unwrap().ends_with('Z'), "{parked:#}");
    let id = parked["id"].as_str().unwrap();
    let cause = parked["cause"].as_str().unwrap();
    let listed = said("parked", &endpoint, &[]);
    assert_eq!(listed.code, Some(3));
    let of_it = [format!("parked      {id}  additive  "), format!("\n  cause     {cause}\n")];
    assert!(of_it.iter().all(|line| listed.stdout.contains(line)), "{}", listed.stdout);
    assert!(listed.stdout.ends_with("\n1 parked, 0 counts to recount, 1 item unreadable\n"), "{}", listed.stdout);

    let (code, whole) = json("parked", &endpoint, &[id, "another"]);
    assert_eq!((code, &whole["unknown"]), (Some(2), &json!(["another"])));
    assert_eq!(whole["parked"][0]["record"]["dynamodb"]["Keys"]["SK"], json!({"S": "FOLLOWS#ada"}), "{whole:#}");
    let whole = said("parked", &endpoint, &[id]);
    assert_eq!(whole.code, Some(3));
    assert!(whole.stdout.contains("\n  \"dynamodb\": {\n"), "{}", whole.stdout);

    let still = said("redrive", &endpoint, &[id]);
    assert_eq!((still.code, still.stderr.as_str()), (Some(3), ""), "{still:?}");
    assert!(still.stdout.starts_with(&format!("{id}  additive  still parked: ")), "{}", still.stdout);
    assert_eq!(said("parked", &endpoint, &[]).code, Some(3));

    delete(&client, &counter).await;
    let applied = said("redrive", &endpoint, &[id]);
    assert_eq!((applied.code, applied.stdout), (Some(0), format!("{id}  additive  applied\n")));
    let again = said("redrive", &endpoint, &[id]);
    let line = format!("ripple: {id} is no parked change: `ripple parked` lists all\n");
    assert_eq!((again.code, again.stdout.as_str(), again.stderr), (Some(2), "", line));
    let (code, redriven) = json("redrive", &endpoint, &[id]);
    assert_eq!((code, redriven), (Some(2), json!({"version": 1, "redriven": [], "unknown": [id]})));
    assert_eq!(said("redrive", &endpoint, &["--all"]).stdout, "nothing is parked\n");
    right(&client).await;
    in_step(&endpoint);
    assert_eq!(said("parked", &endpoint, &[]).code, Some(0));
}

// ---- The procedures of the pages ----

/// The ledger's table after the first one.
const NEW_LEDGER: &str = "ripple-ledger-2";

async fn written(client: &Client) {
    put_each(client, small_town()).await;
    right(client).await;
}

/// The application writes, the functions handle all of it, and then nothing runs.
async fn handled(endpoint: &str, client: &Client, options: &[&str]) {
    let service = Ripple::dev(&[&["--endpoint", endpoint][..], options].concat()).await;
    written(client).await;
    assert_eq!(service.stop().code(), Some(0));
}

/// Restore and import: the derived data is as old as the rest, and the ledger is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_table_is_filled_under_a_new_ledger() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    handled(&endpoint, &client, &[]).await;
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
    handled(&endpoint, &client, &["--ledger", "receipts"]).await;
    set_stream(&client, false).await;
    set_stream(&client, true).await;
    let _service = Ripple::dev(&["--endpoint", &endpoint, "--ledger", "receipts"]).await;
    let (code, verified) = json("verify", &endpoint, &[]);
    assert_eq!((code, &verified["findings"]), (Some(0), &json!([])), "{verified:#}");
    put_each(
        &client,
        [user("dee", "Dee", NOON), follow("dee", "ada", NOON), comment("p1", "c7", NOON, "dee", "Hello")],
    )
    .await;
    right(&client).await;
    assert_eq!(json("verify", &endpoint, &[]).0, Some(0));
}

/// Entries of the counts to recount stay while a count is wrong. `repair` corrects it, and `verify` removes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_that_is_listed_for_a_recount_is_repaired_and_taken_off_the_list() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    written(&client).await;
    let event = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/insert.json");
    assert_eq!(said("replay", &endpoint, &[event]).code, Some(3));
    let listed = || json("parked", &endpoint, &[]).1["recount"].as_array().unwrap().len();
    assert!(listed() > 0);
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    alter(&client, &counter, "Value", Some(n(7))).await;
    service.caught_up(&client).await;
    assert_eq!(said("verify", &endpoint, &["--derivation", "like-count"]).code, Some(0));
    assert!(listed() > 0, "a part of the table proves no other count");
    assert_eq!(said("verify", &endpoint, &[]).code, Some(3));
    assert_eq!(listed(), 1, "following-count is wrong at one user");
    assert_eq!(said("repair", &endpoint, &["--apply"]).code, Some(0));
    let verified = said("verify", &endpoint, &[]);
    assert!(
        verified.code == Some(0) && verified.stdout.contains("\nrecounted   following-count  USER#grace"),
        "{verified:?}"
    );
    assert_eq!(said("parked", &endpoint, &[]).stdout, "0 parked, 0 counts to recount, 0 items unreadable\n");
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
    let why = said("why", &endpoint, &["USER#bob / PROFILE", "FollowingCount", "--no-changes"]);
    assert!(why.stdout.contains("\n  right for its counter, which is not right itself: see below\n"), "{why:?}");
    let still = said("redrive", &endpoint, &["--all"]);
    let says =
        "; the counter is USER#bob / PROFILE#COUNT#following-count#00; delete the attribute of it that is no number";
    assert!(still.code == Some(3) && still.stdout.contains(says), "{still:?}");
    delete(&client, &counter).await;
    assert_eq!(said("redrive", &endpoint, &["--all"]).code, Some(0));
    assert_eq!(said("verify", &endpoint, &[]).code, Some(3));
    assert_eq!(said("repair", &endpoint, &["--apply"]).code, Some(0));
    right(&client).await;
    assert_eq!(said("parked", &endpoint, &[]).code, Some(0));
}

/// A parked record that never decodes: the parked item is deleted by hand, and then its counts are repaired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_record_that_never_decodes_is_deleted_and_its_counts_are_repaired() {
    let mut service = Ripple::embedded(&[]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    written(&client).await;
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    alter(&client, &counter, "Value", Some(s("many"))).await;
    put(&client, follow("bob", "cy", NOON)).await;
    service.line(|line| line.contains(" parked,")).await;
    let is_parked = |(pk, _): &Key| pk.starts_with("PARKED#");
    let mut parked: Vec<Key> = scan(&client, LEDGER).await.into_keys().filter(is_parked).collect();
    let parked = parked.pop().unwrap();
    let damaged = client.update_item().table_name(LEDGER).set_key(Some(key_item(&parked)));
    let nonsense = AttributeValue::B(Blob::new("no record"));
    let damaged = damaged.update_expression("SET #r = :no").expression_attribute_names("#r", "Record");
    let damaged = damaged.expression_attribute_values(":no", nonsense);
    damaged.send().await.unwrap();

    let (_, listed) = json("parked", &endpoint, &[]);
    let id = listed["parked"][0]["id"].as_str().unwrap().to_owned();
    let still = said("redrive", &endpoint, &[&id]);
    assert_eq!(still.code, Some(3), "{still:?}");
    assert!(still.stdout.contains("still parked: "), "{}", still.stdout);
    assert_eq!(said("parked", &endpoint, &[&id]).code, Some(3));
    alter(&client, &counter, "Value", Some(n(0))).await;
    service.caught_up(&client).await;
    let waiting = said("repair", &endpoint, &["--apply"]);
    assert!(
        waiting.code == Some(3) && waiting.stdout.contains("1 waiting"),
        "a redrive may still count it: {waiting:?}"
    );
    client.delete_item().table_name(LEDGER).set_key(Some(key_item(&parked))).send().await.unwrap();
    let repaired = said("repair", &endpoint, &["--apply"]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    right(&client).await;
    let parked = said("parked", &endpoint, &[]);
    assert_eq!(parked.code, Some(0), "{parked:?}");
    assert_eq!(said("verify", &endpoint, &[]).code, Some(0));
}

/// The ledger's table is lost while nobody writes and the functions have handled everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_ledger_is_replaced_by_a_new_one_during_a_pause() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    handled(&endpoint, &client, &[]).await;
    client.delete_table().table_name(LEDGER).send().await.unwrap();
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    service.caught_up(&client).await;
    right(&client).await;
    assert_eq!(json("verify", &endpoint, &["--yes"]).0, Some(0));
    put(&client, follow("ada", "cy", NOON)).await;
    right(&client).await;
}

/// Another Region: the replica has everything when its mappings begin, and nothing of that is in what they read. On AWS they
/// begin at the latest record; here the stream begins after the items.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_to_another_region_counts_on_where_the_first_one_stopped() {
    let (from, to) = (embedded_endpoint().await, embedded_endpoint().await);
    let (first, replica) = (client(&from), client(&to));
    handled(&from, &first, &[]).await;
    assert_eq!(said("redrive", &from, &["--all"]).code, Some(0));
    assert_eq!(json("verify", &from, &["--yes"]).0, Some(0));
    assert_eq!(Ripple::dev(&["--endpoint", &to]).await.stop().code(), Some(0));
    set_stream(&replica, false).await;
    for item in scan(&first, TABLE).await.into_values() {
        put(&replica, item).await;
    }
    set_stream(&replica, true).await;

    let of = ["--ledger-table", NEW_LEDGER];
    let mut service = Ripple::dev(&[&["--endpoint", &to][..], &of].concat()).await;
    service.caught_up(&replica).await;
    right(&replica).await;
    let (code, verified) = json("verify", &to, &[&["--yes"][..], &of].concat());
    assert_eq!((code, &verified["findings"]), (Some(0), &json!([])), "{verified:#}");
    put_each(&replica, [user("dee", "Dee", NOON), follow("dee", "ada", NOON)]).await;
    right(&replica).await;
    assert_eq!(json("verify", &to, &of).0, Some(0));
}
