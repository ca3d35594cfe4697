//! Under watermarks: what an event must contain, what a counter's watermark passes, and that nothing counts twice.

use derive::{family::Family, guard::Purpose, write::Table};
use engine::{
    ledger::{
        LedgerKind,
        watermarks::{KEPT_MS, mark_name},
    },
    park::parked,
    record::Lane,
    redrive::Redriven,
    registry::{Hold, RegistryWatch},
    sweep::Bounds,
};
use keys::key::Key;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::faulty::Fault;
use support::record::STREAM_ARN;

use crate::{
    caller::{Gone, Task},
    cases::{Bed, LEDGERS, SHARD, corrupt, in_window},
};

pub(crate) fn bed() -> Bed {
    Bed::new().under(LedgerKind::Watermarks).running(Family::Additive)
}

/// The counter of a group's members.
pub(crate) fn counter(group: usize) -> Key {
    Key::new(format!("GROUP#g{group}"), "METADATA#COUNT#member-count#00")
}

/// The watermark of the bed's shard on a counter.
fn mark(bed: &Bed, key: &Key) -> Option<Vec<u8>> {
    let lane = Lane { stream_arn: Some(STREAM_ARN.to_owned()), shard: Some(SHARD.to_owned()) };
    match bed.item(key)?.get(&mark_name(&lane).unwrap()) {
        Some(AttributeValue::B(bytes)) => Some(bytes.clone()),
        _ => None,
    }
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
async fn the_state_of_a_window_names_the_batch_handled_last_and_its_end_writes_nothing() {
    let mut bed = bed();
    let records = bed.joins(2).await;
    let [first, last] = [0, 1].map(|at| records[at]["dynamodb"]["SequenceNumber"].clone());
    let records = json!({ "Records": records }).to_string();
    for state in [r#"{"b": 1.50, "a": [null, "\u00e9"]}"#, "{}"] {
        let handled = bed.try_handle(&in_window(&records, state, false)).await.unwrap();
        let mut expected: Value = serde_json::from_str(state).unwrap();
        expected["handled"] = json!([first, last]);
        assert_eq!(functions::handler::response(&handled)["state"], expected);
    }
    bed.calls();
    let none = json!({ "Records": [] }).to_string();
    let last = format!(r#"{{"window":{{}},"shardId":"{SHARD}","isFinalInvokeForWindow":true}}"#);
    for event in [in_window(&none, "{}", false), in_window(&none, "{}", true), last] {
        let handled = bed.try_handle(&event).await.unwrap();
        assert_eq!((handled.failed_from, handled.state.as_deref()), (None, Some("{}")));
    }
    assert_eq!(bed.calls(), [""; 0]);

    let more = json!({ "Records": bed.memberships([("bob".into(), "g".into())]).await }).to_string();
    bed.try_handle(&in_window(&more, "{}", true)).await.unwrap();
    assert_eq!(bed.counted("member-count"), 3, "the last batch of a window is a batch");
}

#[tokio::test]
async fn the_state_of_a_window_is_given_back_as_it_came_where_nothing_rests_on_the_order() {
    let mut bed = bed().under(LedgerKind::Receipts);
    let records = json!({ "Records": bed.joins(1).await }).to_string();
    let state = r#"{"b": 1.50}"#;
    let handled = bed.try_handle(&in_window(&records, state, false)).await.unwrap();
    assert_eq!(handled.state.as_deref(), Some(state));
}

/// Three changes, of three counters: a batch of the second and the third, then the first. The watermark of the first
/// one's counter passes nothing, but on AWS it could be any counter.
#[tokio::test]
async fn a_batch_that_begins_before_the_last_one_is_reported() {
    let mut bed = bed();
    let records = bed.joins(3).await;
    let window = |records: &[Value], state: &str| in_window(&json!({ "Records": records }).to_string(), state, false);
    let state = |handled: &engine::batch::Handled| handled.state.clone().unwrap();

    let later = bed.try_handle(&window(&records[1..], "{}")).await.unwrap();
    let again = bed.try_handle(&window(&records[1..], &state(&later))).await.unwrap();
    let part = bed.try_handle(&window(&records[2..], &state(&later))).await.unwrap();
    for redelivery in [again, part] {
        assert_eq!(redelivery.account.n_out_of_order, 0, "a redelivery of the last batch is no disorder");
    }
    let early = bed.try_handle(&window(&records[..1], &state(&later))).await.unwrap();
    assert_eq!(early.account.n_out_of_order, 1);
}

#[tokio::test]
async fn records_that_stand_behind_later_ones_in_a_batch_are_reported() {
    let mut bed = bed();
    let mut records = bed.joins(3).await;
    records.swap(0, 2);
    let handled = bed.try_handle(&in_window(&json!({ "Records": records }).to_string(), "{}", false)).await.unwrap();
    assert_eq!(handled.account.n_out_of_order, 2);
}

#[tokio::test]
async fn the_state_ends_before_the_record_that_is_not_done() {
    let mut bed = bed();
    let records = bed.joins(2).await;
    let first = records[0]["dynamodb"]["SequenceNumber"].clone();
    let event = |state: &str| in_window(&json!({ "Records": &records }).to_string(), state, false);
    let second = counter(1);
    bed.writes_fail(Fault::Unanswered, move |key| *key == second);
    let handled = bed.try_handle(&event("{}")).await.unwrap();
    assert!(handled.failed_from.is_some());
    let state: Value = serde_json::from_str(handled.state.as_deref().unwrap()).unwrap();
    assert_eq!(state["handled"], json!([first, first]));
    let nothing_done = bed.try_handle(&in_window(&json!({ "Records": &records[1..] }).to_string(), "{}", false)).await;
    assert_eq!(nothing_done.unwrap().state.as_deref(), Some("{}"));
}

#[tokio::test]
async fn a_batch_without_effects_asks_the_store_nothing_however_old_it_is() {
    for ledger in LEDGERS {
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

/// A group of this name, known to a service that runs everything.
async fn group(name: &str) -> (Bed, Key) {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    let group = bed.put_settled("Group", &[("GroupId", name)], &[]).await;
    (bed, group)
}

#[tokio::test]
async fn who_counts_shows_the_count_and_the_records_of_both_writes_ask_for_nothing() {
    let (mut bed, group) = group("g0").await;
    for user in ["ann", "bob"] {
        bed.calls();
        let records = bed.memberships([(user.to_owned(), "g0".to_owned())]).await;
        bed.handle(&records).await;
        let calls = bed.calls();
        assert!(!calls.iter().any(|call| call.contains("quer")), "no counter is read: {calls:#?}");
        let shown = bed.shown(&group, "MemberCount");
        assert_eq!(shown, if user == "ann" { "1" } else { "2" }, "before any record of it is handled");
        let of_both = |record: &Value| {
            let keys = &record["dynamodb"]["Keys"];
            keys["PK"]["S"] == "GROUP#g0" && keys["SK"]["S"].as_str().unwrap().starts_with("METADATA")
        };
        let echoes: Vec<Value> = bed.records().into_iter().filter(of_both).collect();
        assert_eq!(echoes.len(), 2, "of the counter and of the group");
        bed.handle(&echoes).await;
        assert!(bed.calls().is_empty());
    }
}

#[tokio::test]
async fn a_shown_count_that_somebody_else_writes_over_is_corrected() {
    let (mut bed, group) = group("g0").await;
    let records = bed.joins(1).await;
    bed.handle(&records).await;
    let before = bed.item(&group).unwrap();
    bed.settle().await;
    let more = bed.memberships([("bob".into(), "g0".into())]).await;
    bed.handle_settled(&more).await;
    let shown = ["MemberCount", "MemberCount:rev"].map(|name| bed.shown(&group, name));
    // The count alone, the revision alone, and the whole item as it was.
    for (name, text) in [("MemberCount", "N:7"), ("MemberCount:rev", "N:0"), ("MemberCount:rev", "junk")] {
        bed.set_settled(&group, name, text).await;
        let again = ["MemberCount", "MemberCount:rev"].map(|name| bed.shown(&group, name));
        assert_eq!((again[0].as_str(), &again), ("2", &shown), "{name} {text}");
    }
    bed.memory().put_raw(Table::Main, before).unwrap();
    bed.settle().await;
    assert_eq!(bed.shown(&group, "MemberCount"), "2");
    // A target that is made later shows what was counted before.
    bed.delete(&group).await;
    bed.put_settled("Group", &[("GroupId", "g0")], &[]).await;
    assert_eq!(bed.shown(&group, "MemberCount"), "2");
}

/// The item that shows the count is too large for it, and is made smaller when an operator redrives.
#[tokio::test]
async fn what_refuses_to_show_a_count_shows_it_when_it_is_redriven() {
    let (mut bed, group) = group("g0").await;
    bed.set_settled(&group, "Padding", &"x".repeat(400 * 1_024 - 60)).await;
    let records = bed.joins(1).await;
    bed.handle_settled(&records).await;
    assert_eq!((bed.shown(&group, "MemberCount"), bed.parked().is_empty()), (String::new(), false));
    bed.set_settled(&group, "Padding", "x").await;
    bed.redrive_all().await;
    assert_eq!((bed.shown(&group, "MemberCount"), bed.parked().is_empty()), ("1".to_owned(), true));
}

/// Nothing of an invocation lands later than its watermark is kept: this is why it must not.
#[tokio::test]
async fn what_lands_after_its_watermark_was_taken_away_counts_again() {
    for is_taken_away in [false, true] {
        let mut bed = bed();
        let records = bed.joins(1).await;
        let target = counter(0);
        bed.writes_fail(Fault::Late, move |key| *key == target);
        assert!(bed.start(&bed.event(&records)).finish().is_none(), "it dies");
        bed.fails(|_| None);
        bed.handle(&records).await;
        bed.clock.advance(if is_taken_away { KEPT_MS + 3 * 60_000 } else { KEPT_MS - 60_000 });
        // A change of another shard takes away what is too old.
        let other = json!({ "Records": bed.memberships([("bob".into(), "g0".into())]).await }).to_string();
        bed.try_handle(&in_window(&other, "{}", false).replace(SHARD, "shardId-other")).await.unwrap();
        assert_eq!((mark(&bed, &counter(0)).is_some(), bed.counted("member-count")), (!is_taken_away, 2));
        bed.land();
        assert_eq!(bed.counted("member-count"), if is_taken_away { 3 } else { 2 });
    }
}

#[tokio::test]
async fn records_out_of_order_or_there_twice_count_each_once() {
    let mut bed = bed();
    let records = bed.memberships((0..4).map(|user| (format!("u{user}"), "g0".to_owned()))).await;
    let batch: Vec<Value> = [2, 0, 2, 3, 1, 0].map(|at: usize| records[at].clone()).into();
    for n_duplicates in [2, 6] {
        let handled = bed.handle(&batch).await;
        assert_eq!((handled.failed_from, handled.account.n_duplicates), (None, n_duplicates));
        assert_eq!(bed.counted("member-count"), 4);
    }
}

#[tokio::test]
async fn a_counter_that_is_not_reached_holds_up_no_other_and_its_changes_come_again() {
    let mut bed = bed();
    let records = bed.joins(6).await;
    let stored = counter(2);
    bed.writes_fail(Fault::Unanswered, move |key| *key == stored);
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from.as_deref(), handled.account.undone.len()), (Some("1003"), 1));
    assert_eq!(bed.counted("member-count"), 5);
    bed.fails(|_| None);
    assert_eq!(bed.handle(&records).await.failed_from, None);
    assert_eq!(bed.counted("member-count"), 6);
}

#[tokio::test]
async fn a_redrive_of_what_an_older_invocation_may_count_says_when_it_may_be_tried_again() {
    let mut bed = bed();
    let records = bed.joins(1).await;
    bed.handle(&with_unreadable_first(&records)).await;
    bed.put_true(&records[0].to_string());
    let change = parked(bed.memory()).await.unwrap().remove(0);
    let Ok(Redriven::Still { cause }) = bed.engine().redrive(&change, bed.deadline_ms()).await else {
        panic!("an invocation from before may count it");
    };
    assert!(cause.ends_with("redrive it in 31 minutes"), "{cause}");
}

#[tokio::test]
async fn an_item_of_the_application_under_a_counter_s_key_stays_as_it_is() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let foreign = counter(1);
        bed.set(&foreign, "EntityType", "User").await;
        bed.records();
        let before = bed.item(&foreign);
        let records = bed.joins(3).await;
        let handled = bed.handle(&records).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1), "{ledger:?}");
        let why = "is an item of User";
        assert!(handled.account.parked[0].cause.contains(why), "{:?}", handled.account.parked);
        assert_eq!((bed.item(&foreign), bed.counted("member-count")), (before, 2), "{ledger:?}");
        assert_eq!(bed.handle(&records).await.account.parked.len(), 0, "it is known to be parked");
        bed.clock.advance(32 * 60_000);
        let parked = parked(bed.memory()).await.unwrap().remove(0);
        match bed.engine().redrive(&parked, bed.deadline_ms()).await.unwrap() {
            Redriven::Still { cause } => assert!(cause.contains(why), "{cause}"),
            other => panic!("{other:?}"),
        }
        bed.delete(&foreign).await;
        bed.records();
        bed.redrive_all().await;
        assert_eq!((bed.counted("member-count"), bed.parked().len()), (3, 0), "{ledger:?}");
    }
}

/// An invocation has read the exceptions, and another parks the change since an item of the application has the counter's
/// key. The item goes, an operator redrives, and the first invocation goes on.
pub(crate) async fn redriven_beside_an_older_invocation(mut bed: Bed) -> i64 {
    let first = bed.memberships([("zoe".into(), "g9".into())]).await;
    bed.handle(&first).await;
    let foreign = counter(0);
    bed.set(&foreign, "EntityType", "User").await;
    bed.records();
    let records = bed.joins(1).await;
    let mut older = bed.start(&bed.event(&records));
    bed.stops_before(&mut older, Purpose::Watermark);
    assert_eq!(bed.handle(&records).await.account.parked.len(), 1);
    bed.delete(&foreign).await;
    bed.records();
    bed.try_redrive_all().await;
    older.finish().unwrap().unwrap();
    bed.clock.advance(32 * 60_000);
    bed.try_redrive_all().await;
    bed.counted("member-count") - 1
}

/// How long an instance may run on without looking at the registry.
const HOLD: Hold = Hold { hold_ms: 16 * 60_000, margin_ms: 2_000 };

/// Zoe has joined a group, and no instance is left but those of this release.
pub(crate) async fn alone(bed: &mut Bed, watch: &RegistryWatch) {
    alone_with("zoe", bed, watch).await;
}

/// The same with another user.
pub(crate) async fn alone_with(user: &str, bed: &mut Bed, watch: &RegistryWatch) {
    bed.watch = Some(watch.clone());
    for (group, wait_ms) in [("g8", 17 * 60_000), ("g9", 0)] {
        let records = bed.memberships([(user.into(), group.into())]).await;
        bed.handle_settled(&records).await;
        bed.clock.advance(wait_ms);
    }
}

pub(crate) fn releases() -> [RegistryWatch; 2] {
    ["1", "2"].map(|release| RegistryWatch::publishing(60_000, HOLD).of_release(release))
}

/// These records with a first one that does not decode.
pub(crate) fn with_unreadable_first(records: &[Value]) -> Vec<Value> {
    let mut records = records.to_vec();
    corrupt(&mut records[0], "OldImage");
    records
}

/// An instance of another release, which can read a record, has read the exceptions, and one that cannot parks the record.
/// Then the first counts it. Returns its records.
pub(crate) async fn parked_beside_another_release(bed: &mut Bed) -> Vec<Value> {
    let [old, new] = releases();
    let records = bed.joins(1).await;
    bed.watch = Some(new);
    let mut newer = bed.start(&bed.event(&records));
    bed.stops_before(&mut newer, Purpose::Watermark);
    bed.watch = Some(old);
    assert_eq!(bed.handle(&with_unreadable_first(&records)).await.account.parked.len(), 1);
    newer.finish().unwrap().unwrap();
    records
}

/// An operator redrives that record: how often is it counted?
pub(crate) async fn redriven_beside_another_release(mut bed: Bed) -> i64 {
    alone(&mut bed, &releases()[0]).await;
    let records = parked_beside_another_release(&mut bed).await;
    redriven(&mut bed, &records[0]).await;
    bed.counted("member-count") - 2
}

/// An instance of another release counted what is parked. More than a day later another shard's change has taken the
/// counter's watermark away, so nothing shows that the change is in.
#[tokio::test]
async fn what_another_release_may_count_is_listed_once_its_watermark_is_gone() {
    assert_eq!(redriven_without_a_watermark(bed()).await, (1, 1));
}

/// How often the record of that is counted, and how many counts are listed for a recount.
pub(crate) async fn redriven_without_a_watermark(mut bed: Bed) -> (i64, usize) {
    alone(&mut bed, &releases()[0]).await;
    let records = parked_beside_another_release(&mut bed).await;
    bed.clock.advance(KEPT_MS + 3 * 60_000);
    let more = bed.memberships([("bob".into(), "g0".into())]).await;
    let other = in_window(&json!({ "Records": more }).to_string(), "{}", false).replace(SHARD, "shardId-other");
    assert_eq!(bed.try_handle(&other).await.unwrap().failed_from, None);
    assert_eq!((mark(&bed, &counter(0)), bed.counted("member-count")), (None, 4), "zoe's two, the first, and bob");
    redriven(&mut bed, &records[0]).await;
    (bed.counted("member-count") - 3, bed.ledger("RECOUNT").len())
}

/// All that is parked is redriven later, when its record can be read.
pub(crate) async fn redriven(bed: &mut Bed, record: &Value) {
    bed.clock.advance(40 * 60_000);
    bed.put_true(&record.to_string());
    bed.redrive_all().await;
}

/// An instance has read that all are of its release, and parks a record that it cannot read. One of another release begins
/// just then, reads the exceptions, and counts the record.
async fn redriven_beside_one_that_began_meanwhile(mut bed: Bed) -> i64 {
    let [old, new] = releases();
    alone(&mut bed, &old).await;
    let records = bed.joins(1).await;
    let unreadable = with_unreadable_first(&records);
    let mut parking = bed.start(&bed.event(&unreadable));
    bed.stops_before(&mut parking, Purpose::Registry);
    bed.watch = Some(new);
    let mut newer = bed.start(&bed.event(&records));
    bed.stops_before(&mut newer, Purpose::Watermark);
    parking.finish().unwrap().unwrap();
    newer.finish().unwrap().unwrap();
    bed.watch = Some(old);
    bed.handle(&unreadable).await;
    redriven(&mut bed, &records[0]).await;
    bed.counted("member-count") - 2
}

#[tokio::test]
async fn a_record_that_another_release_may_count_is_not_redriven_beside_it() {
    assert_eq!(redriven_beside_one_that_began_meanwhile(bed()).await, 1);
    assert_eq!(redriven_beside_one_that_began_meanwhile(bed().unguarded(Purpose::Registry)).await, 2, "by the check");
}

/// Where all instances are of one release, what they could not read is redriven, whatever was counted meanwhile.
#[tokio::test]
async fn what_one_release_cannot_read_is_redriven_once_another_can() {
    let (mut bed, [old, new]) = (bed(), releases());
    alone(&mut bed, &old).await;
    let records = bed.memberships(["ann", "bob"].map(|user| (user.into(), "g0".into()))).await;
    assert_eq!(bed.handle(&with_unreadable_first(&records)).await.account.parked.len(), 1);
    assert_eq!(bed.counted("member-count"), 3, "zoe's two, and bob");
    bed.watch = Some(new);
    redriven(&mut bed, &records[0]).await;
    assert_eq!(bed.counted("member-count"), 4);
}

/// A sweep has read a counter of zero without watermarks, and one more and one less are counted before it deletes it.
pub(crate) async fn collected_beside_one_more_and_one_less(mut bed: Bed) -> i64 {
    for (name, text) in [("EntityType", "Counter"), ("Value", "N:0")] {
        bed.set(&counter(0), name, text).await;
    }
    bed.records();
    let (engine, bounds) = (bed.sweeper(), Bounds { n_items_max: 100, deadline_ms: bed.deadline_ms() });
    let mut sweep = Task::new(&Gone::default(), async move { engine.sweep_slice(bounds, |_| true).await.unwrap() });
    bed.stops_before(&mut sweep, Purpose::StillZero);
    let key = bed.put("Membership", &[("UserId", "ann"), ("GroupId", "g0")], &[]).await;
    bed.delete(&key).await;
    let records = bed.records();
    bed.handle(&records).await;
    sweep.finish().unwrap();
    bed.handle(&records[..1]).await;
    bed.counted("member-count")
}
