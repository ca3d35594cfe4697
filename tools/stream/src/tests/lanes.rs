use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, StreamRecord};
use expect_test::expect;

use crate::{
    checkpoint::Position,
    function::FunctionError,
    mapping::Mapping,
    shard::lane_of,
    tests::{World, items, mapping, numbers, pass_ms, report, succeed, unhandled},
};

/// A mapping with this number of lanes per shard.
fn lanes(n_lanes: usize) -> Mapping {
    Mapping { parallelization_factor: n_lanes, ..mapping() }
}

/// One item for each lane, in the order of the lanes.
fn item_of_each(n_lanes: usize) -> Vec<String> {
    let lane = |item: &str| {
        let change = StreamRecord::builder().keys("id", AttributeValue::S(item.to_owned())).build();
        lane_of(&Record::builder().dynamodb(change).build(), n_lanes)
    };
    let find = |wanted| (0..1_000).map(|n| format!("item {n}")).find(|item| lane(item) == wanted).unwrap();
    (0..n_lanes).map(find).collect()
}

/// Two items in different lanes. In most tests the first one is poison.
fn two_items() -> [String; 2] {
    item_of_each(2).try_into().unwrap()
}

/// A world whose function fails for this item only, as long as the returned flag is true.
fn poisoned(mapping: Mapping, poison: &str) -> (World, Arc<AtomicBool>) {
    let is_poison = Arc::new(AtomicBool::new(true));
    let (poison, does_fail) = (poison.to_owned(), Arc::clone(&is_poison));
    let world = World::with_events(mapping, Duration::ZERO, move |event| {
        if does_fail.load(Ordering::Relaxed) && items(event).contains(&poison) {
            unhandled()
        } else {
            Ok("null".to_owned())
        }
    });
    (world, is_poison)
}

/// The item and the sequence number of each delivered record, in the order of delivery.
fn delivered(world: &World) -> Vec<(String, String)> {
    let records = |event| items(event).into_iter().zip(numbers(event)).collect::<Vec<_>>();
    world.sent().iter().flat_map(|sent| records(&sent.event)).collect()
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn records_of_one_item_keep_their_order_and_two_are_never_under_way_at_once() {
    const TAKES_MS: u128 = 70;
    let world = World::with_slow_function(lanes(4), Duration::from_millis(70), succeed);
    let names: Vec<String> = (0..7).map(|n| format!("item {n}")).collect();
    // Mixed over the lanes, and more records than one read returns.
    let mixed = (0..90).map(|n: usize| names[n * n % 11 % 7].as_str());
    world.touch("a", mixed);
    world.run().await;
    let mut last: BTreeMap<String, (u128, u64)> = BTreeMap::new();
    let mut n_at_once = 0;
    let mut until_ms = 0;
    for sent in world.sent() {
        n_at_once += usize::from(sent.at_ms < until_ms);
        until_ms = sent.at_ms + TAKES_MS;
        for (item, number) in items(&sent.event).into_iter().zip(numbers(&sent.event)) {
            let number: u64 = number.parse().unwrap();
            if let Some((at_ms, before)) = last.insert(item.clone(), (sent.at_ms, number)) {
                assert!(before < number, "{item}: {before} comes before {number}");
                assert!(at_ms == sent.at_ms || at_ms + TAKES_MS <= sent.at_ms, "{item}: {before} is under way");
            }
        }
    }
    assert_eq!(delivered(&world).len(), 90);
    assert!(n_at_once > 10, "lanes go side by side: {n_at_once}");
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn a_poison_record_holds_up_the_items_of_its_lane_only() {
    let [poison, other] = two_items();
    let (world, is_poison) = poisoned(lanes(2), &poison);
    world.touch("a", [&*poison, &other, &poison, &other]);
    let running = world.start();
    pass_ms(1_000).await;
    world.touch("a", [&*other, &poison]);
    pass_ms(1_000).await;
    is_poison.store(false, Ordering::Relaxed);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed: boom
        0 ms: a, 1 records, attempt 1: done
        0 ms: a, 1 records, attempt 1: done
        100 ms: a, 2 records, attempt 2: failed: boom
        300 ms: a, 2 records, attempt 3: failed: boom
        700 ms: a, 2 records, attempt 4: failed: boom
        1000 ms: a, 1 records, attempt 1: done
        1500 ms: a, 2 records, attempt 5: failed: boom
        3100 ms: a, 2 records, attempt 6: done
        3100 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn each_lane_has_its_own_batches_and_is_read_on_while_another_works() {
    let [slow, other] = two_items();
    let world = World::with_slow_function(Mapping { batch_size: 2, ..lanes(2) }, Duration::from_secs(1), succeed);
    world.touch("a", [&*slow, &slow, &slow]);
    let running = world.start();
    pass_ms(500).await;
    world.touch("a", [&*other, &other, &other]);
    world.finish(running).await;
    world.observes(&expect![[r#"
        1000 ms: a, 2 records, attempt 1: done
        1500 ms: a, 2 records, attempt 1: done
        2000 ms: a, 1 records, attempt 1: done
        2500 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn a_lane_gathers_its_own_batching_window() {
    let [one, other] = two_items();
    let world = World::new(Mapping { batching_window_ms: 1_000, ..lanes(2) }, succeed);
    world.touch("a", [&*one]);
    let running = world.start();
    pass_ms(600).await;
    world.touch("a", [&*other, &one]);
    world.finish(running).await;
    world.observes(&expect![[r#"
        1000 ms: a, 2 records, attempt 1: done
        1750 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn each_lane_counts_its_own_attempts_and_gives_up_for_itself() {
    let [poison, other] = two_items();
    let (world, _) = poisoned(Mapping { retry_attempts_max: Some(2), ..lanes(2) }, &poison);
    world.touch("a", [&*poison, &other, &poison, &other]);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed: boom
        0 ms: a, 1 records, attempt 1: done
        0 ms: a, 1 records, attempt 1: done
        100 ms: a, 2 records, attempt 2: failed: boom
        300 ms: a, 2 records, attempt 3: failed: boom
        300 ms: a, 2 records discarded
    "#]]);
    let info = &world.destination.bodies()[0]["DDBStreamBatchInfo"];
    assert_eq!((&info["startSequenceNumber"], &info["endSequenceNumber"]), (&"1".into(), &"3".into()));
    assert_eq!(info["batchSize"], 2);
    assert_eq!(world.position("a").await, Some(Position::After("4".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_partial_response_is_of_its_lane_only() {
    let [partial, other] = two_items();
    let is_first = AtomicBool::new(true);
    let failing = partial.clone();
    let world = World::with_events(lanes(2), Duration::ZERO, move |event| {
        let fails = items(event).contains(&failing) && is_first.swap(false, Ordering::Relaxed);
        Ok(if fails { report(&["3"]) } else { "null".to_owned() })
    });
    world.touch("a", [&*partial, &other, &partial]);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: failed from 3 on
        0 ms: a, 1 records, attempt 1: done
        100 ms: a, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn after_a_crash_the_checkpoint_is_right_before_the_slowest_lane_and_nothing_is_skipped() {
    let [poison, other] = two_items();
    let (world, _) = poisoned(lanes(2), &poison);
    world.touch("a", [&*other, &other, &poison, &other, &poison, &other]);
    let running = world.start();
    pass_ms(1_000).await;
    assert_eq!(delivered(&world).iter().filter(|(item, _)| *item == other).count(), 4, "the other lane is done");
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
    running.crash().await;
    let after = world.restarted(succeed);
    let n_before = world.sent().len();
    after.run().await;
    let mut again: Vec<String> = world.sent()[n_before..].iter().flat_map(|sent| numbers(&sent.event)).collect();
    again.sort();
    assert_eq!(again, ["3", "4", "5", "6"], "all behind the checkpoint, whichever lane was how far");
    assert_eq!(world.position("a").await, Some(Position::After("6".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_the_invocations_of_all_lanes_and_saves_them() {
    let [one, other] = two_items();
    let world = World::with_slow_function(lanes(2), Duration::from_secs(10), succeed);
    world.touch("a", [&*one, &other, &one]);
    world.run_for_ms(1_000).await;
    world.observes(&expect![[r#"
        10000 ms: a, 2 records, attempt 1: done
        10000 ms: a, 1 records, attempt 1: done
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("3".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_drained_only_when_all_its_lanes_are() {
    let [poison, other] = two_items();
    let (world, is_poison) = poisoned(lanes(2), &poison);
    world.touch("a", [&*other, &poison, &other]);
    world.stream.split("a", &["b"]);
    world.touch("b", [&*other]);
    let running = world.start();
    pass_ms(60_000).await;
    assert_eq!(world.position("a").await, Some(Position::After("1".to_owned())));
    assert!(world.stream.calls().iter().all(|call| !call.starts_with("b at")), "the child waits");
    is_poison.store(false, Ordering::Relaxed);
    world.finish(running).await;
    assert_eq!(world.position("a").await, Some(Position::Ended));
    assert_eq!(delivered(&world).last().unwrap().1, "4");
}

#[tokio::test(start_paused = true)]
async fn a_mapping_has_delivered_what_every_lane_is_through_with() {
    let [one, other] = two_items();
    let world = World::with_slow_function(lanes(2), Duration::from_secs(10), succeed);
    world.touch("a", [&*one]);
    let running = world.start();
    pass_ms(5_000).await;
    world.touch("a", [&*other]);
    pass_ms(9_990).await;
    assert!(world.is_delivered_until(4_500), "one lane is through");
    assert!(!world.is_delivered_until(5_250), "the other is not");
    pass_ms(600).await;
    assert!(world.is_delivered_until(15_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_held_over_all_lanes_is_bounded_and_then_reading_waits() {
    let [poison, other] = two_items();
    let (world, is_poison) = poisoned(lanes(2), &poison);
    world.touch("a", [&*other; 100]);
    world.touch("a", [&*poison; 100]);
    let running = world.start();
    pass_ms(60_000).await;
    assert_eq!(delivered(&world).iter().filter(|(item, _)| *item == other).count(), 100);
    assert_eq!(world.stream.n_records_read(), 100 + 12, "two lanes hold two batches of three each");
    is_poison.store(false, Ordering::Relaxed);
    world.finish(running).await;
    assert_eq!(world.stream.n_records_read(), 200);
    assert_eq!(world.position("a").await, Some(Position::After("200".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_fills_the_bound_keeps_no_other_from_what_it_holds() {
    let [poison, other] = two_items();
    let (world, _) = poisoned(Mapping { batching_window_ms: 1_000, ..lanes(2) }, &poison);
    world.touch("a", [&*poison; 11]);
    world.touch("a", [&*other, &poison]);
    let running = world.start();
    pass_ms(900).await;
    assert_eq!(world.stream.n_records_read(), 12, "the bound is reached");
    pass_ms(200).await;
    assert_eq!(delivered(&world).last().unwrap().0, other);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_lanes_are_all_busy_is_not_read() {
    let [one, other] = two_items();
    let world = World::with_slow_function(lanes(2), Duration::from_secs(1), succeed);
    world.touch("a", [&*one, &other]);
    let running = world.start();
    pass_ms(500).await;
    world.touch("a", [&*one]);
    pass_ms(490).await;
    assert_eq!(world.stream.n_records_read(), 2);
    world.finish(running).await;
    assert_eq!(world.stream.n_records_read(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_is_not_available_is_told_once_for_all_lanes() {
    let is_there = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_there);
    let world = World::new(lanes(4), move |numbers| {
        if answers.load(Ordering::Relaxed) {
            return succeed(numbers);
        }
        Err(FunctionError::Unavailable { message: "connection refused".to_owned() })
    });
    world.touch("a", item_of_each(4).iter().map(String::as_str));
    let running = world.start();
    pass_ms(1_000).await;
    world.observes(&expect![[r#"
        0 ms: trouble: the function is not available: connection refused
    "#]]);
    is_there.store(true, Ordering::Relaxed);
    world.finish(running).await;
    assert_eq!(delivered(&world).iter().filter(|(_, number)| number == "1").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_in_one_lane_fails_that_batch_only() {
    let [poison, other] = two_items();
    let panics = poison.clone();
    let world = World::with_events(Mapping { retry_attempts_max: Some(1), ..lanes(2) }, Duration::ZERO, move |event| {
        assert!(!items(event).contains(&panics), "this item");
        Ok("null".to_owned())
    });
    world.touch("a", [&*poison, &other]);
    world.run().await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: failed: it panicked
        0 ms: a, 1 records, attempt 1: done
        100 ms: a, 1 records, attempt 2: failed: it panicked
        100 ms: a, 1 records discarded
    "#]]);
}
