//! `BisectBatchOnFunctionError`. What AWS leaves open (reference G2) is said at each test.

use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;

use super::world::{World, mapping, report, succeed, unhandled};
use crate::checkpoint::Position;
use crate::function::FunctionError;
use crate::mapping::Mapping;

/// Batches of 8, split when they fail, and one retry of what cannot be split.
fn bisecting() -> Mapping {
    Mapping { batch_size: 8, bisect_batch_on_function_error: true, retry_attempts_max: Some(1), ..mapping() }
}

/// A function that fails whenever it gets this record.
fn poison(number: &str) -> impl Fn(&[String]) -> Result<String, FunctionError> + Send + Sync + 'static {
    let number = number.to_owned();
    move |numbers| if numbers.contains(&number) { unhandled() } else { succeed(numbers) }
}

/// The sequence numbers of each event.
fn sent(world: &World) -> Vec<String> {
    world.sent().iter().map(|sent| super::world::numbers(&sent.event).join(" ")).collect()
}

/// Source: U5: "splits a failed batch into two"; "splitting a batch doesn't consume the retry quota". That the attempt
/// that leads to a split counts for neither half is our reading of it.
#[tokio::test(start_paused = true)]
async fn splitting_consumes_no_retry_and_only_the_poison_is_given_up_on() {
    let world = World::new(bisecting(), poison("6"));
    world.insert("a", 8);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 8 records, attempt 1: failed: boom
        100 ms: a, 4 records, attempt 1: done
        100 ms: a, 4 records, attempt 1: failed: boom
        200 ms: a, 2 records, attempt 1: failed: boom
        400 ms: a, 1 records, attempt 1: done
        400 ms: a, 1 records, attempt 1: failed: boom
        500 ms: a, 1 records, attempt 2: failed: boom
        500 ms: a, 1 records discarded
        500 ms: a, 2 records, attempt 1: done
    "#]]);
    let body = &world.destination.bodies()[0];
    assert_eq!(body["DDBStreamBatchInfo"]["startSequenceNumber"], "6");
    assert_eq!(body["DDBStreamBatchInfo"]["batchSize"], 1);
    assert_eq!(body["requestContext"]["approximateInvokeCount"], 2);
    assert_eq!(world.position("a").await, Some(Position::After("8".to_owned())));
}

/// AWS does not say; ours: floor(n/2) first.
/// Source: U5.
#[tokio::test(start_paused = true)]
async fn the_first_half_of_an_odd_batch_is_the_smaller_and_goes_first() {
    let world = World::new(bisecting(), poison("1"));
    world.insert("a", 5);
    world.run().await;
    assert_eq!(sent(&world), ["1 2 3 4 5", "1 2", "1", "1", "2", "3 4 5"]);
}

/// Source: U4: an invocation that fails is split "regardless of" reported failures.
#[tokio::test(start_paused = true)]
async fn a_function_error_splits_a_batch_whether_failures_are_reported_or_not() {
    for report_batch_item_failures in [true, false] {
        let world = World::new(Mapping { report_batch_item_failures, ..bisecting() }, poison("2"));
        world.insert("a", 2);
        world.run().await;
        assert_eq!(sent(&world), ["1 2", "1", "2", "2"]);
    }
}

/// Source: U4: a response whose identifiers mean nothing fails the whole batch, as an error does.
#[tokio::test(start_paused = true)]
async fn a_response_that_fails_all_of_a_batch_splits_it() {
    let world = World::new(bisecting(), |numbers| Ok(if numbers.len() > 1 { report(&[""]) } else { String::new() }));
    world.insert("a", 2);
    world.run().await;
    assert_eq!(sent(&world), ["1 2", "1", "2"]);
}

/// Source: U4: the batch is "bisected at the returned sequence number and Lambda retries only the remaining records".
#[tokio::test(start_paused = true)]
async fn a_partial_response_cuts_the_batch_at_its_record_and_only_the_rest_is_tried_again() {
    let world = World::new(bisecting(), |numbers| Ok(if numbers.len() == 8 { report(&["4"]) } else { String::new() }));
    world.insert("a", 8);
    world.run().await;
    assert_eq!(sent(&world), ["1 2 3 4 5 6 7 8", "4 5 6 7 8"]);
}

/// Follows from the rule before: what is left of a batch that is cut at its first record is the batch.
/// Source: U4.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_first_record_is_reported_is_tried_again_whole_and_spends_its_attempts() {
    let world = World::new(bisecting(), |numbers| {
        Ok(if numbers.contains(&"1".to_owned()) { report(&["1"]) } else { String::new() })
    });
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed from 1 on
        100 ms: a, 2 records, attempt 2: failed from 1 on
        100 ms: a, 2 records discarded
    "#]]);
}

/// AWS does not say; ours: halves have the attempts that their batch had spent, until the checkpoint moves.
#[tokio::test(start_paused = true)]
async fn halves_inherit_the_attempts_of_their_batch_until_the_checkpoint_moves() {
    let n_calls = AtomicUsize::new(0);
    let world = World::new(Mapping { retry_attempts_max: Some(2), ..bisecting() }, move |numbers| {
        match n_calls.fetch_add(1, Ordering::Relaxed) {
            // Reported at the first record: an attempt of the whole.
            0 => Ok(report(&["1"])),
            _ if numbers.contains(&"1".to_owned()) => unhandled(),
            _ => Ok(report(&["2"])),
        }
    });
    world.insert("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed from 1 on
        100 ms: a, 2 records, attempt 2: failed: boom
        300 ms: a, 1 records, attempt 2: failed: boom
        700 ms: a, 1 records, attempt 3: failed: boom
        700 ms: a, 1 records discarded
        700 ms: a, 1 records, attempt 1: failed from 2 on
        800 ms: a, 1 records, attempt 2: failed from 2 on
        1000 ms: a, 1 records, attempt 3: failed from 2 on
        1000 ms: a, 1 records discarded
    "#]]);
}

/// Source: U5: a throttle is no attempt.
#[tokio::test(start_paused = true)]
async fn a_function_that_is_not_available_splits_nothing() {
    let n_calls = AtomicUsize::new(0);
    let world = World::new(bisecting(), move |numbers| match n_calls.fetch_add(1, Ordering::Relaxed) {
        0 => Err(FunctionError::Unavailable { message: "throttled".to_owned() }),
        _ => succeed(numbers),
    });
    world.insert("a", 4);
    world.run().await;
    assert_eq!(sent(&world), ["1 2 3 4", "1 2 3 4"]);
}

/// What a stop leaves of a batch that was split is delivered after the next start.
#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_split_batch_goes_on_behind_the_half_that_is_done() {
    let world = World::new(Mapping { retry_attempts_max: None, ..bisecting() }, poison("3"));
    world.insert("a", 4);
    let running = world.start();
    super::world::pass_ms(10_000).await;
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
    running.stop().await.unwrap();
    let n_before = sent(&world).len();
    world.restarted(succeed).run().await;
    assert_eq!(sent(&world)[n_before..], ["3 4"]);
}
