//! What a mapping with filters delivers, and where its checkpoint stands.

use expect_test::{Expect, expect};

use super::world::{World, items, mapping, pass_ms, succeed};
use crate::checkpoint::Position;
use crate::filter::Filters;
use crate::mapping::Mapping;

fn check(world: &World, expected: &Expect) {
    expected.assert_eq(&world.observed());
}

/// Only records of the item `wanted`.
fn filtered() -> Mapping {
    let pattern = r#"{"dynamodb":{"Keys":{"id":{"S":["wanted"]}}}}"#;
    Mapping { filters: Filters::new([pattern]).unwrap(), ..mapping() }
}

/// Source: U7b; reference B2.
#[tokio::test(start_paused = true)]
async fn filters_are_applied_record_by_record_while_a_batch_is_built() {
    let world = World::new(Mapping { batching_window_ms: 1_000, ..filtered() }, succeed);
    world.touch("a", ["wanted", "other", "wanted", "other", "other", "wanted", "wanted"]);
    world.run().await;
    check(
        &world,
        &expect![[r#"
            0 ms: 1 records filtered out
            0 ms: 2 records filtered out
            0 ms: a, 3 records, attempt 1: done
            1000 ms: a, 1 records, attempt 1: done
        "#]],
    );
    assert!(world.sent().iter().all(|sent| items(&sent.event).iter().all(|item| item == "wanted")));
}

/// Source: U7b: the iterator advances past what does not match.
#[tokio::test(start_paused = true)]
async fn the_checkpoint_moves_past_records_that_do_not_match() {
    let world = World::new(filtered(), succeed);
    world.touch("a", ["other", "other"]);
    let running = world.start();
    world.delivered().await;
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
    world.touch("a", ["wanted", "other"]);
    world.delivered().await;
    running.stop().await.unwrap();
    assert_eq!(world.position("a").await, Some(Position::After("4".to_owned())));
    world.restarted(succeed).run().await;
    assert_eq!(world.sent().len(), 1, "nothing comes again");
}

#[tokio::test(start_paused = true)]
async fn the_checkpoint_stays_behind_a_record_that_is_not_done_whatever_was_filtered_out_behind_it() {
    let world = World::new(filtered(), |_| super::world::unhandled());
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

/// Source: Lambda's quotas: five filters in an account as it comes.
#[tokio::test(start_paused = true)]
async fn more_filters_than_an_account_has_at_first_are_told() {
    let world = World::new(Mapping { filters: Filters::new([r#"{"a":["b"]}"#; 6]).unwrap(), ..mapping() }, succeed);
    world.run().await;
    check(
        &world,
        &expect![[r#"
            0 ms: trouble: there are 6 filters: an account has 5 until its quota is raised, before this is deployed
        "#]],
    );
}
