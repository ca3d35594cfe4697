//! The brake: a batch with many unreadable items is held.

use std::{collections::BTreeSet, sync::Arc};

use derive::{catalogue::Catalogue, family::Family, write::Table};
use engine::{batch::HandleError, limits::BrakeLimits};
use keys::{counter::CounterKey, item::text};
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};

use crate::cases::bed::{Bed, corrupt, event_id};

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
    let mut bed = Bed::new();
    let held = records(&mut bed, 20, 2).await;
    assert!(bed.try_handle(&bed.event(&held)).await.is_err());
    // Other columns of other records, other invocations, and batches of all ages: it is one reason.
    bed.clock.advance(HOLD_MS / 2);
    let young = records_of("somebody-with-a-long-name", &mut bed, 20, 20).await;
    assert!(bed.try_handle(&bed.event(&young)).await.is_err());
    bed.clock.advance(HOLD_MS / 2 + 1);
    for records in [held, young, records_of("bob", &mut bed, 20, 1).await, records_of("cleo", &mut bed, 20, 9).await] {
        assert_eq!(bed.handle(&records).await.failed_from, None);
    }
    assert_eq!(bed.parked().len(), 2 * (2 + 20 + 1 + 9));
    let notes = bed.ledger("HELD");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(text(&notes[0], "Derivation"), Some("*"));
}

#[tokio::test]
async fn another_reason_is_held_though_one_was_held_before() {
    let mut bed = Bed::new();
    let held = records(&mut bed, 20, 2).await;
    assert!(bed.try_handle(&bed.event(&held)).await.is_err());
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
    let mut bed = Bed::new();
    let held = records(&mut bed, 20, 2).await;
    assert!(bed.try_handle(&bed.event(&held)).await.is_err());
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
    let mut bed = Bed::new();
    let held = records(&mut bed, 20, 2).await;
    assert!(bed.try_handle(&bed.event(&held)).await.is_err());
    bed.clock.advance(HOLD_MS + 1);
    let again = records_of("bob", &mut bed, 20, 2).await;
    bed.fails(|call| {
        let is_note = matches!(call, Call::Get(Table::Ledger, keys) if keys.iter().any(|key| key.pk == "HELD"));
        is_note.then_some((Side::Before, Fault::Unanswered))
    });
    assert!(bed.try_handle(&bed.event(&again)).await.is_err());
    bed.calls();
    let readable = records_of("cleo", &mut bed, 20, 1).await;
    assert!(bed.try_handle(&bed.event(&readable)).await.is_ok());
    assert!(!bed.calls().iter().any(|call| call.contains("HELD")));
}

// ---- Conflicts and throttles are counted for the log and the metrics, and not stored ----

/// The counter of this group is busy for this many attempts of a transaction.
fn busy(bed: &Bed, group: &'static str, mut n_left: usize, fault: fn(usize) -> Fault) {
    bed.fails(move |call| {
        let Call::Transact(transaction) = call else { return None };
        let counts = |pk: &str, sk: &str| {
            CounterKey::parse(&keys::key::Key::new(pk, sk)).is_some_and(|counter| counter.target.pk == group)
        };
        let at = transaction.writes().iter().position(|write| counts(&write.key.pk, &write.key.sk))?;
        n_left = n_left.checked_sub(1)?;
        Some((Side::Before, fault(at)))
    });
}

async fn joined(bed: &mut Bed, group: &str, members: std::ops::Range<u64>) -> Vec<Value> {
    bed.memberships(members.map(|user| (format!("{group}-{user}"), group.to_owned()))).await
}

#[tokio::test]
async fn conflicts_and_throttles_are_counted_for_the_derivation_whose_counter_was_busy() {
    let mut bed = Bed::new().running(Family::Additive);
    let mut records = joined(&mut bed, "hot", 0..3).await;
    records.extend(joined(&mut bed, "quiet", 0..3).await);
    busy(&bed, "GROUP#hot", 2, Fault::Conflict);
    let handled = bed.handle(&records).await;
    let contention = &handled.account.contention;
    assert_eq!((contention.n_conflicts(), contention.n_throttles()), (2, 0));
    assert_eq!(contention.busy().as_deref(), Some("member-count 2"));

    busy(&bed, "GROUP#quiet", 1, |at| Fault::Throttle(BTreeSet::from([at])));
    let more = joined(&mut bed, "quiet", 3..4).await;
    assert_eq!(bed.handle(&more).await.account.contention.n_throttles(), 1);
    assert_eq!(bed.counted("member-count"), 7);
}
