use std::{sync::Arc, time::Duration};

use expect_test::expect;

use crate::{
    checkpoint::Position,
    filter::Filters,
    mapping::Mapping,
    poller::Wiring,
    source::{ApiError, IteratorAt, ReadOnce, StreamApi as _},
    tests::{Running, World, fakes::MemoryStream, items, mapping, pass_ms, succeed, unhandled},
};

/// With `(at_ms, until_ms)`: nothing is reported as delivered before `at_ms`, and all records up to `until_ms` soon
/// after. With `None`: nothing is reported within a minute.
async fn check(world: &World, delivered_ms: Option<(u64, u64)>) {
    let running = world.start();
    pass_ms(delivered_ms.map_or(60_000, |(at_ms, _)| at_ms - 10)).await;
    assert!(!world.is_delivered_until(0));
    if let Some((_, until_ms)) = delivered_ms {
        pass_ms(300).await;
        assert!(world.is_delivered_until(until_ms));
    }
    running.stop().await.unwrap();
}

fn slow() -> World {
    World::with_slow_function(mapping(), Duration::from_secs(10), succeed)
}

#[tokio::test(start_paused = true)]
async fn an_empty_stream_is_delivered_at_once() {
    let world = World::new(mapping(), succeed);
    let running = world.start();
    pass_ms(1).await;
    assert!(world.is_delivered_until(0));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_retried_or_cannot_be_read_is_not_delivered() {
    let world = World::new(mapping(), |_| unhandled());
    world.insert("a", 1);
    check(&world, None).await;
    let world = World::new(mapping(), succeed);
    world.stream.fail(&ApiError::Transient { message: "connection refused".to_owned() }, 100);
    check(&world, None).await;
}

#[tokio::test(start_paused = true)]
async fn records_that_wait_for_their_batching_window_are_not_delivered() {
    let world = World::new(Mapping { batching_window_ms: 10_000, ..mapping() }, succeed);
    world.insert("a", 1);
    check(&world, Some((10_000, 10_000))).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_shard_does_not_speak_for_one_that_is_busy() {
    let world = slow();
    world.stream.open("b", None);
    world.insert("b", 1);
    check(&world, Some((10_000, 9_000))).await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_parent_is_not_delivered() {
    let world = slow();
    world.insert("a", 1);
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    check(&world, Some((20_000, 20_000))).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_an_invocation_is_delivered_and_what_it_holds_is_not() {
    let world = World::with_slow_function(mapping(), Duration::from_mins(1), succeed);
    let running = world.start();
    pass_ms(1_100).await;
    world.insert("a", 1);
    pass_ms(30_000).await;
    assert!(world.is_delivered_until(1_000));
    assert!(!world.is_delivered_until(1_100));
    pass_ms(31_000).await;
    assert!(world.is_delivered_until(61_000));
    running.stop().await.unwrap();
}

/// The page was read before the second record was written. It is not full, but that proves nothing about the second
/// record.
#[tokio::test(start_paused = true)]
async fn a_page_that_another_mapping_read_holds_what_was_made_before_that_read() {
    let world = slow();
    let shared = Arc::new(ReadOnce::new(MemoryStream::clone(&world.stream)));
    world.insert("a", 1);
    let iterator = shared.iterator("a", &IteratorAt::TrimHorizon).await.unwrap();
    assert_eq!(shared.records(&iterator, 3).await.unwrap().records.len(), 1);
    pass_ms(1_000).await;
    world.insert("a", 1);
    let running = Running::over(Wiring { api: shared, ..world.wiring() });
    pass_ms(15_000).await;
    assert!(world.is_delivered_until(0));
    assert!(!world.is_delivered_until(1_000));
    pass_ms(6_000).await;
    assert!(world.is_delivered_until(1_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_split_leaves_no_moment_in_which_the_children_are_overlooked() {
    let world = slow();
    let running = world.start();
    pass_ms(1_100).await;
    world.stream.split("a", &["b", "c"]);
    world.insert("c", 1);
    pass_ms(10_000).await;
    assert!(!world.is_delivered_until(1_100));
    pass_ms(1_000).await;
    assert!(world.is_delivered_until(11_100));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_shards_are_all_drained_is_delivered() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    world.stream.split("a", &[]);
    let running = world.start();
    pass_ms(1).await;
    assert!(world.is_delivered_until(0));
    pass_ms(10_000).await;
    assert!(world.is_delivered_until(8_000));
    running.stop().await.unwrap();
}

/// One record a second, each of which takes 0.9 s, so records are in progress almost all the time.
#[tokio::test(start_paused = true)]
async fn a_shard_that_is_never_empty_is_delivered_up_to_what_is_under_way() {
    let world = World::with_slow_function(Mapping { batch_size: 1, ..mapping() }, Duration::from_millis(900), succeed);
    let running = world.start();
    for second in 0..20 {
        world.insert("a", 1);
        pass_ms(1_000).await;
        assert!(second < 3 || world.is_delivered_until(1_000 * (second - 3)), "after {second} s");
        assert!(!world.is_delivered_until(1_000 * (second + 1)));
    }
    running.stop().await.unwrap();
}

/// Each read is full, so only the creation times of its records show how far it got.
#[tokio::test(start_paused = true)]
async fn a_backlog_is_delivered_up_to_when_its_records_were_made() {
    let world = World::with_slow_function(Mapping { batch_size: 2, ..mapping() }, Duration::from_secs(1), succeed);
    let running = world.start();
    for second in 0..30 {
        world.insert("a", 4);
        pass_ms(1_000).await;
        let [made, later] = [second / 3, second];
        assert!(second < 10 || world.is_delivered_until(1_000 * made), "after {second} s");
        assert!(!world.is_delivered_until(1_000 * later), "after {second} s");
    }
    running.stop().await.unwrap();
}

// ---- Delivery and checkpoint of a mapping with filters ----

/// Delivers only records of the item `wanted`.
fn filtered() -> Mapping {
    let pattern = r#"{"dynamodb":{"Keys":{"id":{"S":["wanted"]}}}}"#;
    Mapping { filters: Filters::new([pattern]).unwrap(), ..mapping() }
}

/// Source: U7b.
#[tokio::test(start_paused = true)]
async fn filters_are_applied_record_by_record_while_a_batch_is_built() {
    let world = World::new(Mapping { batching_window_ms: 1_000, ..filtered() }, succeed);
    world.touch("a", ["wanted", "other", "wanted", "other", "other", "wanted", "wanted"]);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: 1 records filtered out
        0 ms: 2 records filtered out
        0 ms: a, 3 records, attempt 1: done
        1000 ms: a, 1 records, attempt 1: done
    "#]]);
    assert!(world.sent().iter().all(|sent| items(&sent.event).iter().all(|item| item == "wanted")));
}

/// Source: U7b: the iterator advances past records that do not match.
#[tokio::test(start_paused = true)]
async fn the_checkpoint_moves_past_records_that_do_not_match() {
    let world = World::new(filtered(), succeed);
    world.touch("a", ["other", "other"]);
    let running = world.start();
    world.delivered().await;
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
    world.touch("a", ["wanted", "other"]);
    world.finish(running).await;
    assert_eq!(world.position("a").await, Some(Position::After("4".to_owned())));
    world.restarted(succeed).run().await;
    assert_eq!(world.sent().len(), 1, "nothing comes again");
}

#[tokio::test(start_paused = true)]
async fn the_checkpoint_stays_behind_a_record_that_is_not_done_whatever_was_filtered_out_behind_it() {
    let world = World::new(filtered(), |_| crate::tests::unhandled());
    world.touch("a", ["other", "wanted", "other"]);
    let running = world.start();
    pass_ms(10_000).await;
    assert_eq!(world.position("a").await, Some(Position::After("1".to_owned())));
    running.stop().await.unwrap();
    let after = world.restarted(succeed);
    after.run().await;
    assert_eq!(world.position("a").await, Some(Position::After("3".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_stream_where_nothing_matches_is_delivered_and_invokes_nothing() {
    let world = World::new(filtered(), succeed);
    world.touch("a", ["other"; 10]);
    let running = world.start();
    pass_ms(300).await;
    assert!(world.is_delivered_until(200));
    running.stop().await.unwrap();
    assert!(world.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_parent_of_which_nothing_matches_hands_over_to_its_children() {
    let world = World::new(filtered(), succeed);
    world.touch("a", ["other"; 4]);
    world.stream.split("a", &["b"]);
    world.touch("b", ["wanted"]);
    world.run().await;
    assert_eq!(world.position("a").await, Some(Position::Ended));
    assert_eq!(world.sent().len(), 1);
}

/// Source: Lambda's quotas: five filters without a raised quota.
#[tokio::test(start_paused = true)]
async fn more_filters_than_an_account_has_at_first_are_told() {
    let world = World::new(Mapping { filters: Filters::new([r#"{"a":["b"]}"#; 6]).unwrap(), ..mapping() }, succeed);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: trouble: there are 6 filters: an account has 5 until its quota is raised, before this is deployed
    "#]]);
}
