use expect_test::expect;

use super::world::{World, mapping, report, unhandled};
use crate::mapping::Mapping;

/// Source: U4.
#[tokio::test(start_paused = true)]
async fn a_partial_response_is_retried_from_the_lowest_record_on() {
    let world = World::new(Mapping { batch_size: 10, ..mapping() }, |numbers| {
        Ok(if numbers.len() == 10 { report(&["10", "9"]) } else { "null".to_owned() })
    });
    world.insert("a", 10);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 10 records, attempt 1: failed from 9 on
        100 ms: a, 2 records, attempt 1: done
    "#]]);
}

/// Source: U4.
#[tokio::test(start_paused = true)]
async fn without_reported_failures_the_body_is_ignored() {
    let world = World::new(Mapping { report_batch_item_failures: false, ..mapping() }, |_| Ok(report(&["1"])));
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: done
    "#]]);
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn a_response_that_names_no_record_of_the_batch_fails_all_of_it() {
    let world = World::new(Mapping { retry_attempts_max: Some(0), ..mapping() }, |_| Ok(report(&["123"])));
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed: the response names no record of the batch, so all of it counts as failed
        0 ms: a, 2 records discarded
    "#]]);
    assert_eq!(world.destination.bodies()[0]["responseContext"]["functionError"], serde_json::Value::Null);
}

/// Recorded on AWS: six records, batches of three, three retries. The last record was delivered five times, but its
/// failure record counts four invocations of one record. Source: LS.
#[tokio::test(start_paused = true)]
async fn the_retry_budget_starts_over_when_the_checkpoint_moves() {
    let world = World::new(Mapping { retry_attempts_max: Some(3), ..mapping() }, |numbers| {
        Ok(if numbers.contains(&"6".to_owned()) { report(&["6"]) } else { String::new() })
    });
    world.insert("a", 6);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 3 records, attempt 1: done
        0 ms: a, 3 records, attempt 1: failed from 6 on
        100 ms: a, 1 records, attempt 1: failed from 6 on
        300 ms: a, 1 records, attempt 2: failed from 6 on
        700 ms: a, 1 records, attempt 3: failed from 6 on
        1500 ms: a, 1 records, attempt 4: failed from 6 on
        1500 ms: a, 1 records discarded
    "#]]);
    let body = &world.destination.bodies()[0];
    assert_eq!(body["requestContext"]["approximateInvokeCount"], 4);
    assert_eq!(body["DDBStreamBatchInfo"]["batchSize"], 1);
}

/// Source: U4, LS.
#[tokio::test(start_paused = true)]
async fn a_function_error_says_so_in_the_failure_record() {
    let world = World::new(Mapping { retry_attempts_max: Some(1), ..mapping() }, |_| unhandled());
    world.insert("a", 2);
    world.run().await;
    let body = &world.destination.bodies()[0];
    assert_eq!(body["requestContext"]["condition"], "RetryAttemptsExhausted");
    assert_eq!(body["requestContext"]["approximateInvokeCount"], 2);
    assert_eq!(body["responseContext"]["functionError"], "Unhandled");
    assert_eq!(body["DDBStreamBatchInfo"]["endSequenceNumber"], "2");
    let payload: serde_json::Value = serde_json::from_str(body["payload"].as_str().unwrap()).unwrap();
    assert_eq!(payload["Records"][1]["dynamodb"]["SequenceNumber"], "2");
}

/// Source: U4: if the first record is reported, the whole batch remains.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_first_record_is_reported_is_tried_again_whole_and_spends_its_attempts() {
    let world = World::new(Mapping { retry_attempts_max: Some(1), ..mapping() }, |_| Ok(report(&["1"])));
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed from 1 on
        100 ms: a, 2 records, attempt 2: failed from 1 on
        100 ms: a, 2 records discarded
    "#]]);
}
