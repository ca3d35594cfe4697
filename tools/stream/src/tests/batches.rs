use expect_test::expect;

use super::world::{World, mapping, pass_ms, succeed};
use crate::mapping::Mapping;

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
