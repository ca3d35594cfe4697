use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;

use super::world::{World, mapping, succeed, unhandled};
use crate::checkpoint::Position;
use crate::function::FunctionError;
use crate::mapping::Mapping;

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
    super::world::pass_ms(650).await;
    assert_eq!(world.position("a").await, None);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: failed: boom
        0 ms: trouble: the failure record cannot be written: the disk is full
        700 ms: a, 1 records discarded
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("1".to_owned())));
}
