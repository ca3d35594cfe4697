//! Marks of a possible loss, as an operator meets them.

use aws_sdk_dynamodb::Client;
use serde_json::json;
use support::database::embedded_endpoint;

use crate::{
    NOON,
    database::{Item, LEDGER, client, delete, key, n, put, s},
    items::{follow, user},
    recount::right,
    ripple::{Ripple, said, verify_at_rest},
};

async fn mark(client: &Client) {
    let mark = Item::from([
        ("PK".to_owned(), s("LOSS")),
        ("SK".to_owned(), s("additive#2024-03-01T00:00:00.000#shard-1")),
        ("Families".to_owned(), s("additive")),
        ("Stream".to_owned(), s("arn:aws:dynamodb:r:1:table/ripple/stream/2024-03-01T00:00:00.000")),
        ("Shard".to_owned(), s("shard-1")),
        ("Since".to_owned(), n(1_709_280_000_000)),
        ("Until".to_owned(), n(1_709_283_600_000)),
        ("LateMs".to_owned(), n(79_200_000)),
    ]);
    client.put_item().table_name(LEDGER).set_item(Some(mark)).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verify_that_finds_nothing_takes_the_mark_of_a_possible_loss_away_and_no_other_does() {
    let endpoint = embedded_endpoint().await;
    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let client = client(&endpoint);
    for item in [user("ada", "Ada", NOON), user("bob", "Bob", NOON), follow("bob", "ada", NOON)] {
        put(&client, item).await;
    }
    right(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    mark(&client).await;

    delete(&client, &key("USER#ada", "FOLLOWER#bob")).await;
    let verified = verify_at_rest(&endpoint);
    assert_eq!((verified.code, &verified.json["possible_loss"][0]["cleared"]), (Some(3), &json!(false)));

    let service = Ripple::dev(&["--endpoint", &endpoint]).await;
    right(&client).await;
    assert_eq!(service.stop().code(), Some(0));
    let verified = said("verify", &endpoint, &["--at-rest"]);
    let lines = "possible loss  additive 2024-03-01T00:00:00.000 shard-1  records came 22 hours late, \
                 from 2024-03-01T08:00:00.000Z to 2024-03-01T09:00:00.000Z\n  nothing is missing: the mark is removed\n";
    assert!(verified.stdout.ends_with(lines), "{verified:?}");
    assert_eq!(verify_at_rest(&endpoint).json["possible_loss"], json!([]));
}
