//! Batches, responses, retries, and discarded records with their counts.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use expect_test::expect;

use crate::{
    checkpoint::Position,
    filter::Filters,
    function::FunctionError,
    mapping::{Mapping, OnFailure},
    progress::EventCount,
    tests::{World, mapping, pass_ms, report, succeed, unhandled},
};

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn without_a_window_a_batch_is_what_one_read_returned() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 7);
    let running = world.start();
    world.delivered().await;
    world.insert("a", 1);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 3 records, attempt 1: done
        0 ms: a, 3 records, attempt 1: done
        0 ms: a, 1 records, attempt 1: done
        500 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn one_read_returns_a_thousand_records_at_most() {
    let world = World::new(Mapping { batch_size: 10_000, ..mapping() }, succeed);
    world.insert("a", 1_001);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 1000 records, attempt 1: done
        0 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn a_window_gathers_reads_until_it_is_over() {
    let world = World::new(Mapping { batching_window_ms: 1_000, ..mapping() }, succeed);
    world.insert("a", 1);
    let running = world.start();
    pass_ms(600).await;
    world.insert("a", 1);
    world.finish(running).await;
    world.observes(&expect![[r#"
        1000 ms: a, 2 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait_for_its_window_and_the_rest_keeps_its_own() {
    let world = World::new(Mapping { batching_window_ms: 1_000, ..mapping() }, succeed);
    world.insert("a", 2);
    let running = world.start();
    pass_ms(600).await;
    world.insert("a", 2);
    world.finish(running).await;
    world.observes(&expect![[r#"
        750 ms: a, 3 records, attempt 1: done
        1750 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_shard_ends_its_window() {
    let world = World::new(Mapping { batching_window_ms: 60_000, ..mapping() }, succeed);
    world.insert("a", 1);
    let running = world.start();
    pass_ms(600).await;
    world.stream.split("a", &[]);
    world.finish(running).await;
    world.observes(&expect![[r#"
        750 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2: "at a base rate of 4 times per second". The wait is a setting, because it is shorter on a laptop.
#[tokio::test(start_paused = true)]
async fn a_shard_without_records_is_read_four_times_a_second() {
    let world = World::new(Mapping { idle_poll_ms: 250, ..mapping() }, succeed);
    let running = world.start();
    pass_ms(10_001).await;
    assert_eq!(world.stream.n_reads(), 41, "one at the start, and four a second");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_stays_without_records_is_read_less_and_less_often() {
    let world = World::new(Mapping { idle_poll_ms: 20, ..mapping() }, succeed);
    let running = world.start();
    let mut n_reads = Vec::new();
    for _ in 0..4 {
        pass_ms(10_000).await;
        n_reads.push(world.stream.n_reads());
    }
    let each: Vec<usize> = n_reads.iter().scan(0, |before, n| Some(*n - std::mem::replace(before, *n))).collect();
    assert_eq!(each[3], 40, "four times a second in the end: {each:?}");
    assert!(each[0] > 150, "often in the beginning: {each:?}");
    world.insert("a", 1);
    pass_ms(400).await;
    let n_before = world.stream.n_reads();
    pass_ms(1_000).await;
    assert!(world.stream.n_reads() - n_before > 40, "often again after a record");
    running.stop().await.unwrap();
}

// ---- responses ----

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

// ---- retries ----

/// A function that fails `n_failures` times and then succeeds.
fn fail_first(
    n_failures: usize,
    error: impl Fn() -> FunctionError + Send + Sync + 'static,
) -> impl Fn(&[String]) -> Result<String, FunctionError> + Send + Sync + 'static {
    let n_calls = AtomicUsize::new(0);
    move |_| if n_calls.fetch_add(1, Ordering::Relaxed) < n_failures { Err(error()) } else { Ok(String::new()) }
}

/// Source: LS, U5.
#[tokio::test(start_paused = true)]
async fn three_retries_are_four_invocations_and_then_the_rest_goes_on() {
    let world = World::new(Mapping { retry_attempts_max: Some(3), ..mapping() }, |numbers| {
        if numbers[0] == "1" { unhandled() } else { succeed(numbers) }
    });
    world.insert("a", 4);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 3 records, attempt 1: failed: boom
        100 ms: a, 3 records, attempt 2: failed: boom
        300 ms: a, 3 records, attempt 3: failed: boom
        700 ms: a, 3 records, attempt 4: failed: boom
        700 ms: a, 3 records discarded
        700 ms: a, 1 records, attempt 1: done
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("4".to_owned())));
}

/// Source: U5.
#[tokio::test(start_paused = true)]
async fn without_a_limit_a_batch_is_retried_with_waits_that_double_up_to_five_seconds() {
    let failed = || FunctionError::Unhandled { message: "boom".to_owned() };
    let world = World::new(mapping(), fail_first(9, failed));
    world.insert("a", 1);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: failed: boom
        100 ms: a, 1 records, attempt 2: failed: boom
        300 ms: a, 1 records, attempt 3: failed: boom
        700 ms: a, 1 records, attempt 4: failed: boom
        1500 ms: a, 1 records, attempt 5: failed: boom
        3100 ms: a, 1 records, attempt 6: failed: boom
        6300 ms: a, 1 records, attempt 7: failed: boom
        11300 ms: a, 1 records, attempt 8: failed: boom
        16300 ms: a, 1 records, attempt 9: failed: boom
        21300 ms: a, 1 records, attempt 10: done
    "#]]);
}

/// Source: U5.
#[tokio::test(start_paused = true)]
async fn an_unavailable_function_is_told_once_and_counts_no_attempt() {
    let throttled = || FunctionError::Unavailable { message: "connection refused".to_owned() };
    let world = World::new(Mapping { retry_attempts_max: Some(0), ..mapping() }, fail_first(5, throttled));
    world.insert("a", 1);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: trouble: the function is not available: connection refused
        3100 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn a_record_that_gets_too_old_while_it_is_retried_is_given_up_on() {
    let world = World::new(Mapping { record_age_ms_max: Some(2_000), ..mapping() }, |_| unhandled());
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed: boom
        100 ms: a, 2 records, attempt 2: failed: boom
        300 ms: a, 2 records, attempt 3: failed: boom
        700 ms: a, 2 records, attempt 4: failed: boom
        1500 ms: a, 2 records, attempt 5: failed: boom
        3100 ms: a, 2 records discarded
    "#]]);
    let body = &world.destination.bodies()[0];
    assert_eq!(body["requestContext"]["condition"], "RecordAgeExceeded");
    assert_eq!(body["requestContext"]["approximateInvokeCount"], 5);
    assert!(body.get("responseContext").is_none());
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_too_old_already_is_not_delivered_and_those_behind_it_are() {
    let world = World::new(Mapping { record_age_ms_max: Some(60_000), ..mapping() }, succeed);
    world.stream.insert("a", 1, world.now() - std::time::Duration::from_secs(70));
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records discarded
        0 ms: a, 2 records, attempt 1: done
    "#]]);
    assert_eq!(world.destination.bodies()[0]["requestContext"]["approximateInvokeCount"], 1);
}

/// Source: U5.
#[tokio::test(start_paused = true)]
async fn the_checkpoint_waits_for_the_failure_record() {
    let world = World::new(Mapping { retry_attempts_max: Some(0), ..mapping() }, |_| unhandled());
    world.destination.refuse(3);
    world.insert("a", 1);
    let running = world.start();
    crate::tests::pass_ms(650).await;
    assert_eq!(world.position("a").await, None);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: failed: boom
        0 ms: trouble: the failure record cannot be written: the disk is full
        700 ms: a, 1 records discarded
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("1".to_owned())));
}

// ---- discarding ----

/// A mapping that discards records at the first failure.
fn giving_up(on_failure: Option<OnFailure>) -> Mapping {
    Mapping { retry_attempts_max: Some(0), on_failure, ..mapping() }
}

/// Source: U5: S3 has the whole event as an escaped string; queues and topics have the metadata only.
#[tokio::test(start_paused = true)]
async fn only_a_bucket_gets_the_payload() {
    for (kind, has_payload) in [(OnFailure::S3, true), (OnFailure::Sqs, false), (OnFailure::Sns, false)] {
        let world = World::new(giving_up(Some(kind)), |_| unhandled());
        world.insert("a", 1);
        world.run().await;
        let mut body = world.destination.bodies().remove(0);
        let payload = body.as_object_mut().unwrap().remove("payload");
        assert_eq!(payload.is_some(), has_payload);
        if let Some(payload) = payload {
            let event: serde_json::Value = serde_json::from_str(payload.as_str().unwrap()).unwrap();
            assert_eq!(event, world.sent()[0].event);
        }
        let keys: BTreeSet<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        let metadata = ["DDBStreamBatchInfo", "requestContext", "responseContext", "timestamp", "version"];
        assert_eq!(keys, BTreeSet::from(metadata));
    }
}

/// Source: U5: exhausted records are discarded, and processing goes on.
#[tokio::test(start_paused = true)]
async fn without_a_destination_records_are_given_up_on_without_a_trace() {
    let world = World::new(giving_up(None), |_| unhandled());
    world.insert("a", 2);
    world.run().await;
    assert!(world.observed().contains("a, 2 records discarded and not kept"), "{}", world.observed());
    assert!(world.destination.bodies().is_empty());
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
}

/// Source: U8, the `EventCount` metrics.
#[tokio::test(start_paused = true)]
async fn polled_filtered_and_invoked_records_are_counted_and_retries_again() {
    let pattern = r#"{"dynamodb":{"Keys":{"id":{"S":[{"anything-but":"other"}]}}}}"#;
    let filters = Filters::new([pattern]).unwrap();
    let world = World::new(Mapping { filters, retry_attempts_max: Some(1), ..mapping() }, |_| unhandled());
    world.touch("a", ["one", "other", "two"]);
    world.run().await;
    let counted = EventCount {
        polled: 3,
        filtered_out: 1,
        invoked: 4,
        failed_invoke: 4,
        dropped: 0,
        on_failure_delivered: 2,
        iterator_age_max: world.counted().iterator_age_max,
    };
    assert_eq!(world.counted(), counted);
}

/// Source: U8: `FailedInvokeEventCount` includes invocations with reported failures; `DroppedEventCount` counts records
/// that are not delivered to a destination.
#[tokio::test(start_paused = true)]
async fn a_partial_response_counts_as_failed_and_what_has_no_destination_as_dropped() {
    let world = World::new(giving_up(None), |numbers| {
        Ok(if numbers.contains(&"3".to_owned()) { report(&["3"]) } else { String::new() })
    });
    world.insert("a", 3);
    world.run().await;
    let counted = world.counted();
    assert_eq!((counted.invoked, counted.failed_invoke), (4, 4), "three records, then one");
    assert_eq!((counted.dropped, counted.on_failure_delivered), (1, 0));
}

/// Source: U8: the age of the last record of a batch. It counts from the creation time, which is rounded to the second.
#[tokio::test(start_paused = true)]
async fn the_iterator_age_is_that_of_the_last_record_of_a_batch() {
    let world = World::new(mapping(), succeed);
    world.stream.insert("a", 1, world.now() - Duration::from_secs(30));
    world.insert("a", 1);
    pass_ms(5_000).await;
    world.run().await;
    assert_eq!(world.counted().iterator_age_max, Duration::from_secs(5));
}

/// An operator's replay is a new mapping that starts at the oldest record. Source: LS.
#[tokio::test(start_paused = true)]
async fn a_mapping_made_anew_delivers_all_that_the_stream_still_has_again() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 3);
    world.run().await;
    let mut anew = world.clone();
    anew.checkpoints = std::sync::Arc::default();
    anew.run().await;
    assert_eq!(world.sent().len(), 2);
    assert_eq!(world.sent()[0].event, world.sent()[1].event, "under the same event ids");
}
