//! A change that cannot be applied: it is parked, listed, and redriven once.

use serde_json::json;

use crate::{
    NOON,
    database::{alter, client, delete, key, put, s},
    in_step,
    items::{follow, user},
    recount::right,
    ripple::{Ripple, json, said},
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
    alter(&client, &counter, "EntityType", Some(s("Counter"))).await;
    alter(&client, &counter, "Value", Some(s("many"))).await;
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
