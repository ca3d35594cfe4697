//! Batches that are held up: records that kill the whole invocation, calls that take its time, and the brake.

use std::{collections::BTreeSet, sync::Arc};

use derive::{catalogue::Catalogue, family::Family, write::Table};
use engine::{
    batch::{HandleError, Handled},
    clock::Clock as _,
    ledger::LedgerKind,
    limits::BrakeLimits,
};
use keys::{item::text, key::Key};
use operate::verify::{AtRest, Finding, VerifyEvent};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};

use crate::cases::{Bed, FOLLOW, INVOCATION_MS, LEDGERS, corrupt, counts, event_id, verification::verified};

/// A caller that touches this item dies before the call is done.
fn deadly(bed: &Bed, deadly: Key) {
    bed.fails(move |call| {
        let touches = match call {
            Call::Get(Table::Main, keys) => keys.contains(&deadly),
            Call::Write(write) => write.key == deadly,
            Call::Transact(transaction) => transaction.writes().iter().any(|write| write.key == deadly),
            _ => false,
        };
        touches.then_some((Side::Before, Fault::Killed))
    });
}

/// Delivers a batch until an invocation survives. Returns the number of deaths.
fn deliver(bed: &Bed, records: &[Value]) -> usize {
    for n_dead in 0..20 {
        // The platform notices the death when the time is over.
        bed.clock.advance(INVOCATION_MS + 1);
        if let Some(handled) = bed.start(&bed.event(records)).finish() {
            assert_eq!(handled.unwrap().failed_from, None);
            return n_dead;
        }
    }
    panic!("every invocation dies");
}

/// The parked records as family and event. Each must have the cause that two invocations died.
fn parked(bed: &Bed) -> Vec<String> {
    let items = bed.ledger("PARKED");
    assert!(items.iter().all(|item| text(item, "Cause").unwrap().starts_with("two invocations died")));
    items.iter().map(|item| format!("{} {}", text(item, "Family").unwrap(), text(item, "EventId").unwrap())).collect()
}

#[tokio::test]
async fn a_record_whose_look_kills_is_parked_at_the_fifth_delivery_and_its_neighbours_go_in() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let mut users = Vec::new();
        for id in ["ann", "bob", "cleo"] {
            users.push(bed.put("User", &[("UserId", id)], &[("FollowingCount", "7")]).await);
        }
        let records = bed.records();
        deadly(&bed, users[1].clone());
        assert_eq!(deliver(&bed, &records), 4, "{ledger}");
        assert_eq!(parked(&bed), ["additive", "level-triggered"].map(|family| format!("{family} {}", event_id(2))));
        let shown: Vec<String> = users.iter().map(|user| bed.shown(user, "FollowingCount")).collect();
        assert_eq!(shown, ["0", "7", "0"]);
        assert!(bed.ledger("ATTEMPTS").is_empty(), "the batch is done, and its note gone");
    }
}

/// Found by the simulation under watermarks (`SIM_SEED=404333`): the count was in and said that it was shown, so nobody
/// looked at its target again.
#[tokio::test]
async fn a_count_whose_display_kills_is_shown_when_its_change_is_redriven() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    let user = bed.put_settled("User", &[("UserId", "ann")], &[]).await;
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    let deadly = user.clone();
    bed.writes_fail(Fault::Killed, move |key| *key == deadly);
    assert_eq!(deliver(&bed, &records), 4);
    assert_eq!((bed.counted("following-count"), bed.shown(&user, "FollowingCount")), (1, String::new()));

    bed.fails(|_| None);
    // The redrive will show it, so it is no finding meanwhile.
    let (events, _) = verified(&bed, &AtRest).await;
    let is_display = |it: &Finding| it.derivation == "following-count-display";
    assert!(events.iter().any(|event| matches!(event, VerifyEvent::Waiting(it, _) if is_display(it))), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, VerifyEvent::Finding(..))), "{events:?}");

    bed.clock.advance(32 * 60_000);
    bed.redrive_all().await;
    bed.settle().await;
    assert_eq!((bed.counted("following-count"), bed.parked().len()), (1, 0));
    assert_eq!((bed.shown(&user, "FollowingCount").as_str(), bed.findings()), ("1", Vec::new()));
}

/// Found by the simulation under receipts (`SIM_SEED=456283`): the count was in, so its part of the change was not parked, and
/// the item that no count could read any more was never listed.
#[tokio::test]
async fn an_item_that_becomes_unreadable_is_listed_although_its_look_kills() {
    let mut bed = Bed::new();
    let review = [("ProductId", "p"), ("CreatedAt", "t"), ("ReviewId", "r")];
    let review = bed.put("Review", &review, &[]).await;
    let rate = |bed: &Bed, rating: AttributeValue| {
        let mut item = bed.item(&review).unwrap();
        item.insert("Rating", rating);
        bed.memory().put_raw(Table::Main, item).unwrap();
    };
    rate(&bed, AttributeValue::N("4".to_owned()));
    bed.settle().await;
    assert_eq!(bed.counted("product-rating"), 1);
    rate(&bed, AttributeValue::S("many".to_owned()));
    let records = bed.records();
    let reads = review.clone();
    bed.reads_fail(Fault::Killed, move |key| *key == reads);
    assert_eq!(deliver(&bed, &records), 4);

    bed.fails(|_| None);
    bed.clock.advance(32 * 60_000);
    bed.redrive_all().await;
    bed.settle().await;
    assert_eq!((bed.counted("product-rating"), bed.parked().len(), bed.findings()), (0, 0, Vec::new()));
    assert_eq!(bed.ledger("UNREADABLE").len(), 1);
}

/// Once the first was tried again as soon as the second had died, though it was known to be deadly, and so on forever.
#[tokio::test]
async fn two_deadly_records_in_one_batch_are_both_parked() {
    let mut bed = Bed::new().running(Family::Additive);
    let records = bed.memberships([("ann", "g"), ("bob", "g"), ("cleo", "h")].map(|(u, g)| (u.into(), g.into()))).await;
    deadly(&bed, Key::new("GROUP#g", "METADATA#COUNT#member-count#00"));
    assert_eq!(deliver(&bed, &records), 6);
    assert_eq!(parked(&bed), [1, 2].map(|at| format!("additive {}", event_id(at))));
    assert_eq!(bed.counted("member-count"), 1);
}

/// Found by the simulation under the checkpoint (`SIM_SEED=103820` then): the second death counted against the record
/// that was in progress at the first.
#[tokio::test]
async fn an_invocation_that_dies_before_it_begins_with_a_record_is_no_death_of_that_record() {
    let mut bed = Bed::new().running(Family::Additive);
    let records = bed.joins(3).await;
    // Two deaths of the whole batch, one with the second record in progress, one before any is.
    let (mut n_dead, mut n_seen) = (0, 0);
    bed.fails(move |call| {
        let is_meant = match call {
            Call::Transact(_) => n_dead < 3,
            Call::Write(write) => n_dead == 3 && write.key.pk.starts_with("ATTEMPTS"),
            _ => false,
        };
        n_seen += usize::from(is_meant);
        if !is_meant || [1, 1, 2, 2].get(n_dead) != Some(&n_seen) {
            return None;
        }
        (n_dead, n_seen) = (n_dead + 1, 0);
        Some((Side::Before, Fault::Killed))
    });
    assert_eq!(deliver(&bed, &records), 4);
    assert_eq!((parked(&bed), bed.counted("member-count")), (Vec::new(), 3));
}

/// Records of a shard arrive in the order of their sequence numbers. If they do not, a watermark must not pass a record
/// that is still to come, even when they are handled one by one.
#[tokio::test]
async fn records_out_of_order_that_go_one_by_one_are_not_passed_before_they_are_in() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks).running(Family::Additive);
    let mut records = bed.joins(4).await;
    let in_order = records.clone();
    records.swap(0, 2);
    let mut n_dead = 0;
    bed.fails(move |call| {
        let dies = matches!(call, Call::Write(write) if write.key.pk == "GROUP#g0") && n_dead < 2;
        n_dead += usize::from(dies);
        dies.then_some((Side::Before, Fault::Killed))
    });
    assert_eq!(deliver(&bed, &records), 2);
    bed.handle(&in_order).await;
    assert_eq!((bed.counted("member-count"), parked(&bed).len()), (4, 0));
}

#[tokio::test]
async fn a_young_batch_notes_nothing_and_the_note_of_an_old_one_goes_when_it_is_done() {
    let mut bed = Bed::new();
    let records = bed.joins(2).await;
    for (wait_ms, n_calls) in [(INVOCATION_MS - 1_000, 0), (1_001, 3)] {
        bed.clock.advance(wait_ms);
        bed.handle(&records).await;
        let notes: Vec<String> = bed.calls().into_iter().filter(|call| call.contains("ATTEMPTS")).collect();
        assert_eq!(notes.len(), n_calls, "read, put and deleted: {notes:?}");
        assert!(bed.ledger("ATTEMPTS").is_empty());
    }
}

/// Once a note was tried until the invocation's time was over, so the records had none.
#[tokio::test]
async fn a_note_is_tried_once_and_where_it_cannot_be_written_all_goes_in() {
    for (is_read, n_calls) in [(true, 1), (false, 3)] {
        let mut bed = Bed::new();
        let records = bed.joins(2).await;
        bed.clock.advance(INVOCATION_MS + 1);
        bed.fails(move |call| {
            let is_note = match call {
                Call::Get(Table::Ledger, keys) => is_read && keys.iter().any(|key| key.pk.starts_with("ATTEMPTS")),
                Call::Write(write) => write.key.pk.starts_with("ATTEMPTS"),
                _ => false,
            };
            is_note.then_some((Side::Before, Fault::Unanswered))
        });
        assert_eq!(bed.handle(&records).await.failed_from, None);
        assert_eq!(bed.counted("member-count"), 2);
        let n_notes = bed.calls().into_iter().filter(|call| call.contains("ATTEMPTS")).count();
        assert_eq!(n_notes, n_calls, "it is read, put and deleted");
    }
}

#[tokio::test]
async fn each_batch_has_its_note_in_a_partition_of_its_own() {
    let mut bed = Bed::new();
    let records = bed.joins(3).await;
    bed.fails(|call| matches!(call, Call::Transact(_)).then_some((Side::Before, Fault::Unanswered)));
    bed.clock.advance(INVOCATION_MS + 1);
    for record in &records {
        bed.handle(std::slice::from_ref(record)).await;
    }
    let partitions: BTreeSet<String> = bed.memory().snapshot(Table::Ledger).into_keys().map(|key| key.pk).collect();
    assert_eq!(partitions, BTreeSet::from([1, 2, 3].map(|at| format!("ATTEMPTS#{}", event_id(at)))));
}

// ---- Calls that take long, or that no waiting helps: a function always answers, before its deadline ----

/// A call of the additive functions that is never answered: the time goes by, and the caller waits.
fn hangs(bed: &Bed, side: Side) {
    let clock = bed.clock.clone();
    bed.fails(move |call| {
        counts(call).then(|| {
            // Until it is time to answer.
            clock.advance(INVOCATION_MS - 500);
            (side, Fault::Hung)
        })
    });
}

/// Delivers records whose invocation has no more time when it answers.
fn delivered(bed: &Bed, records: &[Value]) -> Handled {
    bed.clock.advance(INVOCATION_MS + 1);
    bed.start(&bed.event(records)).finish().expect("it answers").unwrap()
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_with_the_deadline_and_parks_nothing_however_often() {
    for ledger in LEDGERS {
        for side in [Side::Before, Side::After] {
            let mut bed = Bed::new().under(ledger);
            let records = bed.joins(2).await;
            hangs(&bed, side);
            for _ in 0..6 {
                let handled = delivered(&bed, &records);
                let why = handled.account.undone.values().next().map(String::as_str);
                if side == Side::Before || why.is_some() {
                    assert_eq!(handled.failed_from.as_deref(), Some("1001"), "{ledger} {side:?}");
                    assert!(why.is_some_and(|why| why.contains("not answered before the deadline")), "{why:?}");
                }
            }
            bed.fails(|_| None);
            let handled = bed.handle(&records).await;
            assert_eq!((handled.failed_from, bed.parked().len()), (None, 0), "{ledger} {side:?}");
            assert_eq!(bed.counted("member-count"), 2, "{ledger} {side:?}");
        }
    }
}

#[tokio::test]
async fn an_invocation_that_is_throttled_to_its_end_is_no_death_of_its_records() {
    let mut bed = Bed::new();
    let records = bed.joins(2).await;
    for _ in 0..8 {
        bed.fails(|call| (!call.is_read()).then(|| (Side::Before, Fault::Throttle([0].into()))));
        bed.clock.advance(INVOCATION_MS + 1);
        assert_eq!(bed.handle(&records).await.failed_from.as_deref(), Some("1001"));
    }
    bed.fails(|_| None);
    assert_eq!(bed.handle(&records).await.failed_from, None);
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (2, 0));
}

#[tokio::test]
async fn a_missing_permission_ends_the_invocation_at_once_and_fails_it() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let records = bed.joins(2).await;
        bed.fails(|call| counts(call).then_some((Side::Before, Fault::Denied)));
        let began_ms = bed.clock.now_ms();
        let handled = bed.handle(&records).await;
        assert_eq!(bed.clock.now_ms(), began_ms, "it does not wait");
        assert_eq!((handled.failed_from.as_deref(), bed.parked().len()), (Some("1001"), 0));
        let failure = functions::handler::answer(&handled).unwrap_err().to_string();
        let operation = if ledger == LedgerKind::Receipts { "TransactWriteItems" } else { "UpdateItem" };
        let begins = format!("the function cannot work until its set-up is changed: {operation} on");
        assert!(failure.starts_with(&begins), "{failure}");
        assert!(failure.ends_with("AccessDeniedException"), "{failure}");

        bed.fails(|_| None);
        let handled = bed.handle(&records).await;
        assert!(functions::handler::answer(&handled).is_ok());
        assert_eq!(bed.counted("member-count"), 2);
    }
}

// ---- The brake: a batch with many unreadable items is held ----

const HOLD_MS: u64 = 4 * 3_600_000;

/// This many records. The last ones cannot be read.
async fn records(bed: &mut Bed, n_records: usize, n_unreadable: usize) -> Vec<Value> {
    records_of("ann", bed, n_records, n_unreadable).await
}

/// The same, of this user.
async fn records_of(user: &str, bed: &mut Bed, n_records: usize, n_unreadable: usize) -> Vec<Value> {
    let groups = (0..n_records).map(|group| (user.to_owned(), format!("g{group}")));
    let mut records = bed.memberships(groups).await;
    for record in &mut records[n_records - n_unreadable..] {
        corrupt(record, "NewImage");
    }
    records
}

/// Memberships of this many users, of which the first ones do not have the key of their type, each with this many records.
async fn misfits(bed: &mut Bed, n_items: usize, n_unreadable: usize, n_each: usize) -> Vec<Value> {
    for at in 0..n_items {
        let n = at.to_string();
        let key = bed.put("Membership", &[("UserId", &n), ("GroupId", "g")], &[]).await;
        for at in 1..n_each {
            bed.set(&key, "Note", &at.to_string()).await;
        }
    }
    let mut records = bed.records();
    for record in &mut records[..n_unreadable * n_each] {
        record["dynamodb"]["NewImage"]["EntityType"] = json!({"S": "Organization"});
    }
    records
}

#[tokio::test]
async fn a_batch_of_which_more_than_five_percent_cannot_be_read_is_held_from_twenty_records_on() {
    let cases =
        [(20, 2, true), (20, 1, false), (20, 20, true), (19, 19, false), (40, 2, false), (40, 3, true), (21, 2, true)];
    let cases = cases.map(|(n_records, n_unreadable, is_held)| (n_records, n_unreadable, 5, is_held));
    // A limit of a hundred percent takes the brake off.
    for (n_records, n_unreadable, percent, is_held) in
        cases.into_iter().chain([(20, 20, 100, false), (20, 20, 99, true)])
    {
        let mut bed = Bed::new().limited(BrakeLimits { unreadable_percent_max: percent, ..BrakeLimits::default() });
        let records = records(&mut bed, n_records, n_unreadable).await;
        let handled = bed.try_handle(&bed.event(&records)).await;
        assert_eq!(handled.is_err(), is_held, "{n_unreadable} of {n_records}: {handled:?}");
        let n_in = if is_held { 0 } else { n_records - n_unreadable };
        assert_eq!(bed.counted("member-count"), i64::try_from(n_in).unwrap());
        assert_eq!(bed.parked().len(), if is_held { 0 } else { 2 * n_unreadable });
    }
    assert_eq!(BrakeLimits::default().unreadable_percent_max, 5);
}

/// An item that no derivation can read is unreadable too, and its second record makes it no second item.
#[tokio::test]
async fn the_brake_counts_items_and_not_their_records() {
    // Items, those that cannot be read, and records of each.
    let cases = [(20, 1, 2, false), (20, 2, 1, true), (20, 2, 5, true), (19, 19, 2, false), (40, 2, 3, false)];
    for (n_items, n_unreadable, n_each, is_held) in cases {
        let mut bed = Bed::new();
        let records = misfits(&mut bed, n_items, n_unreadable, n_each).await;
        let handled = bed.try_handle(&bed.event(&records)).await;
        assert_eq!(handled.is_err(), is_held, "{n_unreadable} of {n_items}, {n_each} records each: {handled:?}");
        let is_named = |error: HandleError| error.to_string().contains(&format!("{} (USER#0 / ", event_id(1)));
        assert!(handled.err().is_none_or(is_named));
    }
    // One bad item has a second record, as an item that Ripple wrote into has. All others have one.
    let mut bed = Bed::new();
    let mut records = misfits(&mut bed, 20, 1, 1).await;
    let mut echo = records[0].clone();
    echo["eventID"] = json!("echo");
    records.push(echo);
    assert!(bed.try_handle(&bed.event(&records)).await.is_ok());
}

#[tokio::test]
async fn the_error_of_a_held_batch_names_three_items_and_only_the_reason_is_noted() {
    let mut bed = Bed::new();
    let records = records(&mut bed, 20, 5).await;
    // Old enough for an attempt to be noted, but the brake comes first.
    bed.clock.advance(HOLD_MS);
    let before = bed.memory().snapshot(Table::Main);
    let error = bed.try_handle(&bed.event(&records)).await.unwrap_err();
    let HandleError::Unreadable { n_unreadable, n_items, items } = &error else { panic!("{error}") };
    assert_eq!((*n_unreadable, *n_items), (5, 20));
    let named: Vec<&str> = items.iter().map(|item| item.split([' ', ':']).next().unwrap()).collect();
    assert_eq!(named, [16, 17, 18].map(event_id));
    let start = format!("5 of 20 items cannot be read, so nothing is applied; among them {}", event_id(16));
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(bed.memory().snapshot(Table::Main) == before);
    let ledger: Vec<String> = bed.memory().snapshot(Table::Ledger).keys().map(|key| key.pk.clone()).collect();
    assert_eq!(ledger, ["HELD"]);
}

/// A table, and a batch that was held.
async fn stored() -> (Bed, Vec<Value>) {
    let mut bed = Bed::new();
    let stored = records(&mut bed, 20, 2).await;
    assert!(bed.try_handle(&bed.event(&stored)).await.is_err());
    (bed, stored)
}

#[tokio::test]
async fn a_batch_is_held_for_four_hours_and_then_goes_in() {
    let mut bed = Bed::new();
    let records = records(&mut bed, 20, 2).await;
    bed.clock.advance(HOLD_MS);
    assert!(bed.try_handle(&bed.event(&records)).await.is_err());
    bed.clock.advance(1);
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.counted("member-count"), bed.parked().len()), (None, 18, 4));
}

/// A bad writer that goes on: without a note of the hold, each batch was held until it was four hours old.
#[tokio::test]
async fn after_one_hold_what_is_unreadable_for_the_same_reason_is_parked_at_once() {
    let (mut bed, stored) = stored().await;
    // Other columns of other records, other invocations, and batches of all ages: it is one reason.
    bed.clock.advance(HOLD_MS / 2);
    let young = records_of("somebody-with-a-long-name", &mut bed, 20, 20).await;
    assert!(bed.try_handle(&bed.event(&young)).await.is_err());
    bed.clock.advance(HOLD_MS / 2 + 1);
    for records in [stored, young, records_of("bob", &mut bed, 20, 1).await, records_of("cleo", &mut bed, 20, 9).await]
    {
        assert_eq!(bed.handle(&records).await.failed_from, None);
    }
    assert_eq!(bed.parked().len(), 2 * (2 + 20 + 1 + 9));
    let notes = bed.ledger("HELD");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(text(&notes[0], "Derivation"), Some("*"));
}

#[tokio::test]
async fn another_reason_is_held_though_one_was_held_before() {
    let (mut bed, _) = stored().await;
    bed.clock.advance(HOLD_MS + 1);
    let mut records = records_of("bob", &mut bed, 40, 20).await;
    for record in &mut records[..2] {
        record["dynamodb"].as_object_mut().unwrap().remove("NewImage");
    }
    assert!(bed.try_handle(&bed.event(&records)).await.is_ok(), "2 of 40 are not many, and 20 were held before");
    for record in &mut records[..3] {
        record["dynamodb"].as_object_mut().unwrap().remove("NewImage");
    }
    let error = bed.try_handle(&bed.event(&records)).await.unwrap_err().to_string();
    assert!(error.starts_with("3 of 40 items cannot be read"), "{error}");
}

#[tokio::test]
async fn another_catalogue_makes_the_brake_hold_once_more() {
    let (mut bed, _) = stored().await;
    bed.clock.advance(HOLD_MS + 1);
    let again = records_of("bob", &mut bed, 20, 2).await;
    let whole = Arc::clone(&bed.catalogue);
    let without = whole.derivations().filter(|derivation| derivation.name != "followee-name").cloned().collect();
    bed.catalogue = Arc::new(Catalogue::new(&bed.schema, without).unwrap());
    assert!(bed.try_handle(&bed.event(&again)).await.is_err());
    // The deployment is taken back: that catalogue's hold is over.
    bed.catalogue = whole;
    assert!(bed.try_handle(&bed.event(&again)).await.is_ok());
}

#[tokio::test]
async fn a_batch_is_held_where_the_notes_cannot_be_read_and_one_without_a_fault_asks_for_none() {
    let (mut bed, _) = stored().await;
    bed.clock.advance(HOLD_MS + 1);
    let again = records_of("bob", &mut bed, 20, 2).await;
    bed.reads_fail(Fault::Unanswered, |key| key.pk == "HELD");
    assert!(bed.try_handle(&bed.event(&again)).await.is_err());
    bed.calls();
    let readable = records_of("cleo", &mut bed, 20, 1).await;
    assert!(bed.try_handle(&bed.event(&readable)).await.is_ok());
    assert!(!bed.calls().iter().any(|call| call.contains("HELD")));
}
