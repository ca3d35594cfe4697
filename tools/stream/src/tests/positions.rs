//! Positions in shards, and the order of shards.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use expect_test::expect;
use futures::future::BoxFuture;

use crate::{
    checkpoint::{CheckpointError, Checkpoints, MemoryCheckpoints, Position},
    mapping::{Mapping, StartingPosition},
    poller::{StreamError, Wiring, chain},
    source::ApiError,
    tests::{Running, World, mapping, pass_ms, report, succeed, unhandled},
};

/// In-memory checkpoints whose next loads and saves fail with these errors.
#[derive(Default)]
struct FailingCheckpoints {
    loads: Mutex<VecDeque<CheckpointError>>,
    saves: Mutex<VecDeque<CheckpointError>>,
    load_takes: Duration,
    checkpoints: MemoryCheckpoints,
}

impl FailingCheckpoints {
    fn loads(errors: impl IntoIterator<Item = CheckpointError>) -> Self {
        Self { loads: Mutex::new(errors.into_iter().collect()), ..Self::default() }
    }

    fn start(self, world: &World) -> (Arc<Self>, Running) {
        let failing = Arc::new(self);
        let running = Running::over(Wiring { checkpoints: Arc::clone(&failing) as Arc<_>, ..world.wiring() });
        (failing, running)
    }
}

impl Checkpoints for FailingCheckpoints {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        Box::pin(async move {
            if !self.load_takes.is_zero() {
                tokio::time::sleep(self.load_takes).await;
            }
            let error = self.loads.lock().unwrap().pop_front();
            error.map_or(Ok(()), Err)?;
            self.checkpoints.load(mapping, shard).await
        })
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(async move {
            let error = self.saves.lock().unwrap().pop_front();
            error.map_or(Ok(()), Err)?;
            self.checkpoints.save(mapping, shard, position).await
        })
    }
}

fn unreachable() -> CheckpointError {
    CheckpointError::Unreachable("connection refused".into())
}

fn lasting() -> CheckpointError {
    CheckpointError::Lasting("there is no table for them".into())
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_behind_the_last_batch() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 4);
    world.run().await;
    world.insert("a", 1);
    world.restarted(succeed).run().await;
    world.observes(&expect![[r#"
        0 ms: a, 3 records, attempt 1: done
        0 ms: a, 1 records, attempt 1: done
        250 ms: a, 1 records, attempt 1: done
    "#]]);
    assert_eq!(world.stream.calls().last().unwrap(), r#"a at After("4")"#);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_batch_goes_on_behind_what_was_reported_done() {
    let world = World::new(mapping(), |_| Ok(report(&["3"])));
    world.insert("a", 3);
    world.run_for_ms(50).await;
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
    world.restarted(succeed).run().await;
    world.observes(&expect![[r#"
        0 ms: a, 3 records, attempt 1: failed from 3 on
        50 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_the_invocation_in_progress_and_saves_it() {
    let world = World::with_slow_function(mapping(), Duration::from_secs(10), succeed);
    world.insert("a", 5);
    world.run_for_ms(1_000).await;
    world.observes(&expect![[r#"
        10000 ms: a, 3 records, attempt 1: done
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("3".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_retries() {
    let world = World::new(mapping(), |_| unhandled());
    world.insert("a", 1);
    let running = world.start();
    pass_ms(60_050).await;
    let before = tokio::time::Instant::now();
    running.stop().await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(world.position("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_drained_shard_is_not_read_again_after_a_restart() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    world.stream.split("a", &["b"]);
    world.run().await;
    world.insert("b", 1);
    world.restarted(succeed).run().await;
    assert_eq!(world.stream.calls().iter().filter(|call| call.starts_with("a at")).count(), 1);
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: done
        250 ms: b, 1 records, attempt 1: done
    "#]]);
}

/// Source: U2.
#[tokio::test(start_paused = true)]
async fn latest_skips_what_was_there_and_reads_later_shards_from_their_start() {
    let world = World::new(Mapping { starting_position: StartingPosition::Latest, ..mapping() }, succeed);
    world.insert("a", 2);
    let running = world.start();
    world.delivered().await;
    world.insert("a", 1);
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    world.finish(running).await;
    world.observes(&expect![[r#"
        500 ms: a, 1 records, attempt 1: done
        500 ms: b, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn latest_does_not_skip_a_child_that_appeared_while_the_mapping_was_down() {
    let world = World::new(Mapping { starting_position: StartingPosition::Latest, ..mapping() }, succeed);
    let running = world.start();
    world.delivered().await;
    world.insert("a", 1);
    world.finish(running).await;
    world.insert("a", 1);
    world.stream.split("a", &["b"]);
    world.insert("b", 1);
    world.restarted(succeed).run().await;
    world.observes(&expect![[r#"
        500 ms: a, 1 records, attempt 1: done
        500 ms: a, 1 records, attempt 1: done
        500 ms: b, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_iterator_is_replaced_behind_the_last_record_read() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 2);
    let running = world.start();
    world.delivered().await;
    world.stream.expire_iterators();
    world.insert("a", 1);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 2 records, attempt 1: done
        600 ms: a, 1 records, attempt 1: done
    "#]]);
    assert!(world.stream.calls().contains(&r#"a at After("2")"#.to_owned()));
}

/// Source: U5.
#[tokio::test(start_paused = true)]
async fn trimmed_records_are_told_as_a_possible_loss() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    world.run().await;
    world.insert("a", 3);
    world.stream.trim("a", 3);
    world.restarted(succeed).run().await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: done
        250 ms: trouble: the records behind the last position are trimmed; shard a goes on at its oldest record, records may be lost
        350 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_once_until_it_is_over() {
    let world = World::new(mapping(), succeed);
    let outage = ApiError::Transient { message: "connection refused".to_owned() };
    world.stream.fail(&outage, 9);
    world.insert("a", 1);
    let running = world.start();
    world.delivered().await;
    world.stream.fail(&outage, 1);
    world.insert("a", 1);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: trouble: shard a cannot be read, trying again: connection refused
        21300 ms: a, 1 records, attempt 1: done
        21550 ms: trouble: shard a cannot be read, trying again: connection refused
        21650 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn positions_that_cannot_be_loaded_now_are_loaded_later_also_at_the_start() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    let (_, running) =
        FailingCheckpoints::loads([unreachable(), CheckpointError::Transient("busy".into())]).start(&world);
    pass_ms(1_000).await;
    running.stop().await.unwrap();
    world.observes(&expect![[r#"
        0 ms: trouble: new shards cannot be read yet, trying again: nothing responds
        300 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn positions_that_can_never_be_loaded_end_the_mapping_at_its_start() {
    let world = World::new(mapping(), succeed);
    let (_, running) = FailingCheckpoints::loads([unreachable(), lasting()]).start(&world);
    let line = "the mapping cannot start: the checkpoint could not be loaded or saved: there is no table for them";
    assert_eq!(chain(&running.end().await.unwrap_err()), line);
}

#[tokio::test(start_paused = true)]
async fn a_new_shard_whose_position_cannot_be_loaded_does_not_end_a_mapping_that_runs() {
    let world = World::new(mapping(), succeed);
    let (failing, running) = FailingCheckpoints::default().start(&world);
    world.delivered().await;
    failing.loads.lock().unwrap().push_back(lasting());
    world.stream.open("b", None);
    world.insert("b", 1);
    pass_ms(4_000).await;
    world.insert("a", 1);
    pass_ms(1_000).await;
    running.stop().await.unwrap();
    world.observes(&expect![[r#"
        2000 ms: trouble: new shards cannot be read yet, trying again: the checkpoint could not be loaded or saved: there is no table for them
        2100 ms: b, 1 records, attempt 1: done
        4250 ms: a, 1 records, attempt 1: done
    "#]]);
}

#[tokio::test(start_paused = true)]
async fn a_position_that_cannot_be_saved_while_nothing_responds_is_told_without_its_causes() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 1);
    let saves = Mutex::new([unreachable(), unreachable()].into());
    let (failing, running) = FailingCheckpoints { saves, ..FailingCheckpoints::default() }.start(&world);
    world.finish(running).await;
    world.observes(&expect![[r#"
        0 ms: a, 1 records, attempt 1: done
        0 ms: trouble: the checkpoint cannot be saved: nothing responds
    "#]]);
    assert_eq!(failing.checkpoints.load("aggregate", "a").await.unwrap(), Some(Position::After("1".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_a_position_that_is_being_loaded() {
    let world = World::new(mapping(), succeed);
    let load_takes = Duration::from_secs(10);
    let (_, running) = FailingCheckpoints { load_takes, ..FailingCheckpoints::default() }.start(&world);
    pass_ms(1_000).await;
    let before = tokio::time::Instant::now();
    running.stop().await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

/// Source: LS.
#[tokio::test(start_paused = true)]
async fn records_that_change_nothing_are_left_out_and_the_checkpoint_moves_behind_them() {
    let world = World::new(mapping(), succeed);
    world.stream.modify("a", "2.0", "2", world.now());
    world.stream.modify("a", "2", "3", world.now());
    world.run().await;
    world.stream.modify("a", "3", "3", world.now());
    world.restarted(succeed).run().await;
    world.observes(&expect![[r#"
        0 ms: 1 equal records dropped
        0 ms: a, 1 records, attempt 1: done
        250 ms: 1 equal records dropped
    "#]]);
    assert_eq!(world.position("a").await, Some(Position::After("3".to_owned())));
}

// ---- shards ----

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
