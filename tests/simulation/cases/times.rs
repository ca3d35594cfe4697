//! Records and clocks with wrong times: in other units, years ahead, or set back.

use derive::{family::Family, write::Table};
use engine::{
    batch::{BrakeLimits, HandleError},
    clock::Clock as _,
    ledger::{LedgerKind, watermarks::KEPT_MS},
    park::to_recount,
};
use keys::key::Key;
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};

use crate::cases::{
    bed::{Bed, INVOCATION_MS, SHARD, in_window},
    watermarks,
};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];
const HOUR_MS: u64 = 3_600_000;
const YEARS_MS: u64 = 16 * 366 * 24 * HOUR_MS;

/// Sets a record's time.
pub(crate) fn at(record: &mut Value, time: Value) {
    record["dynamodb"]["ApproximateCreationDateTime"] = time;
}

/// A time in 16 years, and one in 40 minutes.
fn ahead(now_ms: u64) -> [Value; 2] {
    [json!((now_ms + YEARS_MS) / 1_000), json!((now_ms + 40 * 60_000) / 1_000)]
}

#[tokio::test]
async fn a_time_in_another_unit_is_read_as_what_it_is() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger).running(Family::Additive);
        let now_ms = bed.clock.now_ms();
        let mut records = bed.joins(6).await;
        let times = [
            json!(now_ms / 1_000),
            serde_json::from_str(&format!("{}.000", now_ms / 1_000)).unwrap(),
            serde_json::from_str(&format!("{now_ms}e-3")).unwrap(),
            json!(now_ms),
            json!(now_ms * 1_000),
            json!(now_ms * 1_000_000),
        ];
        records.iter_mut().zip(times).for_each(|(record, time)| at(record, time));
        let handled = bed.handle(&records).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 0));
        assert_eq!(handled.changes.iter().flatten().filter(|it| it.created_ms == Some(now_ms)).count(), 6);
        assert_eq!((bed.handle(&records).await.account.n_duplicates, bed.counted("member-count")), (6, 6), "{ledger}");
        // They are of one age, so all are refused when they are old.
        bed.clock.advance(ledger.horizon_ms() + 1_000);
        assert_eq!(bed.handle(&records).await.account.refused.len(), 6);
    }
}

#[tokio::test]
async fn a_change_whose_time_is_ahead_is_never_applied_and_its_targets_are_listed() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger).running(Family::Additive);
        let mut records = bed.joins(4).await;
        let times = ahead(bed.clock.now_ms());
        records.iter_mut().zip(times).for_each(|(record, time)| at(record, time));
        at(&mut records[2], json!((bed.clock.now_ms() + 4 * 60_000) / 1_000));
        for n_again in [0, 2, 2] {
            let handled = bed.handle(&records).await;
            assert_eq!(handled.failed_from, None, "{ledger}");
            let refused: Vec<usize> = handled.account.refused.iter().map(|refused| refused.position.0).collect();
            assert_eq!((refused, handled.account.n_duplicates), (vec![0, 1], n_again));
            assert!(handled.account.refused[0].why.contains("ahead of the function's clock"));
            assert_eq!((bed.counted("member-count"), to_recount(bed.memory()).await.unwrap().len()), (2, 2));
            bed.clock.advance(60_000);
        }
    }
}

/// A record of 2042 is delivered, and once more when its receipt has expired: how often is it counted?
pub(crate) async fn delivered_ahead_of_the_clock(mut bed: Bed) -> i64 {
    let mut records = bed.joins(1).await;
    at(&mut records[0], ahead(bed.clock.now_ms())[0].clone());
    bed.handle(&records).await;
    bed.clock.advance(16 * 24 * HOUR_MS);
    bed.forget("RECEIPT").await;
    bed.handle(&records).await;
    bed.counted("member-count")
}

/// The database's clock is set back, so a change is younger than one that follows it in its shard.
#[tokio::test]
async fn a_watermark_is_kept_for_its_youngest_change_although_the_last_one_is_older() {
    let mut bed = watermarks::bed();
    let users = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "g0".to_owned())).collect::<Vec<_>>();
    let mut records = bed.memberships(users(&["ann", "bob"])).await;
    at(&mut records[1], json!((bed.clock.now_ms() - 20 * HOUR_MS) / 1_000));
    bed.handle(&records[..1]).await;
    bed.handle(&records[1..]).await;
    bed.clock.advance(KEPT_MS - 19 * HOUR_MS);
    let other = json!({ "Records": bed.memberships(users(&["cat"])).await }).to_string();
    bed.try_handle(&in_window(&other, "{}", false).replace(SHARD, "shardId-other")).await.unwrap();
    assert_eq!(bed.handle(&records[..1]).await.account.n_duplicates, 1);
    assert_eq!(bed.counted("member-count"), 3);
}

#[tokio::test]
async fn the_brake_does_not_hold_a_batch_whose_age_is_unknown() {
    for time in [Value::Null, ahead(1_705_315_200_000)[0].clone()] {
        let mut bed = Bed::new().limited(BrakeLimits::default());
        let mut records = bed.joins(20).await;
        for record in &mut records {
            record["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
        }
        let held = bed.try_handle(&bed.event(&records)).await;
        assert!(matches!(held, Err(HandleError::Unreadable { .. })), "its time is now");
        for record in &mut records {
            at(record, time.clone());
        }
        assert_eq!(bed.handle(&records).await.failed_from, None, "{time}");
    }
}

#[tokio::test]
async fn a_record_that_ends_the_invocation_is_found_although_its_age_is_unknown() {
    for time in [Value::Null, ahead(1_705_315_200_000)[0].clone()] {
        let mut bed = Bed::new().running(Family::LevelTriggered);
        let deadly = bed.put("User", &[("UserId", "ann")], &[("FollowingCount", "7")]).await;
        let mut records = bed.records();
        at(&mut records[0], time.clone());
        bed.fails(move |call| {
            let kills = matches!(call, Call::Get(Table::Main, keys) if keys.contains(&deadly));
            kills.then_some((Side::Before, Fault::Killed))
        });
        let mut n_dead = 0;
        while bed.start(&bed.event(&records)).finish().is_none() {
            bed.clock.advance(INVOCATION_MS + 1);
            n_dead += 1;
            assert!(n_dead < 6, "{time}: nobody finds it");
        }
        assert_eq!(bed.parked(), ["PARKED#level-triggered / 00000000000000000000000000000001#00"], "{time}");
    }
}

#[tokio::test]
async fn a_removal_whose_time_is_ahead_starts_no_cascade() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.put("Member", &[("OrgId", "o"), ("UserId", "ann")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    let mut records = bed.records();
    let whole = records.clone();
    at(&mut records[0], ahead(bed.clock.now_ms())[0].clone());
    let n_jobs = |bed: &Bed| bed.memory().snapshot(Table::Main).keys().filter(|key| is_job(key)).count();
    bed.handle(&records).await;
    assert_eq!(n_jobs(&bed), 0);
    bed.handle(&whole).await;
    assert!(n_jobs(&bed) > 0);
}

fn is_job(key: &Key) -> bool {
    key.pk.starts_with(keys::job::PARTITION)
}
