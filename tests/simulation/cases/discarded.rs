//! Parked changes that an operator discards: what is listed, and what a redelivered record does afterwards.

use std::collections::BTreeSet;

use derive::guard::Purpose;
use engine::{
    counters::Target,
    inspect::to_recount,
    ledger::LedgerKind,
    loss::{clear, marks},
    park::{ParkedChange, parked},
    redrive::{Redriven, discard::Discarded},
};
use keys::key::Key;
use serde_json::Value;

use crate::{
    cases::{
        bed::{Bed, LEDGERS, corrupt},
        watermarks::{bed, with_unreadable_first},
    },
    executor::{Gone, Task},
};

/// Longer than a redrive or a discarding waits for an earlier invocation, in milliseconds.
const WAITED_MS: u64 = 32 * 60_000;

/// The counter of the users whom `ann` follows.
fn counter() -> Key {
    Key::new("USER#ann", "PROFILE#COUNT#following-count#00")
}

async fn one_parked(bed: &Bed) -> ParkedChange {
    let mut all = parked(bed.memory()).await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

async fn discards(bed: &Bed) -> Discarded {
    let change = one_parked(bed).await;
    bed.engine().discard(&change, bed.deadline_ms()).await.unwrap()
}

/// The counts to recount: derivation and item, `*` for any.
async fn recounts(bed: &Bed) -> Vec<String> {
    let listed = to_recount(bed.memory()).await.unwrap();
    let text = |target: &Target| format!("{} {}", target.derivation, target.item);
    listed.iter().map(|it| it.target.as_ref().map_or("*".to_owned(), text)).collect()
}

/// A follow is parked, because its counter has no number. Returns its record.
async fn parked_follow(bed: &mut Bed) -> Value {
    bed.set(&counter(), "EntityType", "Counter").await;
    bed.set(&counter(), "Value", "many").await;
    bed.settle().await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    let records = bed.records();
    bed.handle(&records).await;
    bed.settle().await;
    records[0].clone()
}

#[tokio::test]
async fn the_counts_of_a_discarded_change_are_listed_and_its_redelivered_record_adds_nothing() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let record = parked_follow(&mut bed).await;
        let change = one_parked(&bed).await;
        let lost = bed.engine().lost(&change, bed.deadline_ms()).await.unwrap();
        let following = "following-count USER#ann / PROFILE";
        // Under watermarks the other counter counts the change.
        let listed = match ledger {
            LedgerKind::Receipts => vec!["follower-count USER#bob / PROFILE", following],
            LedgerKind::Watermarks => vec![following],
        };
        let counts: Vec<String> = lost.counts.iter().map(|it| format!("{} {}", it.derivation, it.item)).collect();
        assert_eq!(counts, listed, "{ledger:?}");
        assert_eq!(discards(&bed).await, Discarded::Done);
        assert_eq!((bed.parked().len(), recounts(&bed).await), (0, listed.iter().map(|it| (*it).to_owned()).collect()));
        let again = bed.engine().discard(&change, bed.deadline_ms()).await.unwrap();
        assert_eq!(again, Discarded::Gone, "{ledger:?}");

        // The counter is corrected, and the record is redelivered.
        bed.set(&counter(), "Value", "N:0").await;
        bed.settle().await;
        let before = bed.counted("follower-count");
        bed.handle(&[record]).await;
        assert_eq!((bed.counted("following-count"), bed.counted("follower-count")), (0, before), "{ledger:?}");
        assert_eq!(bed.parked(), [""; 0], "{ledger:?}");
    }
}

#[tokio::test]
async fn a_discarded_change_that_cannot_be_read_lists_any_count_once_nothing_can_count_it() {
    let mut bed = bed();
    let records = bed.joins(1).await;
    bed.handle(&with_unreadable_first(&records)).await;
    match discards(&bed).await {
        Discarded::Still { cause } => assert!(cause.ends_with("discard it in 31 min"), "{cause}"),
        other => panic!("{other:?}"),
    }
    bed.clock.advance(WAITED_MS);
    assert_eq!(discards(&bed).await, Discarded::Done);
    assert_eq!((bed.parked().len(), recounts(&bed).await), (0, vec!["*".to_owned()]));
    let n_counted = bed.counted("member-count");
    bed.handle(&records).await;
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (n_counted, 0), "it is an exception of its shard");
}

#[tokio::test]
async fn a_change_whose_counter_lost_its_watermark_stays_parked_while_the_stream_may_deliver_it() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    parked_follow(&mut bed).await;
    bed.delete(&counter()).await;
    bed.settle().await;
    match discards(&bed).await {
        Discarded::Still { cause } => assert!(cause.contains("has lost its watermark"), "{cause}"),
        other => panic!("{other:?}"),
    }
    assert_eq!((bed.parked().len(), recounts(&bed).await), (1, Vec::new()));
    bed.clock.advance(27 * 3_600_000);
    assert_eq!(discards(&bed).await, Discarded::Done);
    assert_eq!(recounts(&bed).await, ["following-count USER#ann / PROFILE"]);
}

#[tokio::test]
async fn of_a_redrive_and_a_discarding_at_once_one_takes_the_change() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        parked_follow(&mut bed).await;
        bed.set(&counter(), "Value", "N:0").await;
        bed.settle().await;
        let change = one_parked(&bed).await;
        let (engine, other, deadline_ms) = (bed.engine(), change.clone(), bed.deadline_ms());
        let mut discarding =
            Task::new(&Gone::default(), async move { engine.discard(&other, deadline_ms).await.unwrap() });
        bed.stops_before(&mut discarding, Purpose::StillParked);
        let redriven = bed.engine().redrive(&change, bed.deadline_ms()).await.unwrap();
        assert!(matches!(redriven, Redriven::Applied(_)), "{redriven:?}");
        assert_eq!(discarding.finish(), Some(Discarded::Gone), "{ledger:?}");
        assert_eq!((bed.counted("following-count"), recounts(&bed).await), (1, Vec::new()), "{ledger:?}");
    }
}

/// The mirror by which a cascade finds a follow is missing, because the change of the follow was discarded.
#[tokio::test]
async fn no_cascade_starts_after_a_discarded_change_until_a_verification() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    bed.settle().await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    let mut records = bed.records();
    corrupt(&mut records[0], "NewImage");
    bed.handle(&records).await;
    let n_parked = bed.parked().len();
    for change in parked(bed.memory()).await.unwrap() {
        assert_eq!(bed.engine().discard(&change, bed.deadline_ms()).await.unwrap(), Discarded::Done);
    }
    assert_eq!((n_parked, bed.parked().len()), (2, 0), "one of each family");
    bed.delete(&user).await;
    bed.settle().await;
    let swept = bed.a_day_passes().await;
    assert_eq!((swept.n_held, swept.n_begun), (1, 0), "a verification has to find the missing mirror first");
    let left = marks(bed.memory()).await.unwrap();
    let families: BTreeSet<&str> = left.iter().map(|mark| mark.family.as_str()).collect();
    assert_eq!(families, BTreeSet::from(["level-triggered"]));
    for mark in &left {
        assert!(clear(bed.memory(), mark).await.unwrap());
    }
    assert_eq!(bed.a_day_passes().await.n_begun, 1);
}

#[tokio::test]
async fn a_cascade_is_lost_with_the_removal_that_would_start_it_and_not_once_it_has_started() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    let records = bed.records();
    let mut unreadable = records.clone();
    corrupt(&mut unreadable[0], "OldImage");
    bed.handle(&unreadable).await;
    bed.put_true(&records[0].to_string());
    let all = parked(bed.memory()).await.unwrap();
    let change = all.iter().find(|change| change.counter.is_none() && change.family.to_string() == "level-triggered");
    let change = change.unwrap();
    let lost = bed.engine().lost(change, bed.deadline_ms()).await.unwrap();
    assert_eq!(lost.cascades, BTreeSet::from([("user-cascade".to_owned(), user.clone())]));
    assert!(lost.unknown.is_none() && lost.item.as_ref() == Some(&user), "{lost:?}");
    bed.handle(&records).await;
    let lost = bed.engine().lost(change, bed.deadline_ms()).await.unwrap();
    assert_eq!(lost.cascades, BTreeSet::new(), "its job exists");
}
