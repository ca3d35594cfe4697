//! The figures of a batch: by derivation, its lag, its corrections, and the mark of a possible loss.

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, family::Family, kind::Shape, write::Table};
use engine::{
    account::{Figures, Share},
    clock::Clock as _,
    loss::{POSSIBLE_LOSS_MS, marks},
    registry::{Hold, RegistryWatch},
};
use keys::{counter::CounterKey, key::Key};
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};

use crate::cases::{Bed, COMMENT, FOLLOW};

/// The records as if they had been made at this time, in seconds since the epoch.
fn created(records: &[Value], at_s: u64) -> Vec<Value> {
    let of = |record: &Value| {
        let mut record = record.clone();
        record["dynamodb"]["ApproximateCreationDateTime"] = json!(at_s);
        record
    };
    records.iter().map(of).collect()
}

fn figures(bed: &Bed, account: &engine::account::Account, derivation: &str) -> Figures {
    bed.engine().figures(account).get(derivation).copied().unwrap_or_default()
}

#[tokio::test]
async fn changes_and_writes_are_counted_by_derivation_with_their_lag() {
    let mut bed = Bed::new();
    bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("Follow", &[("FollowerId", "cy"), ("FolloweeId", "bob")], &[]).await;
    let now_s = bed.clock.now_ms() / 1_000;
    let records = bed.records();
    let handled = bed.handle(&created(&records, now_s - 3)).await;
    let counted = figures(&bed, &handled.account, "follower-count");
    assert_eq!(counted.share, Share { n_changes: 2, n_effects: 2, n_retries: 0, n_parked: 0 });
    assert_eq!((counted.n_writes, counted.lag_ms_max), (1, Some(3_000)), "two changes of one counter are one write");
    let mirrored = figures(&bed, &handled.account, "follower-mirror");
    assert_eq!((mirrored.share.n_changes, mirrored.n_writes), (2, 2));
    assert_eq!(handled.account.lags_ms(), [3_000, 3_000]);
    let of_all: f64 = bed.engine().figures(&handled.account).values().map(|figures| figures.units).sum();
    let of_main = handled.account.commits.iter().filter(|commit| commit.table == Table::Main).map(|it| it.units);
    assert!((of_all - of_main.sum::<f64>()).abs() < 1e-9, "no unit is left out, and none is there twice");
}

#[tokio::test]
async fn a_transaction_that_is_sent_again_is_a_retry_of_all_that_is_in_it() {
    let mut bed = Bed::new().running(Family::Additive);
    bed.put("Follow", &FOLLOW, &[]).await;
    let mut n_left = 1;
    bed.fails(move |call| {
        let Call::Transact(_) = call else { return None };
        n_left = usize::checked_sub(n_left, 1)?;
        Some((Side::Before, Fault::Conflict(1)))
    });
    let handled = bed.goes_on().await;
    assert_eq!(handled.account.n_retries, 1);
    for derivation in ["follower-count", "following-count"] {
        assert_eq!(figures(&bed, &handled.account, derivation).share.n_retries, 1, "{derivation}");
    }
    let n_conflicts = |derivation| figures(&bed, &handled.account, derivation).n_conflicts;
    assert_eq!(n_conflicts("follower-count") + n_conflicts("following-count"), 1);
}

#[tokio::test]
async fn a_write_against_a_foreign_value_is_a_correction_and_no_other_write_is() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let comment = bed.put("Comment", &COMMENT, &[("UserId", "ann")]).await;
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    let all = bed.settle().await;
    bed.set(&user, "Name", "Anne").await;
    let all = [all, bed.settle().await].concat();
    assert_eq!(bed.shown(&comment, "UserName"), "Anne");
    let n_corrections = |all: &[engine::batch::Handled]| all.iter().map(|it| it.account.n_corrections()).sum::<usize>();
    assert_eq!(n_corrections(&all), 0, "a new item, and one whose source changed, is not corrected");

    // Somebody's own trigger.
    bed.set(&comment, "UserName", "Mallory").await;
    let all = bed.settle().await;
    assert_eq!((bed.shown(&comment, "UserName").as_str(), n_corrections(&all)), ("Anne", 1));
    let by_derivation: usize = all.iter().map(|it| figures(&bed, &it.account, "comment-author").n_corrections).sum();
    assert_eq!(by_derivation, 1);

    // Somebody removes a mirror, and makes a wrong one.
    bed.delete(&Key::new("USER#bob", "FOLLOWER#ann")).await;
    assert_eq!(n_corrections(&bed.settle().await), 1);
    bed.put("Follower", &[("FolloweeId", "bob"), ("FollowerId", "mallory")], &[]).await;
    assert_eq!(n_corrections(&bed.settle().await), 1);
    bed.delete(&follow).await;
    assert_eq!(n_corrections(&bed.settle().await), 0, "what goes with its source is no correction");
}

#[tokio::test]
async fn a_batch_that_comes_20_hours_late_leaves_a_mark_once_an_hour() {
    let mut bed = Bed::new().running(Family::Additive);
    let engine = bed.engine();
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    let late_s = POSSIBLE_LOSS_MS / 1_000;
    let deadline_ms = bed.clock.now_ms() + 7_200_000;
    let now_s = bed.clock.now_ms() / 1_000;

    let fresh = created(&records, now_s - late_s + 1);
    let handled = engine.handle(&bed.event(&fresh), deadline_ms).await.unwrap();
    let n_losses = async || engine.damage(deadline_ms).await.unwrap().n_losses;
    assert_eq!((handled.account.late_ms, n_losses().await), (None, 0));

    let late = created(&records, now_s - late_s);
    let handled = engine.handle(&bed.event(&late), deadline_ms).await.unwrap();
    assert_eq!((handled.account.late_ms, n_losses().await), (Some(POSSIBLE_LOSS_MS), 1));
    let first = marks(bed.memory()).await.unwrap();
    assert_eq!((first.len(), first[0].late_ms), (1, POSSIBLE_LOSS_MS));

    bed.clock.advance(3_599_000);
    let handled = engine.handle(&bed.event(&late), deadline_ms).await.unwrap();
    assert!(handled.account.late_ms.is_some(), "the metric says so each time");
    assert_eq!(marks(bed.memory()).await.unwrap(), first);
    bed.clock.advance(1_000_000);
    engine.handle(&bed.event(&late), deadline_ms).await.unwrap();
    let [again] = marks(bed.memory()).await.unwrap().try_into().unwrap();
    assert_eq!((again.since_ms, again.late_ms), (first[0].since_ms, POSSIBLE_LOSS_MS + 4_599_000));
    assert_eq!(again.until_ms, first[0].until_ms + 4_599_000);
}

/// A function is attached to a table with a stream: the first batch has records of before, which are 22 hours old.
/// Returns the bed, whether the metric says that records may be lost, and the families of the marks.
async fn attached(mut bed: Bed) -> (Bed, bool, Vec<String>) {
    bed.watch = Some(RegistryWatch::publishing(60_000, Hold::default()));
    bed.put("Follow", &FOLLOW, &[]).await;
    let before = created(&bed.records(), bed.clock.now_ms() / 1_000 - 22 * 3_600);
    let handled = bed.handle(&before).await;
    assert!(handled.account.is_first_backlog, "it is marked as such");
    let families = marks(bed.memory()).await.unwrap().into_iter().map(|mark| mark.family).collect();
    (bed, handled.account.late_ms.is_some(), families)
}

#[tokio::test]
async fn the_first_backlog_of_a_table_is_no_possible_loss_and_what_is_late_afterwards_is() {
    let (mut bed, is_late, families) = attached(Bed::new().running(Family::Additive)).await;
    assert_eq!((is_late, families), (false, vec![]));

    bed.clock.advance(1_000);
    bed.put("Follow", &[("FollowerId", "cy"), ("FolloweeId", "bob")], &[]).await;
    let after = bed.records();
    bed.clock.advance(POSSIBLE_LOSS_MS + 1_000);
    let handled = bed.handle(&after).await;
    let [mark] = marks(bed.memory()).await.unwrap().try_into().unwrap();
    assert_eq!((handled.account.is_first_backlog, handled.account.late_ms), (false, Some(mark.late_ms)));
}

#[tokio::test]
async fn the_first_backlog_leaves_a_mark_without_an_alarm_where_a_cascade_is_declared() {
    let (_, is_late, families) = attached(Bed::new()).await;
    assert_eq!((is_late, families), (false, vec![Family::LevelTriggered.to_string()]));

    let schema = catalogue::schema();
    let all = catalogue::catalogue(&schema).unwrap();
    let without = all.derivations().filter(|it| !matches!(it.kind.shape(), Shape::Cascade(_))).cloned().collect();
    let without = Catalogue::new(&schema, without).unwrap();
    let (_, is_late, families) = attached(Bed::with(schema, without)).await;
    assert_eq!((is_late, families), (false, vec![]));
}

#[tokio::test]
async fn what_is_replayed_leaves_no_mark_however_old_it_is() {
    let mut bed = Bed::new();
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    let old = created(&records, bed.clock.now_ms() / 1_000 - 2 * POSSIBLE_LOSS_MS / 1_000);
    let engine = bed.engine();
    engine.replay(&bed.event(&old), &engine::redrive::Origin::default(), bed.deadline_ms()).await.unwrap();
    assert_eq!(engine.damage(bed.deadline_ms()).await.unwrap().n_losses, 0);
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
