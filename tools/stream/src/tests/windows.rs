//! Tumbling windows. The world's time starts one second after a whole minute, so the first window of 60 s ends at
//! 59,000 ms.
//!
//! Source: U6, which the doc comments quote.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::{
    checkpoint::Position,
    function::FunctionError,
    mapping::Mapping,
    tests::{World, mapping, numbers, pass_ms, unhandled},
};

/// Batches of 3 in windows of a minute.
fn windowed() -> Mapping {
    Mapping { tumbling_window_seconds: 60, ..mapping() }
}

fn world(mapping: Mapping, script: impl Fn(&Value) -> Result<String, FunctionError> + Send + Sync + 'static) -> World {
    World::with_events(mapping, Duration::ZERO, script)
}

fn n_before(event: &Value) -> u64 {
    event["state"]["n"].as_u64().unwrap_or_default()
}

/// The next state, which counts the records of the window.
fn counted(event: &Value) -> Value {
    json!({ "n": n_before(event) + event["Records"].as_array().unwrap().len() as u64 })
}

/// A function that counts the records of each window.
#[expect(clippy::unnecessary_wraps, reason = "it is a script, and a script may fail")]
fn count(event: &Value) -> Result<String, FunctionError> {
    Ok(json!({ "state": counted(event), "batchItemFailures": [] }).to_string())
}

fn is_final(event: &Value) -> bool {
    event["isFinalInvokeForWindow"].as_bool().unwrap()
}

/// The events so far, one per line.
fn sent(world: &World) -> String {
    let line = |at_ms: u128, event: &Value| {
        let minute = |edge: &str| event["window"][edge].as_str().unwrap()[11..16].to_owned();
        let (shard, records, state) = (event["shardId"].as_str().unwrap(), numbers(event), event["state"].to_string());
        let state = if state.len() > 100 { format!("{} bytes", state.len()) } else { state };
        let ending = match (is_final(event), event["isWindowTerminatedEarly"].as_bool().unwrap()) {
            (false, false) => "",
            (true, false) => ", final",
            (true, true) => ", final, early",
            (false, true) => ", early",
        };
        let records = records.join(" ");
        format!("{at_ms} ms: {shard} [{records}] {} to {}, state {state}{ending}\n", minute("start"), minute("end"))
    };
    world.sent().iter().map(|sent| line(sent.at_ms, &sent.event)).collect()
}

impl World {
    /// Checks the events that the function got.
    fn sends(&self, expected: &Expect) {
        expected.assert_eq(&sent(self));
    }
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn without_tumbling_windows_an_event_has_its_records_and_nothing_else() {
    let world = world(mapping(), |_| Ok(String::new()));
    world.insert("a", 1);
    world.run().await;
    let events = world.sent();
    assert_eq!(events[0].event.as_object().unwrap().keys().collect::<Vec<_>>(), ["Records"]);
}

/// Source: U6.
#[tokio::test(start_paused = true)]
async fn an_event_names_its_shard_and_its_stream() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    world.run().await;
    let event = &world.sent()[0].event;
    assert_eq!(event["shardId"], "a");
    assert_eq!(event["eventSourceARN"], crate::tests::ARN);
    assert_eq!(event["window"], json!({ "start": "2027-01-15T08:00:00Z", "end": "2027-01-15T08:01:00Z" }));
}

/// "You can receive these records in multiple batches, each as a separate invocation. Each invocation receives a state."
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn the_state_goes_from_each_response_to_the_next_event_of_its_window() {
    let world = world(windowed(), count);
    world.insert("a", 7);
    world.run().await;
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        0 ms: a [4 5 6] 08:00 to 08:01, state {"n":3}
        0 ms: a [7] 08:00 to 08:01, state {"n":6}
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("7".to_owned())));
}

/// "At the end of the window, the flag `isFinalInvokeForWindow` is set to `true` to indicate that this is the final state
/// and that it's ready for processing. After processing, the window completes and your final invocation completes, and
/// then the state is dropped."
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn a_window_whose_end_has_passed_has_one_final_invocation_without_records() {
    let world = world(windowed(), count);
    world.insert("a", 4);
    world.run_for_ms(300_000).await;
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        0 ms: a [4] 08:00 to 08:01, state {"n":3}
        59000 ms: a [] 08:00 to 08:01, state {"n":4}, final
    "#]]);
}

/// "Lambda determines tumbling window boundaries based on the time when records were inserted into the stream", and "each
/// record in a stream belongs to a specific window".
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn a_batch_does_not_mix_windows_and_a_record_of_the_next_ends_the_one_before() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    pass_ms(60_000).await;
    world.insert("a", 1);
    world.run().await;
    world.sends(&expect![[r#"
        60000 ms: a [1] 08:00 to 08:01, state {}
        60000 ms: a [] 08:00 to 08:01, state {"n":1}, final
        60000 ms: a [2] 08:01 to 08:02, state {}
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn a_window_waits_for_its_records_in_the_batching_window() {
    let world = world(Mapping { batching_window_ms: 10_000, ..windowed() }, count);
    world.insert("a", 3);
    let running = world.start();
    pass_ms(55_000).await;
    world.insert("a", 1);
    pass_ms(60_000).await;
    running.stop().await.unwrap();
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        65000 ms: a [4] 08:00 to 08:01, state {"n":3}
        65000 ms: a [] 08:00 to 08:01, state {"n":4}, final
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_without_an_open_window_makes_no_invocations() {
    let world = world(windowed(), count);
    world.run_for_ms(300_000).await;
    world.sends(&expect![""]);
}

#[tokio::test(start_paused = true)]
async fn a_window_whose_records_never_reached_the_function_has_no_final_invocation() {
    let world = world(Mapping { record_age_ms_max: Some(60_000), ..windowed() }, count);
    world.stream.insert("a", 1, world.now() - Duration::from_secs(130));
    world.run_for_ms(300_000).await;
    world.sends(&expect![""]);
    assert_eq!(world.observed(), "0 ms: a, 1 records discarded\n");
}

/// "If the response does not contain a `state` property, Lambda considers this a failed invocation."
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn a_response_without_a_state_is_a_failed_invocation() {
    for report_batch_item_failures in [true, false] {
        let mapping = Mapping { report_batch_item_failures, retry_attempts_max: Some(0), ..windowed() };
        let world = world(mapping, |_| Ok(r#"{"batchItemFailures":[]}"#.to_owned()));
        world.insert("a", 1);
        world.run().await;
        world.observes(&expect![[r#"
            0 ms: a, 1 records, attempt 1: failed: the response has no object `state`, which tumbling windows need
            0 ms: a, 1 records discarded
        "#]]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_reported_failures_only_the_state_of_a_response_is_read() {
    let world = world(Mapping { report_batch_item_failures: false, ..windowed() }, |event| {
        Ok(json!({ "state": counted(event), "batchItemFailures": [{ "itemIdentifier": "1" }] }).to_string())
    });
    world.insert("a", 4);
    world.run().await;
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        0 ms: a [4] 08:00 to 08:01, state {"n":3}
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_has_the_window_and_the_state_of_the_first_try() {
    let n_calls = AtomicUsize::new(0);
    let world = world(windowed(), move |event| match n_calls.fetch_add(1, Ordering::Relaxed) {
        1..=8 => unhandled(),
        9 => Ok(json!({ "state": { "n": 99 }, "batchItemFailures": [{ "itemIdentifier": "4" }] }).to_string()),
        _ => count(event),
    });
    world.insert("a", 4);
    pass_ms(45_000).await;
    world.run().await;
    world.sends(&expect![[r#"
        45000 ms: a [1 2 3] 08:00 to 08:01, state {}
        45000 ms: a [4] 08:00 to 08:01, state {"n":3}
        45100 ms: a [4] 08:00 to 08:01, state {"n":3}
        45300 ms: a [4] 08:00 to 08:01, state {"n":3}
        45700 ms: a [4] 08:00 to 08:01, state {"n":3}
        46500 ms: a [4] 08:00 to 08:01, state {"n":3}
        48100 ms: a [4] 08:00 to 08:01, state {"n":3}
        51300 ms: a [4] 08:00 to 08:01, state {"n":3}
        56300 ms: a [4] 08:00 to 08:01, state {"n":3}
        61300 ms: a [4] 08:00 to 08:01, state {"n":3}
        66300 ms: a [4] 08:00 to 08:01, state {"n":3}
        66550 ms: a [] 08:00 to 08:01, state {"n":4}, final
    "#]]);
}

/// The state of the response counts the records that are done. Without it the window would lose them. Source: U6.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_partial_response_goes_on_with_its_state() {
    let world = world(windowed(), |event| {
        let failures = if event["state"] == json!({}) { json!([{ "itemIdentifier": "3" }]) } else { json!(null) };
        let n_done = if failures.is_null() { 1 } else { 2 };
        Ok(json!({ "state": { "n": n_before(event) + n_done }, "batchItemFailures": failures }).to_string())
    });
    world.insert("a", 3);
    world.run().await;
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        100 ms: a [3] 08:00 to 08:01, state {"n":2}
    "#]]);
}

/// "If invocation is unsuccessful, your Lambda function suspends further processing until a successful invocation."
#[tokio::test(start_paused = true)]
async fn a_failed_final_invocation_is_tried_until_it_succeeds_and_holds_what_is_behind_it() {
    let n_finals = AtomicUsize::new(0);
    let limits = Mapping { retry_attempts_max: Some(1), record_age_ms_max: Some(600_000), ..windowed() };
    let world = world(limits, move |event| {
        let n_before = if is_final(event) { n_finals.fetch_add(1, Ordering::Relaxed) } else { 4 };
        match n_before {
            0 => unhandled(),
            1 => Err(FunctionError::Unavailable { message: "throttled".to_owned() }),
            2 => Ok("{}".to_owned()),
            3 => Ok(json!({ "state": {}, "batchItemFailures": [{ "itemIdentifier": "" }] }).to_string()),
            _ => count(event),
        }
    });
    world.insert("a", 1);
    pass_ms(60_000).await;
    world.insert("a", 1);
    world.run().await;
    world.sends(&expect![[r#"
        60000 ms: a [1] 08:00 to 08:01, state {}
        60000 ms: a [] 08:00 to 08:01, state {"n":1}, final
        60100 ms: a [] 08:00 to 08:01, state {"n":1}, final
        60300 ms: a [] 08:00 to 08:01, state {"n":1}, final
        60700 ms: a [] 08:00 to 08:01, state {"n":1}, final
        61500 ms: a [] 08:00 to 08:01, state {"n":1}, final
        61500 ms: a [2] 08:01 to 08:02, state {}
    "#]]);
    world.observes(&expect![[r#"
        60000 ms: a, 1 records, attempt 1: done
        60000 ms: a, 0 records, attempt 1: failed: boom
        60100 ms: trouble: the function is not available: throttled
        60300 ms: a, 0 records, attempt 2: failed: the response has no object `state`, which tumbling windows need
        60700 ms: a, 0 records, attempt 3: failed: the response names no record of the batch, so all of it counts as failed
        61500 ms: a, 0 records, attempt 4: done
        61500 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// "Your state can be a maximum of 1 MB per shard. If it exceeds that size, Lambda terminates the window early." And
/// AWS's event types: "Subsequent invoke will continue the same window with a fresh state."
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn a_state_over_a_megabyte_ends_its_window_early_and_the_window_goes_on_afresh() {
    let world = world(windowed(), |event| {
        let is_large = numbers(event).contains(&"3".to_owned());
        let state = if is_large { json!({ "text": "x".repeat(1024 * 1024) }) } else { counted(event) };
        Ok(json!({ "state": state }).to_string())
    });
    world.insert("a", 5);
    world.run_for_ms(60_000).await;
    world.sends(&expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        0 ms: a [] 08:00 to 08:01, state 1048587 bytes, final, early
        0 ms: a [4 5] 08:00 to 08:01, state {}
        59000 ms: a [] 08:00 to 08:01, state {"n":2}, final
    "#]]);
}

/// "When the shard ends, Lambda considers the window closed, and the child shards start their own window in a fresh
/// state."
/// Source: U6.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_shard_closes_its_window_and_its_children_start_afresh() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    let running = world.start();
    world.delivered().await;
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    world.finish(running).await;
    world.sends(&expect![[r#"
        0 ms: a [1] 08:00 to 08:01, state {}
        500 ms: a [] 08:00 to 08:01, state {"n":1}, final
        500 ms: b [2] 08:00 to 08:01, state {}
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_lost_closes_its_window() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    let running = world.start();
    world.delivered().await;
    world.stream.split("a", &["b"]);
    world.stream.trim("a", 1);
    world.finish(running).await;
    world.sends(&expect![[r#"
        0 ms: a [1] 08:00 to 08:01, state {}
        500 ms: a [] 08:00 to 08:01, state {"n":1}, final
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn each_shard_has_its_own_window_and_state() {
    let world = world(windowed(), count);
    world.stream.open("b", None);
    world.insert("a", 3);
    world.insert("b", 3);
    let running = world.start();
    world.delivered().await;
    world.insert("b", 1);
    pass_ms(60_000).await;
    running.stop().await.unwrap();
    let mut lines: Vec<String> = sent(&world).lines().map(str::to_owned).collect();
    lines.sort_by_key(|line| line.contains(" b "));
    expect![[r#"
        0 ms: a [1 2 3] 08:00 to 08:01, state {}
        59000 ms: a [] 08:00 to 08:01, state {"n":3}, final
        0 ms: b [4 5 6] 08:00 to 08:01, state {}
        500 ms: b [7] 08:00 to 08:01, state {"n":3}
        59000 ms: b [] 08:00 to 08:01, state {"n":4}, final"#]]
    .assert_eq(&lines.join("\n"));
}

/// AWS does not say where Lambda keeps the state. Here it is in memory only: after a restart no record is delivered
/// twice, and the window's count so far is lost. Source: U6.
#[tokio::test(start_paused = true)]
async fn after_a_restart_the_window_that_was_open_starts_with_an_empty_state() {
    let world = world(windowed(), count);
    world.insert("a", 2);
    world.run().await;
    world.insert("a", 1);
    let running = world.restarted_with_events(count).start();
    pass_ms(120_000).await;
    running.stop().await.unwrap();
    world.sends(&expect![[r#"
        0 ms: a [1 2] 08:00 to 08:01, state {}
        250 ms: a [3] 08:00 to 08:01, state {}
        59000 ms: a [] 08:00 to 08:01, state {"n":1}, final
    "#]]);
}

/// "Records are always processed in order the first time. If records are processed more than once, they might be
/// processed out of order." A late record belongs to no other window.
#[tokio::test(start_paused = true)]
async fn a_record_that_comes_after_its_window_ended_opens_it_again() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    let running = world.start();
    pass_ms(59_100).await;
    world.stream.insert("a", 1, world.now() - Duration::from_secs(1));
    pass_ms(1_000).await;
    running.stop().await.unwrap();
    world.sends(&expect![[r#"
        0 ms: a [1] 08:00 to 08:01, state {}
        59000 ms: a [] 08:00 to 08:01, state {"n":1}, final
        59250 ms: a [2] 08:00 to 08:01, state {}
        59500 ms: a [] 08:00 to 08:01, state {"n":1}, final
    "#]]);
}

/// The payload of a failure record is "the whole event as an escaped JSON string". Source: U5.
#[tokio::test(start_paused = true)]
async fn a_failure_record_has_the_event_with_its_window_and_state() {
    let world = world(Mapping { retry_attempts_max: Some(0), ..windowed() }, |event| {
        if n_before(event) > 0 { unhandled() } else { count(event) }
    });
    world.insert("a", 4);
    world.run().await;
    let body = &world.destination.bodies()[0];
    let payload: Value = serde_json::from_str(body["payload"].as_str().unwrap()).unwrap();
    assert_eq!(payload, world.sent()[1].event);
    assert_eq!(payload["state"], json!({ "n": 3 }));
}

#[tokio::test(start_paused = true)]
async fn the_records_of_a_window_that_is_open_are_delivered() {
    let world = world(windowed(), count);
    world.insert("a", 1);
    let running = world.start();
    pass_ms(1_100).await;
    assert!(world.is_delivered_until(1_000));
    running.stop().await.unwrap();
    assert_eq!(world.sent().len(), 1, "stopping does not end a window");
}

#[tokio::test(start_paused = true)]
async fn a_final_invocation_has_no_records_to_deliver_but_records_behind_it_do_wait() {
    let world = world(windowed(), |event| if is_final(event) { unhandled() } else { count(event) });
    world.insert("a", 1);
    let running = world.start();
    pass_ms(59_100).await;
    assert!(world.is_delivered_until(59_000));
    world.insert("a", 1);
    pass_ms(60_000).await;
    assert!(!world.is_delivered_until(59_100), "the record behind the final invocation is not delivered");
    running.stop().await.unwrap();
}
