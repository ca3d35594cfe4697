//! An operator's orders to jobs: pause, resume, cancel.

use derive::write::{Action, Table, Write};
use engine::{
    job::{Job, STALLED_MS},
    jobs::{JobOrder, Obeyed},
    limits::FanOutLimits,
};
use keys::key::Key;
use serde_json::Value;
use store::{
    Store as _,
    faulty::{Call, Fault, Side},
};

use crate::cases::bed::Bed;

/// A page of two items for each record of a job.
fn limits() -> FanOutLimits {
    FanOutLimits { direct_max: 2, page_items: 2, page_ms: 0, page_beside_ms: 0, ..FanOutLimits::default() }
}

/// A table with this many comments of a user, each with the user's first name.
async fn commented(n_comments: usize) -> (Bed, Key) {
    let mut bed = Bed::new().fanning(limits());
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "first")]).await;
    for number in 0..n_comments {
        let fields = [("PostId", "p"), ("CreatedAt", &format!("t{number:02}")), ("CommentId", "c")];
        bed.put("Comment", &fields, &[("UserId", "ann")]).await;
    }
    bed.settle().await;
    assert_eq!((n_named(&bed, "first"), jobs(&bed).await), (n_comments, Vec::new()));
    (bed, user)
}

async fn jobs(bed: &Bed) -> Vec<Job> {
    let engine = bed.engine();
    engine::jobs::ground::sweep::jobs(engine.store(), &engine.schema().layout).await.unwrap()
}

/// The only job.
async fn job(bed: &Bed) -> Job {
    let mut jobs = jobs(bed).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

async fn order(bed: &Bed, job: &Job, order: JobOrder) -> Obeyed {
    bed.engine().order(job, order, bed.deadline_ms()).await.unwrap()
}

async fn is_done(bed: &Bed, job: &Job, asked: JobOrder) -> bool {
    matches!(order(bed, job, asked).await, Obeyed::Done(_))
}

/// Comments with this name of their author.
fn n_named(bed: &Bed, name: &str) -> usize {
    let items = bed.memory().snapshot(Table::Main);
    items.keys().filter(|key| key.sk.starts_with("COMMENT#") && bed.shown(key, "UserName") == name).count()
}

/// The next batch of records is handled.
async fn goes_on(bed: &mut Bed) -> Vec<Value> {
    let records = bed.records();
    bed.handle(&records).await;
    records
}

#[tokio::test]
async fn a_fan_out_that_is_paused_stays_at_its_cursor_and_ends_right_when_it_is_resumed() {
    let (mut bed, user) = commented(11).await;
    bed.set(&user, "Name", "second").await;
    for _ in 0..3 {
        goes_on(&mut bed).await;
    }
    let begun = job(&bed).await;
    let n_before = n_named(&bed, "second");
    assert!(n_before > 0 && n_before < 11 && begun.after.is_some(), "{n_before} {begun:?}");

    assert_eq!(order(&bed, &begun, JobOrder::Pause).await, Obeyed::Done(Box::new(begun.clone())));
    assert_eq!(order(&bed, &begun, JobOrder::Pause).await, Obeyed::Already);
    bed.settle().await;
    bed.clock.advance(STALLED_MS + 1);
    let swept = bed.sweep().await;
    bed.settle().await;
    let held = job(&bed).await;
    assert_eq!((swept.n_woken, n_named(&bed, "second"), held.is_paused), (0, n_before, true));
    assert_eq!((held.after.clone(), held.n_touched), (begun.after, begun.n_touched));

    // A change in between makes it go round once more when it is resumed.
    bed.set(&user, "Name", "third").await;
    bed.settle().await;
    assert_eq!((n_named(&bed, "third"), job(&bed).await.is_paused), (0, true));
    assert!(is_done(&bed, &held, JobOrder::Resume).await);
    assert_eq!(order(&bed, &held, JobOrder::Resume).await, Obeyed::Already);
    let swept = bed.sweep().await;
    assert_eq!(swept.n_woken, 0, "it moves");
    bed.settle().await;
    assert_eq!((n_named(&bed, "third"), jobs(&bed).await), (11, Vec::new()));
    assert_eq!(bed.findings(), [""; 0]);
}

#[tokio::test]
async fn a_fan_out_that_is_cancelled_stops_and_the_next_change_begins_anew() {
    let (mut bed, user) = commented(11).await;
    bed.set(&user, "Name", "second").await;
    for _ in 0..3 {
        goes_on(&mut bed).await;
    }
    let begun = job(&bed).await;
    let n_before = n_named(&bed, "second");
    assert_eq!(order(&bed, &begun, JobOrder::Cancel).await, Obeyed::Done(Box::new(begun.clone())));
    bed.settle().await;
    assert_eq!((n_named(&bed, "second"), jobs(&bed).await), (n_before, Vec::new()));
    assert_eq!(bed.findings().len(), 11 - n_before, "{:?}", bed.findings());
    for asked in [JobOrder::Pause, JobOrder::Resume, JobOrder::Cancel] {
        assert_eq!(order(&bed, &begun, asked).await, Obeyed::Gone);
    }
    assert_eq!(jobs(&bed).await, [], "nothing is written where it was");

    bed.set(&user, "Name", "third").await;
    bed.settle().await;
    assert_eq!((n_named(&bed, "third"), bed.findings()), (11, Vec::new()));
}

#[tokio::test]
async fn a_fan_out_by_an_index_that_is_cancelled_begins_once_more_when_the_index_has_had_time() {
    let (mut bed, user) = commented(11).await;
    bed.set(&user, "Name", "second").await;
    goes_on(&mut bed).await;
    let begun = job(&bed).await;
    assert!(bed.engine().is_searched_again(&begun));
    assert!(is_done(&bed, &begun, JobOrder::Cancel).await);
    bed.settle().await;
    bed.clock.advance(2 * FanOutLimits::default().index_lag_ms);
    bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    bed.settle().await;
    assert_eq!((n_named(&bed, "second"), jobs(&bed).await), (11, Vec::new()));

    // A search of the table itself is made once.
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    for id in ["u1", "u2", "u3"] {
        bed.put("Follow", &[("FollowerId", id), ("FolloweeId", "bob")], &[]).await;
    }
    bed.settle().await;
    bed.set(&user, "Name", "second").await;
    goes_on(&mut bed).await;
    assert!(!bed.engine().is_searched_again(&job(&bed).await));
}

#[tokio::test]
async fn a_cascade_that_is_paused_while_it_waits_does_not_begin() {
    let mut bed = Bed::new();
    let subscription = bed.removed_user().await;
    let waiting = job(&bed).await;
    assert!(is_done(&bed, &waiting, JobOrder::Pause).await);
    let swept = bed.a_day_passes().await;
    bed.settle().await;
    let held = job(&bed).await;
    assert_eq!((swept.n_begun, held.is_paused, held.is_running), (0, true, false));

    assert!(is_done(&bed, &held, JobOrder::Resume).await);
    bed.settle().await;
    assert!(bed.has(&subscription) && !job(&bed).await.is_running, "it waits, as before");
    assert_eq!(bed.sweep().await.n_begun, 1);
    bed.settle().await;
    assert!(bed.has(&subscription) && !job(&bed).await.is_running, "it has listed, and waits again");
    assert_eq!(bed.a_day_passes().await.n_begun, 1);
    bed.settle().await;
    assert_eq!((bed.has(&subscription), jobs(&bed).await), (false, Vec::new()));
}

#[tokio::test]
async fn a_cascade_that_is_cancelled_leaves_what_hangs_there() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let subscription = bed.put("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    let removal = bed.records();
    bed.handle(&removal).await;
    bed.settle().await;
    assert!(is_done(&bed, &job(&bed).await, JobOrder::Cancel).await);
    // The removal starts no other job when it is delivered again.
    bed.handle(&removal).await;
    bed.a_day_passes().await;
    bed.settle().await;
    assert!(bed.has(&subscription));
    assert_eq!(jobs(&bed).await, []);
}

#[tokio::test]
async fn an_order_that_lands_when_the_job_has_ended_writes_nothing() {
    for asked in [JobOrder::Pause, JobOrder::Cancel] {
        let (mut bed, user) = commented(11).await;
        bed.set(&user, "Name", "second").await;
        goes_on(&mut bed).await;
        let begun = job(&bed).await;
        bed.fails(|call| matches!(call, Call::Write(_)).then_some((Side::After, Fault::Late)));
        // The answer is lost.
        bed.engine().order(&begun, asked, bed.deadline_ms()).await.unwrap_err();
        bed.fails(|_| None);
        bed.settle().await;
        assert_eq!((n_named(&bed, "second"), jobs(&bed).await), (11, Vec::new()));
        // Another began after it under the same key.
        bed.clock.advance(1);
        bed.set(&user, "Name", "third").await;
        goes_on(&mut bed).await;
        let other = job(&bed).await;
        assert_eq!((&other.key, order(&bed, &begun, asked).await), (&begun.key, Obeyed::Gone));
        bed.land();
        bed.settle().await;
        assert_eq!((n_named(&bed, "third"), jobs(&bed).await), (11, Vec::new()), "{asked:?}");
    }
}

/// A comment that refuses a longer name: it has almost the largest size of an item.
async fn refusing(bed: &mut Bed) -> Key {
    let fields = [("PostId", "p"), ("CreatedAt", "t00"), ("CommentId", "c")];
    let content = "x".repeat(409_400 - 60);
    let comment = bed.put("Comment", &fields, &[("UserId", "ann"), ("Content", &content)]).await;
    bed.settle().await;
    comment
}

#[tokio::test]
async fn what_was_refused_is_looked_at_once_more_when_it_is_redriven_and_its_job_is_held_or_has_ended() {
    for is_held in [true, false] {
        let (mut bed, user) = commented(7).await;
        let comment = refusing(&mut bed).await;
        bed.set(&user, "Name", &"long".repeat(300)).await;
        while bed.parked().is_empty() {
            goes_on(&mut bed).await;
        }
        if is_held {
            assert!(is_done(&bed, &job(&bed).await, JobOrder::Pause).await);
        }
        bed.settle().await;
        assert_eq!(jobs(&bed).await.len(), usize::from(is_held));
        bed.set(&comment, "Content", "short").await;
        // Its own record, which would mend it, has not arrived yet.
        drop(bed.records());
        bed.redrive_all().await;
        if is_held {
            assert!(is_done(&bed, &job(&bed).await, JobOrder::Resume).await);
        }
        bed.settle().await;
        assert_eq!((bed.findings(), jobs(&bed).await, bed.parked()), (Vec::new(), Vec::new(), Vec::new()), "{is_held}");
    }
}

#[tokio::test]
async fn what_is_no_job_any_more_is_not_taken_for_one() {
    let (mut bed, user) = commented(11).await;
    bed.set(&user, "Name", "second").await;
    goes_on(&mut bed).await;
    let begun = job(&bed).await;
    let item = bed.schema.layout.key_item(&begun.key);
    let put = Write { table: Table::Main, key: begun.key.clone(), action: Action::Put(item.clone()), guard: None };
    bed.memory().write(&put).await.unwrap();
    assert_eq!(order(&bed, &begun, JobOrder::Cancel).await, Obeyed::Gone);
    assert_eq!(bed.memory().snapshot(Table::Main).get(&begun.key), Some(&item));
}
