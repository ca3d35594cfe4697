//! Under the checkpoint: what an event must contain, which records it passes, and that nothing counts twice.

use derive::{family::Family, write::Table};
use engine::ledger::{LedgerKind, checkpoint::POSITION};
use keys::{item::text, key::Key};
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};

use crate::cases::bed::{Bed, SHARD, in_window};

/// Members of one batch, each in a group of its own: counters for two transactions.
const N_OF_TWO_CHUNKS: usize = 120;

fn bed() -> Bed {
    Bed::new().under(LedgerKind::Checkpoint).running(Family::Additive)
}

/// The position of the checkpoint without its padding zeros; empty when there is none.
fn position(bed: &Bed) -> String {
    let checkpoints = bed.ledger("CHECKPOINT");
    assert!(checkpoints.len() < 2, "one shard");
    let position = checkpoints.first().and_then(|item| text(item, POSITION)).unwrap_or_default();
    position.trim_start_matches('0').to_owned()
}

#[tokio::test]
async fn an_event_without_a_shard_is_refused_and_the_error_says_what_to_set() {
    let mut bed = bed();
    let records = bed.joins(1).await;
    let event = json!({ "Records": records }).to_string();
    let error = bed.try_handle(&event).await.unwrap_err().to_string();
    assert!(error.contains("set TumblingWindowInSeconds on the event source mapping"), "{error}");
    assert_eq!(bed.calls(), [""; 0], "nothing is applied");

    let bed = bed.running(Family::LevelTriggered);
    let handled = bed.try_handle(&event).await.unwrap();
    assert_eq!(handled.failed_from, None, "who counts nothing asks for no shard");
    assert_eq!(bed.memory().snapshot(Table::Main).len(), 2, "the mirror is there");
}

#[tokio::test]
async fn the_state_of_a_window_is_given_back_as_it_came() {
    let mut bed = bed();
    let records = json!({ "Records": bed.joins(1).await }).to_string();
    for state in [r#"{"b": 1.50, "a": [null, "\u00e9"]}"#, "{}"] {
        let handled = bed.try_handle(&in_window(&records, state, false)).await.unwrap();
        assert_eq!(handled.state.as_deref(), Some(state));
        assert_eq!(functions::handler::response(&handled)["state"], serde_json::from_str::<Value>(state).unwrap());
    }
}

#[tokio::test]
async fn the_end_of_a_window_and_a_batch_of_no_records_are_answered_and_write_nothing() {
    let mut bed = bed();
    let records = bed.joins(1).await;
    bed.handle(&records).await;
    bed.calls();
    let none = json!({ "Records": [] }).to_string();
    for (event, is_final) in [(&none, false), (&none, true)] {
        let handled = bed.try_handle(&in_window(event, "{}", is_final)).await.unwrap();
        assert_eq!((handled.failed_from, handled.state.as_deref()), (None, Some("{}")));
    }
    let last = format!(r#"{{"window":{{}},"shardId":"{SHARD}","isFinalInvokeForWindow":true}}"#);
    assert_eq!(bed.try_handle(&last).await.unwrap().state.as_deref(), Some("{}"));
    assert_eq!(bed.calls(), [""; 0]);

    let more = json!({ "Records": bed.memberships([("bob".into(), "g".into())]).await }).to_string();
    bed.try_handle(&in_window(&more, "{}", true)).await.unwrap();
    assert_eq!(bed.counted("member-count"), 2, "the last batch of a window is a batch");
}

#[tokio::test]
async fn a_batch_without_effects_asks_the_store_nothing_however_old_it_is() {
    for ledger in [LedgerKind::Checkpoint, LedgerKind::Receipts] {
        let mut bed = bed().under(ledger);
        bed.set(&Key::new("JUNK", "1"), "Colour", "red").await;
        let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
        bed.set(&user, "Name", "Bob").await;
        let records = bed.records();
        for _ in 0..3 {
            bed.handle(&records).await;
            bed.clock.advance(3_600_000);
        }
        assert_eq!(bed.calls(), [""; 0]);
    }
}

#[tokio::test]
async fn one_more_and_one_less_in_one_batch_write_the_checkpoint_alone() {
    let mut bed = bed();
    let key = bed.put("Membership", &[("UserId", "ann"), ("GroupId", "g")], &[]).await;
    bed.delete(&key).await;
    let records = bed.records();
    let handled = bed.handle(&records).await;
    let written: Vec<String> = handled.account.commits.iter().map(|commit| commit.key.pk.clone()).collect();
    assert_eq!(written, [format!("CHECKPOINT#2024-01-15T10:00:00.000#{SHARD}")]);
    assert_eq!(position(&bed), "1002");
    bed.handle(&records[..1]).await;
    assert_eq!(bed.memory().snapshot(Table::Main).len(), 0, "half of it that comes again adds nothing");
}

/// At whatever point one invocation stops while the other handles the whole batch, each change counts once. An invocation
/// that read the checkpoint again after its guard failed once sent its pending changes under the new position.
#[tokio::test]
async fn two_invocations_at_once_on_a_batch_of_several_chunks_count_once() {
    for n_turns in 0.. {
        let mut bed = bed();
        let records = bed.joins(N_OF_TWO_CHUNKS).await;
        let event = bed.event(&records);
        let mut one = bed.start(&event);
        let ended = (0..n_turns).filter(|_| one.ends()).count() > 0;
        let other = bed.start(&event).finish().unwrap().unwrap();
        assert_eq!(other.failed_from, None);
        if ended {
            assert!(n_turns > 6, "a read and two transactions");
            return;
        }
        assert_eq!(one.finish().unwrap().unwrap().failed_from, None, "after {n_turns} turns");
        assert_eq!(bed.counted("member-count"), 120, "after {n_turns} turns");
        assert_eq!(position(&bed), "1120");
    }
}

#[tokio::test]
async fn what_a_dead_invocation_sent_lands_before_the_next_or_not_at_all() {
    for lands_first in [true, false] {
        let mut bed = bed();
        let records = bed.joins(3).await;
        let event = bed.event(&records);
        bed.fails(|call| matches!(call, Call::Transact(_)).then_some((Side::Before, Fault::Late)));
        assert!(bed.start(&event).finish().is_none(), "it dies");
        bed.fails(|_| None);
        let landed = if lands_first { bed.land() } else { String::new() };
        let handled = bed.handle(&records).await;
        let late = if lands_first { landed } else { bed.land() };
        assert_eq!(
            (late.contains("Done"), handled.account.n_duplicates),
            (lands_first, if lands_first { 3 } else { 0 }),
            "{late}"
        );
        assert_eq!(bed.counted("member-count"), 3);
    }
}

#[tokio::test]
async fn records_out_of_order_or_there_twice_count_each_once() {
    let mut bed = bed();
    let records = bed.joins(4).await;
    let batch: Vec<Value> = [2, 0, 2, 3, 1, 0].map(|at: usize| records[at].clone()).into();
    for n_duplicates in [2, 6] {
        let handled = bed.handle(&batch).await;
        assert_eq!((handled.failed_from, handled.account.n_duplicates), (None, n_duplicates));
        assert_eq!(bed.counted("member-count"), 4);
        assert_eq!(position(&bed), "1004");
    }
}

#[tokio::test]
async fn a_change_behind_one_that_is_not_applied_is_not_passed() {
    let mut bed = bed();
    let records = bed.joins(N_OF_TWO_CHUNKS).await;
    bed.fails(|call| match call {
        Call::Transact(first) if first.writes().len() == 100 => Some((Side::Before, Fault::Unanswered)),
        _ => None,
    });
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from.as_deref(), Some("1001"));
    assert_eq!(handled.account.undone.len(), N_OF_TWO_CHUNKS);
    assert_eq!((position(&bed).as_str(), bed.counted("member-count")), ("", 0));

    bed.fails(|_| None);
    assert_eq!(bed.handle(&records).await.failed_from, None);
    assert_eq!((position(&bed).as_str(), bed.counted("member-count")), ("1120", 120));
}

#[tokio::test]
async fn a_change_that_is_parked_is_passed_and_what_is_behind_it_goes_in() {
    let mut bed = bed();
    let mut records = bed.joins(3).await;
    records[1]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1));
    assert_eq!((position(&bed).as_str(), bed.counted("member-count")), ("1003", 2));
    let again = bed.handle(&records).await;
    assert_eq!((again.account.n_duplicates, again.account.parked.len()), (3, 0), "it is parked once");
}
