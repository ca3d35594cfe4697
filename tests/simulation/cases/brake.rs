//! The brake: a batch with many unreadable records is held.

use derive::write::Table;
use engine::{batch::handle_error::HandleError, batch::limits::BrakeLimits};
use serde_json::{Value, json};

use crate::cases::bed::Bed;

const HOLD_MS: u64 = 4 * 3_600_000;

/// This many records. The last ones cannot be read.
async fn records(bed: &mut Bed, n_records: usize, n_unreadable: usize) -> Vec<Value> {
    let mut records = bed.joins(n_records).await;
    for record in &mut records[n_records - n_unreadable..] {
        record["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
    }
    records
}

#[tokio::test]
async fn a_batch_of_which_more_than_five_percent_cannot_be_read_is_held_from_twenty_records_on() {
    let cases =
        [(20, 2, true), (20, 1, false), (20, 20, true), (19, 19, false), (40, 2, false), (40, 3, true), (21, 2, true)];
    for (n_records, n_unreadable, is_held) in cases {
        let mut bed = Bed::new();
        let records = records(&mut bed, n_records, n_unreadable).await;
        let handled = bed.try_handle(&bed.event(&records)).await;
        assert_eq!(handled.is_err(), is_held, "{n_unreadable} of {n_records}: {handled:?}");
        let n_in = if is_held { 0 } else { n_records - n_unreadable };
        assert_eq!(bed.counted("member-count"), i64::try_from(n_in).unwrap());
        assert_eq!(bed.parked().len(), if is_held { 0 } else { 2 * n_unreadable });
    }
}

#[tokio::test]
async fn the_error_of_a_held_batch_names_three_records_and_nothing_is_asked_or_written() {
    let mut bed = Bed::new();
    let records = records(&mut bed, 20, 5).await;
    // Old enough for an attempt to be noted, but the brake comes first.
    bed.clock.advance(HOLD_MS);
    let before = bed.memory().snapshot(Table::Main);
    let error = bed.try_handle(&bed.event(&records)).await.unwrap_err();
    let HandleError::Unreadable { n_unreadable, n_records, items } = &error else { panic!("{error}") };
    assert_eq!((*n_unreadable, *n_records), (5, 20));
    assert_eq!(items, &["event-16", "event-17", "event-18"]);
    let text = error.to_string();
    assert!(text.starts_with("5 of 20 records cannot be read, so nothing is applied; among them event-16"), "{text}");
    assert_eq!(bed.calls(), [""; 0]);
    assert!(bed.memory().snapshot(Table::Main) == before && bed.memory().snapshot(Table::Ledger).is_empty());
}

#[tokio::test]
async fn an_item_that_no_derivation_can_read_is_unreadable_too() {
    let mut bed = Bed::new();
    for at in 0..20 {
        let (n, group) = (at.to_string(), [("GroupId", "g")]);
        bed.put("Membership", &[("UserId", &n), group[0]], &[]).await;
    }
    let mut records = bed.records();
    for record in &mut records[..2] {
        // The type is that of a membership, and does not fit the key.
        record["dynamodb"]["NewImage"]["EntityType"] = json!({"S": "Organization"});
    }
    let error = bed.try_handle(&bed.event(&records)).await.unwrap_err().to_string();
    assert!(error.contains("event-1 (USER#0 / "), "{error}");
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

#[tokio::test]
async fn a_limit_of_a_hundred_percent_takes_the_brake_off() {
    for (unreadable_percent_max, is_held) in [(100, false), (99, true)] {
        let mut bed = Bed::new().limited(BrakeLimits { unreadable_percent_max, ..BrakeLimits::default() });
        let records = records(&mut bed, 20, 20).await;
        assert_eq!(bed.try_handle(&bed.event(&records)).await.is_err(), is_held);
    }
}
