use std::sync::Arc;
use std::time::Duration;

use super::memory_stream::MemoryStream;
use super::world::{World, mapping, pass_ms, succeed, unhandled};
use crate::api::{ApiError, IteratorAt, StreamApi as _};
use crate::mapping::Mapping;
use crate::shared::ReadOnce;

#[tokio::test(start_paused = true)]
async fn an_empty_stream_is_idle_at_once() {
    let world = World::new(mapping(), succeed);
    let running = world.start();
    pass_ms(1).await;
    assert!(world.is_idle_since(0));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_retries_is_not_idle() {
    let world = World::new(mapping(), |_| unhandled());
    world.insert("a", 1);
    let running = world.start();
    pass_ms(60_000).await;
    assert!(!world.is_idle_since(0));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_is_told_for_the_time_before_an_invocation_and_not_during_it() {
    let world = World::with_slow_function(mapping(), Duration::from_mins(1), succeed);
    let running = world.start();
    pass_ms(1_100).await;
    world.insert("a", 1);
    pass_ms(30_000).await;
    assert!(world.is_idle_since(1_000));
    assert!(!world.is_idle_since(1_100));
    pass_ms(31_000).await;
    assert!(world.is_idle_since(61_000));
    running.stop().await.unwrap();
}

/// The page was read before the second record was written, so that it is not full says nothing of the second record.
#[tokio::test(start_paused = true)]
async fn a_page_that_another_mapping_read_tells_only_of_the_time_when_it_was_read() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(10), succeed);
    let shared = Arc::new(ReadOnce::new(MemoryStream::clone(&world.stream)));
    world.insert("a", 1);
    let iterator = shared.iterator("a", &IteratorAt::TrimHorizon).await.unwrap();
    assert_eq!(shared.records(&iterator, 3).await.unwrap().records.len(), 1);
    pass_ms(1_000).await;
    world.insert("a", 1);
    let running = world.start_over(shared);
    pass_ms(15_000).await;
    assert!(world.is_idle_since(0));
    assert!(!world.is_idle_since(1_000));
    pass_ms(6_000).await;
    assert!(world.is_idle_since(1_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_holds_records_for_its_window_is_not_idle() {
    let world = World::new(Mapping { batching_window_ms: 10_000, ..mapping() }, succeed);
    world.insert("a", 1);
    let running = world.start();
    pass_ms(9_990).await;
    assert!(!world.is_idle_since(0));
    pass_ms(300).await;
    assert!(world.is_idle_since(10_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quiet_shard_does_not_speak_for_one_that_is_busy() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(10), succeed);
    world.stream.open("b", None);
    world.insert("b", 1);
    let running = world.start();
    pass_ms(9_990).await;
    assert!(!world.is_idle_since(0));
    pass_ms(300).await;
    assert!(world.is_idle_since(9_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_parent_is_not_idle() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(10), succeed);
    world.insert("a", 1);
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    let running = world.start();
    pass_ms(19_990).await;
    assert!(!world.is_idle_since(0));
    pass_ms(300).await;
    assert!(world.is_idle_since(20_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_split_leaves_no_moment_in_which_the_children_are_overlooked() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(10), succeed);
    let running = world.start();
    pass_ms(1_100).await;
    world.stream.split("a", &["b", "c"]);
    world.insert("c", 1);
    pass_ms(10_000).await;
    assert!(!world.is_idle_since(1_100));
    pass_ms(1_000).await;
    assert!(world.is_idle_since(11_100));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_shards_are_all_drained_is_idle() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    world.stream.split("a", &[]);
    let running = world.start();
    pass_ms(1).await;
    assert!(world.is_idle_since(0));
    pass_ms(10_000).await;
    assert!(world.is_idle_since(8_000));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_read_is_not_idle() {
    let world = World::new(mapping(), succeed);
    world.stream.fail(&ApiError::Transient { message: "connection refused".to_owned() }, 100);
    let running = world.start();
    pass_ms(60_000).await;
    assert!(!world.is_idle_since(0));
    running.stop().await.unwrap();
}
