use std::time::Duration;

use expect_test::expect;

use super::world::{World, mapping, succeed};
use crate::checkpoint::Position;
use crate::mapping::Mapping;
use crate::poller::StreamError;

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn a_child_starts_only_when_its_parent_is_drained() {
    let world = World::with_slow_function(mapping(), Duration::from_millis(700), succeed);
    world.insert("a", 4);
    world.stream.split("a", &["b", "c"]);
    world.insert("b", 1);
    world.insert("c", 1);
    world.run().await;
    world.observes(&expect![[r#"
        700 ms: a, 3 records, attempt 1: done
        1400 ms: a, 1 records, attempt 1: done
        2100 ms: b, 1 records, attempt 1: done
        2100 ms: c, 1 records, attempt 1: done
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::Ended));
    assert_eq!(world.position("b").await, Some(Position::After("5".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_parent_is_trimmed_starts() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 2);
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    world.stream.trim("a", 2);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: b, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn open_shards_are_read_side_by_side_and_a_batch_never_mixes_them() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(1), succeed);
    world.stream.open("z", None);
    for _ in 0..2 {
        world.insert("a", 1);
        world.insert("z", 1);
    }
    world.run().await;
    world.observes(&expect![[r#"
        1000 ms: a, 2 records, attempt 1: done
        1000 ms: z, 2 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn the_shards_are_listed_page_by_page_and_not_more_often_than_needed() {
    let world = World::new(mapping(), succeed);
    world.stream.open("b", None);
    world.stream.open("c", None);
    world.stream.list_by(2);
    world.insert("c", 1);
    world.run_for_ms(2_500).await;
    expect![[r#"
            list after None
            list after Some("b")
            a at TrimHorizon
            b at TrimHorizon
            c at TrimHorizon
            list after None
            list after Some("b")"#]]
    .assert_eq(&world.stream.calls().join("\n"));
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_there_ends_the_mapping_with_one_clear_message() {
    let world = World::new(mapping(), succeed);
    world.stream.delete();
    let error = world.start().end().await.unwrap_err();
    assert!(matches!(error, StreamError::NotFound { .. }));
    expect![
        "there is no stream arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000: does the table exist with its stream enabled, at this endpoint?"
    ]
    .assert_eq(&error.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_deleted_later_ends_the_mapping_too() {
    let world = World::new(mapping(), succeed);
    let running = world.start();
    world.delivered().await;
    world.stream.delete();
    assert!(matches!(running.end().await, Err(StreamError::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn settings_that_lambda_would_refuse_are_refused() {
    let mut refused = Vec::new();
    for mapping in [
        Mapping { name: "a/b".to_owned(), ..mapping() },
        Mapping { batch_size: 0, ..mapping() },
        Mapping { batch_size: 10_001, ..mapping() },
        Mapping { batching_window_ms: 300_001, ..mapping() },
        Mapping { tumbling_window_seconds: 901, ..mapping() },
        Mapping { retry_attempts_max: Some(10_001), ..mapping() },
        Mapping { record_age_ms_max: Some(604_800_001), ..mapping() },
        Mapping { parallelization_factor: 0, ..mapping() },
        Mapping { parallelization_factor: 11, ..mapping() },
        Mapping { parallelization_factor: 2, tumbling_window_seconds: 60, ..mapping() },
    ] {
        refused.push(World::new(mapping, succeed).start().end().await.unwrap_err().to_string());
    }
    expect![[r#"
            the function name "a/b" must be of letters, digits, '-' and '_'
            the batch size 0 of aggregate is not between 1 and 10000
            the batch size 10001 of aggregate is not between 1 and 10000
            the batching window 300001 ms of aggregate is longer than 300000 ms
            the tumbling window 901 s of aggregate is longer than 900 s
            the 10001 retry attempts of aggregate are more than 10000
            the record age 604800001 ms of aggregate is greater than 604800000 ms
            the parallelization factor 0 of aggregate is not between 1 and 10
            the parallelization factor 11 of aggregate is not between 1 and 10
            aggregate has tumbling windows and a parallelization factor of 2: set one of them to its default, since whose the state of a window is then is documented nowhere"#]]
    .assert_eq(&refused.join("\n"));
}
