//! Under watermarks: the exceptions of a stream shard, and which of them a counter may count.

use std::collections::BTreeSet;

use derive::{
    family::Family,
    write::{Action, Table, Update, Write},
};
use engine::{
    batch::HandleError,
    clock::Clock as _,
    inspect::to_recount,
    ledger::{LedgerKind, watermarks::KEPT_MS},
    limits::BrakeLimits,
    park::parked,
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{Store as _, faulty::Fault};

use crate::cases::{
    Bed, INVOCATION_MS, LEDGERS, SHARD, corrupt, in_window,
    watermarks::{self, alone, alone_with, bed, counter, redriven, releases, with_unreadable_first},
};

/// Longer than a redrive waits for an invocation from before.
const WAITED_MS: u64 = 32 * 60_000;

/// Ends the life of what has expired in the ledger.
async fn expire(bed: &Bed) {
    let now_s = bed.clock.now_ms() / 1_000;
    let is_over = |item: &Item| number(item, "ExpiresAt").is_some_and(|at_s| at_s <= now_s);
    for (key, _) in bed.memory().snapshot(Table::Ledger).into_iter().filter(|(_, item)| is_over(item)) {
        let write = Write { table: Table::Ledger, key, action: Action::Delete, guard: None };
        bed.memory().write(&write).await.unwrap();
    }
}

fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name)? {
        AttributeValue::N(text) => text.parse().ok(),
        _ => None,
    }
}

/// Of 513 records in batches that are too small for the brake, none decodes.
#[tokio::test]
async fn any_number_of_exceptions_delays_nobody_and_each_costs_the_same() {
    let mut bed = bed();
    let users = (0..513).map(|user| (format!("u{user}"), "g0".to_owned()));
    let whole = bed.memberships(users).await;
    let mut costs = Vec::new();
    for batch in whole.chunks(19) {
        let mut batch = batch.to_vec();
        for record in &mut batch {
            corrupt(record, "NewImage");
        }
        let handled = bed.handle(&batch).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 19));
        costs.push(handled.account.commits.iter().map(|commit| commit.units).sum::<f64>());
    }
    assert!(costs[1..].iter().all(|units| *units <= 19.0 * 4.0), "{costs:?}");
    let shards = bed.ledger("SHARD#");
    assert_eq!(shards.len(), 514, "an item each, and that of the shard");
    assert!(shards.iter().all(|item| keys::size::item_bytes(item) < 1_024));

    // Somebody else's change counts, and reads none of them.
    bed.calls();
    let more = bed.memberships([("zoe".into(), "g1".into())]).await;
    assert_eq!(bed.handle(&more).await.failed_from, None);
    assert_eq!(bed.counted("member-count"), 1);
    let n_reads = bed.calls().iter().filter(|call| call.contains("SHARD#")).count();
    assert_eq!(n_reads, 2, "the shard's item, and an empty range");

    // All come again and can be read: a range of several pages keeps each from being counted.
    for batch in whole.chunks(200) {
        assert_eq!(bed.handle(batch).await.account.n_duplicates, batch.len());
    }
    assert_eq!(bed.counted("member-count"), 1);
}

/// A record that cannot be read comes again as the last of its batch when it can, and is redriven: how often is it counted?
pub(crate) async fn redriven_after_it_came_again(mut bed: Bed) -> i64 {
    let records = bed.memberships(["ann", "bob"].map(|user| (user.into(), "g0".into()))).await;
    let mut unreadable = records.clone();
    corrupt(&mut unreadable[1], "NewImage");
    bed.handle(&unreadable).await;
    bed.handle(&records).await;
    redriven(&mut bed, &records[1]).await;
    bed.counted("member-count") - 1
}

/// A record that was parked and redriven comes again when all is gone from the ledger that has expired.
pub(crate) async fn delivered_after_exceptions_expired(mut bed: Bed) -> i64 {
    let records = bed.joins(1).await;
    bed.handle(&with_unreadable_first(&records)).await;
    redriven(&mut bed, &records[0]).await;
    bed.clock.advance(22 * 3_600_000);
    expire(&bed).await;
    bed.handle(&records).await;
    bed.counted("member-count")
}

/// An invocation sends its count and dies. Another one parks the change since an item of the application has the counter's
/// key. The item goes, an operator redrives after 17 minutes, and what was sent lands.
pub(crate) async fn redriven_before_a_late_call_lands(mut bed: Bed) -> i64 {
    let records = bed.joins(1).await;
    let target = counter(0);
    bed.writes_fail(Fault::Late, move |key| *key == target);
    assert!(bed.start(&bed.event(&records)).finish().is_none(), "it dies");
    bed.fails(|_| None);
    bed.set(&counter(0), "EntityType", "User").await;
    bed.records();
    assert_eq!(bed.handle(&records).await.account.parked.len(), 1);
    bed.delete(&counter(0)).await;
    bed.records();
    for wait_ms in [17 * 60_000, WAITED_MS] {
        bed.clock.advance(wait_ms);
        bed.try_redrive_all().await;
        if wait_ms < WAITED_MS {
            bed.land();
        }
    }
    bed.counted("member-count")
}

/// A release counts a record and is gone. The next one cannot read it, and it comes again: the mapping was made anew, and
/// begins at the first record of the stream. A third one redrives it.
pub(crate) async fn redriven_after_an_earlier_release(mut bed: Bed) -> i64 {
    let [old, new] = releases();
    alone(&mut bed, &old).await;
    let records = bed.joins(1).await;
    bed.handle(&records).await;
    alone_with("yan", &mut bed, &new).await;
    assert_eq!(bed.handle(&with_unreadable_first(&records)).await.account.parked.len(), 1);
    redriven(&mut bed, &records[0]).await;
    bed.counted("member-count") - 4
}

#[tokio::test]
async fn what_an_earlier_release_may_have_counted_is_listed_and_not_counted_again() {
    let mut bed = bed();
    let [old, new] = releases();
    alone(&mut bed, &old).await;
    let records = bed.joins(2).await;
    bed.handle(&records[..1]).await;
    alone_with("yan", &mut bed, &new).await;
    for record in &records {
        let unreadable = with_unreadable_first(std::slice::from_ref(record));
        assert_eq!(bed.handle(&unreadable).await.account.parked.len(), 1);
        redriven(&mut bed, record).await;
    }
    assert_eq!(
        bed.counted("member-count"),
        6,
        "zoe's and yan's two, the one that was counted, and the one that was not"
    );
    assert_eq!(bed.ledger("RECOUNT").len(), 1);
}

/// A counter refuses a change, and an operator deletes the counter, redrives the change, and gets its record once more.
pub(crate) async fn delivered_after_its_counter_was_deleted(mut bed: Bed) -> i64 {
    let records = poisoned(&mut bed).await;
    bed.delete(&counter(0)).await;
    // An operator's command does not check the kind of the ledger.
    let command = bed.engine().with_ledger(LedgerKind::Receipts);
    for change in parked(bed.memory()).await.unwrap() {
        command.redrive(&change, bed.deadline_ms()).await.unwrap();
    }
    bed.handle(&records).await;
    bed.counted("member-count")
}

/// The record of a change that is parked for its counter, which holds a text.
async fn poisoned(bed: &mut Bed) -> Vec<Value> {
    for (name, text) in [("Value", "many"), ("EntityType", "Counter")] {
        bed.set(&counter(0), name, text).await;
    }
    bed.records();
    let records = bed.joins(1).await;
    assert_eq!(bed.handle(&records).await.account.parked.len(), 1);
    records
}

/// As `docs/parked-and-replay.md` says it: the value goes, and the watermarks stay.
#[tokio::test]
async fn a_counter_whose_value_an_operator_deletes_counts_what_is_redriven_once() {
    let mut bed = bed();
    let records = poisoned(&mut bed).await;
    let remove = BTreeSet::from(["Value".to_owned()]);
    let action = Action::Update(Update { remove, ..Update::default() });
    let write = Write { table: Table::Main, key: counter(0), action, guard: None };
    bed.memory().write(&write).await.unwrap();
    assert_eq!(bed.handle(&records).await.account.n_duplicates, 1, "its watermark is past it");
    bed.redrive_all().await;
    bed.handle(&records).await;
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (1, 0));
}

/// A sweep that read the counter before the parking does not delete the watermark with it.
#[tokio::test]
async fn a_parking_raises_the_revision_of_its_counter_and_has_the_count_shown() {
    let mut bed = bed();
    poisoned(&mut bed).await;
    let item = bed.item(&counter(0)).unwrap();
    assert_eq!((item.get("Rev"), item.get("Shown")), (Some(&AttributeValue::N("1705315200001".to_owned())), None));
}

// ---- Records and clocks with wrong times: in other units, years ahead, or set back ----

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
            corrupt(record, "NewImage");
        }
        let stored = bed.try_handle(&bed.event(&records)).await;
        assert!(matches!(stored, Err(HandleError::Unreadable { .. })), "its time is now");
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
        bed.reads_fail(Fault::Killed, move |key| *key == deadly);
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
    bed.put_settled("Member", &[("OrgId", "o"), ("UserId", "ann")], &[]).await;
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
