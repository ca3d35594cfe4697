//! Fan-out by jobs, record by record, and an operator's orders to jobs.

use std::collections::HashMap;

use derive::write::{Action, ITEM_BYTES_MAX, Table, Write};
use engine::{
    job::{Job, STALLED_MS, Task},
    jobs::{JobOrder, Obeyed},
    limits::FanOutLimits,
    sweep::Bounds,
};
use keys::{item::Item, job::JobKey, key::Key, size::item_bytes};
use operate::verify::{AtRest, VerifyEvent};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::{
    Store as _,
    faulty::{Call, Fault, Side},
};

use crate::{
    caller::Turn,
    cases::{Bed, COMMENT, corrupt, verification::verified},
    items::s,
};

/// A page has two items: the clock stands still, and a page is over at once.
const PAGES: FanOutLimits = FanOutLimits {
    direct_max: 2,
    page_items: 2,
    page_ms: 0,
    page_ms_max: 0,
    page_beside_ms: 0,
    units_per_second: None,
    index_lag_ms: 15_000,
};

const ANN: [(&str, &str); 1] = [("UserId", "ann")];

/// A user with this many followers. The follows hold the name, and a query of the table finds them.
async fn famous(limits: FanOutLimits, n_followers: usize) -> (Bed, Key, Vec<Key>) {
    let mut bed = Bed::new().fanning(limits);
    let ann = bed.put("User", &ANN, &[("Name", "Ann")]).await;
    let mut follows = Vec::new();
    for at in 0..n_followers {
        let follower = format!("f{at:02}");
        follows.push(bed.put("Follow", &[("FollowerId", &follower), ("FolloweeId", "ann")], &[]).await);
    }
    bed.settle().await;
    (bed, ann, follows)
}

/// Ann and her comments. A search of an index finds them.
async fn comments(bed: &mut Bed, n_comments: usize) -> (Key, Vec<Key>) {
    let ann = bed.put("User", &ANN, &[("Name", "Ann")]).await;
    let mut comments = Vec::new();
    for at in 0..n_comments {
        let id = [("PostId", "p"), ("CreatedAt", &format!("t{at}")), ("CommentId", "c")];
        comments.push(bed.put("Comment", &id, &[("UserId", "ann")]).await);
    }
    bed.settle().await;
    (ann, comments)
}

fn names(bed: &Bed, follows: &[Key]) -> Vec<String> {
    follows.iter().map(|follow| bed.shown(follow, "FolloweeName")).collect()
}

fn jobs(bed: &Bed) -> Vec<Job> {
    let items = bed.memory().snapshot(Table::Main);
    let is_job = |(key, _): &(&Key, &_)| JobKey::parse(key).is_some();
    items.iter().filter(is_job).filter_map(|(_, item)| Job::of(&bed.schema.layout, item)).collect()
}

/// Handles the records of jobs, and returns the records of what they wrote.
async fn page(bed: &mut Bed, records: Vec<Value>) -> Vec<Value> {
    let is_job = |record: &Value| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().starts_with("JOBS#");
    let (of_jobs, _): (Vec<Value>, Vec<Value>) = records.into_iter().partition(is_job);
    bed.handle(&of_jobs).await;
    bed.records()
}

/// Renames a user, handles the record, and returns the record of the job.
async fn renamed(bed: &mut Bed, user: &Key, name: &str) -> Vec<Value> {
    bed.set(user, "Name", name).await;
    bed.goes_on().await;
    bed.records()
}

#[tokio::test]
async fn a_page_of_targets_is_looked_at_with_its_batch_and_more_become_a_job_whose_progress_can_be_read() {
    for (n_followers, wanted) in [(2, &[][..]), (3, &[(0, 0), (2, 2)]), (7, &[(0, 0), (2, 2), (4, 4), (6, 6)])] {
        let (mut bed, ann, follows) = famous(PAGES, n_followers).await;
        let mut records = renamed(&mut bed, &ann, "Anna").await;
        let mut seen = Vec::new();
        while let [job] = jobs(&bed).as_slice() {
            seen.push((job.n_touched, names(&bed, &follows).iter().filter(|name| *name == "Anna").count()));
            records = page(&mut bed, records).await;
        }
        assert_eq!((&*seen, names(&bed, &follows)), (wanted, vec!["Anna".to_owned(); n_followers]));
    }
}

/// The items that a verification finds wrong, and those that wait.
async fn found_and_waiting(bed: &Bed) -> [Vec<String>; 2] {
    let (mut found, mut waiting) = (Vec::new(), Vec::new());
    for event in verified(bed, &AtRest).await.0 {
        match event {
            VerifyEvent::Finding(finding, _) => found.push(format!("{} {}", finding.pk, finding.sk)),
            VerifyEvent::Waiting(finding, _) => waiting.push(format!("{} {}", finding.pk, finding.sk)),
            _ => {}
        }
    }
    found.sort();
    waiting.sort();
    [found, waiting]
}

/// What a fan-out has been to does not wait for it: else a name that changes all the time would hide whatever is wrong.
#[tokio::test]
async fn a_wrong_copy_is_found_behind_the_cursor_of_a_fan_out_and_waits_ahead_of_it() {
    let mut bed = Bed::new().fanning(FanOutLimits { index_lag_ms: 0, ..PAGES });
    let (ann, comments) = comments(&mut bed, 7).await;
    let records = renamed(&mut bed, &ann, "Anna").await;
    page(&mut bed, records).await;
    for comment in [&comments[0], &comments[6]] {
        bed.set(comment, "UserName", "Wrong").await;
    }
    let [found, waiting] = found_and_waiting(&bed).await;
    assert_eq!(found, ["POST#p COMMENT#t0#c"]);
    assert_eq!(waiting, ["t2", "t3", "t4", "t5", "t6"].map(|at| format!("POST#p COMMENT#{at}#c")));
}

/// The follows of a user are found by their mirrors, whose keys do not tell how far the fan-out is with the follows.
#[tokio::test]
async fn a_wrong_copy_waits_for_a_fan_out_that_finds_it_by_a_mirror_if_its_own_source_has_changed() {
    let (mut bed, ann, follows) = famous(PAGES, 7).await;
    let bob = bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let of_bob = bed.put_settled("Follow", &[("FollowerId", "f00"), ("FolloweeId", "bob")], &[]).await;
    let records = renamed(&mut bed, &ann, "Anna").await;
    page(&mut bed, records).await;
    for follow in [&follows[0], &of_bob] {
        bed.set(follow, "FolloweeName", "Wrong").await;
    }
    let [found, waiting] = found_and_waiting(&bed).await;
    assert_eq!(found, [format!("{} {}", of_bob.pk, of_bob.sk)], "{bob} has not changed");
    assert_eq!(waiting.len(), 6, "{waiting:?}");
}

/// The records of a page's own writes arrive with that of its job. Nobody waits for these, but somebody may wait for a
/// change.
#[tokio::test]
async fn a_page_is_short_beside_a_change_and_not_beside_its_own_echoes() {
    let (mut bed, ann, follows) = famous(FanOutLimits { page_ms: 1_000, page_ms_max: 1_000, ..PAGES }, 9).await;
    let mut records = renamed(&mut bed, &ann, "Anna").await;
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    records.extend(bed.records());
    bed.handle(&records).await;
    let n_named = |bed: &Bed| names(bed, &follows).iter().filter(|name| *name == "Anna").count();
    assert_eq!(n_named(&bed), 2);
    let records = bed.records();
    assert_eq!(records.len(), 3, "two echoes and the job");
    bed.handle(&records).await;
    assert_eq!(n_named(&bed), 9);
}

/// A page with no other change in its batch may still keep an occasional writer waiting.
#[tokio::test]
async fn a_page_is_short_for_a_second_after_something_was_done_for_somebody_else() {
    let (mut bed, ann, follows) = famous(FanOutLimits { page_ms: 1_000, page_ms_max: 1_000, ..PAGES }, 9).await;
    // One instance, which remembers. Nobody waits for the change that began the job.
    let engine = bed.engine();
    bed.set(&ann, "Name", "Anna").await;
    let began = bed.records();
    engine.handle(&bed.event(&began), bed.deadline_ms()).await.unwrap();
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    for (passed_ms, n_named) in [(0, 2), (999, 4), (1, 9)] {
        bed.clock.advance(passed_ms);
        let records = bed.records();
        engine.handle(&bed.event(&records), bed.deadline_ms()).await.unwrap();
        assert_eq!(names(&bed, &follows).iter().filter(|name| *name == "Anna").count(), n_named);
    }
}

#[tokio::test]
async fn a_newer_change_closes_a_circle_and_does_not_start_over() {
    let (mut bed, ann, follows) = famous(PAGES, 7).await;
    let mut records = renamed(&mut bed, &ann, "Anna").await;
    for _ in 0..2 {
        records = page(&mut bed, records).await;
    }
    records = renamed(&mut bed, &ann, "Anne").await;
    let job = jobs(&bed).remove(0);
    let Task::FanOut(fan_out) = &job.task else { panic!("{job:?}") };
    assert_eq!((fan_out.until.as_deref(), fan_out.is_round, job.n_touched), (Some("FOLLOWER#f03"), false, 4));
    let first_of = |bed: &Bed| names(bed, &follows).iter().position(|name| name == "Anne");
    records = page(&mut bed, records).await;
    assert_eq!(first_of(&bed), Some(4), "it goes on where it was");
    let mut n_pages = 1;
    while !jobs(&bed).is_empty() {
        records = page(&mut bed, records).await;
        n_pages += 1;
    }
    assert_eq!(
        (names(&bed, &follows), n_pages),
        (vec!["Anne".to_owned(); 7], 5),
        "to the end, and round to where it was"
    );
}

/// Older versions split a large job: it ended before the sort key `To`, and its parts were jobs that began at `From`.
/// Neither bounds a job now, so such jobs continue to the end of the search.
#[tokio::test]
async fn what_an_older_version_left_of_a_job_that_was_cut_goes_on_to_the_end() {
    for is_whole_left in [true, false] {
        let (mut bed, ann, follows) = famous(PAGES, 9).await;
        let mut records = renamed(&mut bed, &ann, "Anna").await;
        records = page(&mut bed, records).await;
        let whole = jobs(&bed).remove(0);
        let layout = &bed.schema.layout;
        let mut item = bed.item(&whole.key).unwrap();
        item.insert("To".to_owned(), s("FOLLOWER#f03"));
        let mut part = item.clone();
        let key = JobKey::parse(&whole.key).map(|key| JobKey { id: format!("{}#2-0", key.id), ..key }).unwrap().key();
        part.extend(layout.key_item(&key));
        part.extend([("From".to_owned(), s("FOLLOWER#f03")), ("To".to_owned(), s("FOLLOWER#f06"))]);
        part.insert("After".to_owned(), AttributeValue::M(HashMap::new()));
        let put =
            |key: &Key, item| Write { table: Table::Main, key: key.clone(), action: Action::Put(item), guard: None };
        let write = if is_whole_left { put(&whole.key, item) } else { put(&key, part) };
        if !is_whole_left {
            let delete = Write { action: Action::Delete, ..put(&whole.key, Item::new()) };
            bed.memory().write(&delete).await.unwrap();
        }
        bed.memory().write(&write).await.unwrap();
        records.extend(bed.records());
        bed.handle_settled(&records).await;
        assert_eq!((names(&bed, &follows), jobs(&bed)), (vec!["Anna".to_owned(); 9], Vec::new()), "{is_whole_left}");
    }
}

/// All jobs of a source have one key, and each begins at the same revision.
#[tokio::test]
async fn a_page_of_a_job_that_has_ended_does_not_move_the_one_that_began_after_it() {
    let (mut bed, ann, follows) = famous(PAGES, 3).await;
    let first = renamed(&mut bed, &ann, "Anna").await;
    // Two invocations have the job's first record. One does its page, and is slow to move the cursor.
    bed.calls();
    let mut slow = bed.start(&bed.event(&first));
    while names(&bed, &follows).iter().filter(|name| *name == "Anna").count() < 2 {
        assert!(matches!(slow.turn(), Turn::Runs), "it has not done its page yet");
    }
    // The other does all of it. Then the name changes, which begins another job.
    bed.handle_settled(&first).await;
    assert_eq!((names(&bed, &follows), jobs(&bed).len()), (vec!["Anna".to_owned(); 3], 0));
    bed.clock.advance(1);
    let second = renamed(&mut bed, &ann, "Anne").await;
    assert!(slow.finish().is_some());
    let moved = bed.records();
    bed.handle(&second).await;
    bed.handle_settled(&moved).await;
    assert_eq!((names(&bed, &follows), jobs(&bed).len()), (vec!["Anne".to_owned(); 3], 0));
}

#[tokio::test]
async fn a_rate_is_kept_over_pages() {
    let (mut bed, ann, follows) = famous(FanOutLimits { units_per_second: Some(2), ..PAGES }, 8).await;
    let began_ms = bed.deadline_ms();
    let mut records = renamed(&mut bed, &ann, "Anna").await;
    while !jobs(&bed).is_empty() {
        records = page(&mut bed, records).await;
        bed.clock.advance(100);
    }
    assert_eq!(names(&bed, &follows), vec!["Anna"; 8]);
    // Six of eight units at two a second: the last page need not wait for its own units.
    let took_ms = bed.deadline_ms() - began_ms;
    assert!((3_000..4_500).contains(&took_ms), "{took_ms} ms");
}

#[tokio::test]
async fn no_more_is_looked_at_together_than_a_second_has_units() {
    let limits = FanOutLimits { page_items: 9, units_per_second: Some(3), ..PAGES };
    let (mut bed, ann, follows) = famous(limits, 9).await;
    let records = renamed(&mut bed, &ann, "Anna").await;
    page(&mut bed, records).await;
    assert_eq!(names(&bed, &follows).iter().filter(|name| *name == "Anna").count(), 3);
}

#[tokio::test]
async fn a_page_of_copies_is_written_without_reading_the_items() {
    let mut bed = Bed::new().fanning(FanOutLimits { page_items: 9, ..PAGES });
    let (ann, comments) = comments(&mut bed, 5).await;
    let records = renamed(&mut bed, &ann, "Anna").await;
    bed.reads_fail(Fault::Unanswered, |key| key.sk.starts_with("COMMENT#"));
    page(&mut bed, records).await;
    let shown: Vec<String> = comments.iter().map(|comment| bed.shown(comment, "UserName")).collect();
    assert_eq!(shown, vec!["Anna"; 5]);
}

/// A comment that its author's rename does not find because the index lags.
async fn missed() -> (Bed, Key) {
    let mut bed = Bed::new().lagging().fanning(PAGES);
    let ann = bed.put_settled("User", &ANN, &[("Name", "Ann")]).await;
    bed.index_follows();
    let comment = bed.put_settled("Comment", &COMMENT, &[("UserId", "ann")]).await;
    bed.set_settled(&ann, "Name", "Anna").await;
    assert_eq!(bed.shown(&comment, "UserName"), "Ann", "the index does not show it");
    (bed, comment)
}

#[tokio::test]
async fn what_a_lagging_index_did_not_show_is_found_when_it_is_searched_again() {
    let (mut bed, comment) = missed().await;
    bed.index_follows();
    let again = bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    assert_eq!(again.n_done, 0, "it is not due");
    assert_ne!(bed.ledger("AGAIN#").len(), 0);
    bed.clock.advance(PAGES.index_lag_ms + 1_000);
    let again = bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    assert_eq!((again.n_written, bed.shown(&comment, "UserName")), (1, "Anna".to_owned()));
    bed.settle().await;
    assert_eq!(bed.ledger("AGAIN#").len(), 0, "what is searched again is not noted again");
}

/// A comment that is as large as an item may be has no room for a longer name.
#[tokio::test]
async fn what_is_found_again_and_refused_is_parked_with_the_record_of_a_job() {
    let (mut bed, comment) = missed().await;
    let n_bytes = ITEM_BYTES_MAX - item_bytes(&bed.item(&comment).unwrap()) - "Padding".len();
    bed.set_settled(&comment, "Padding", &"x".repeat(n_bytes)).await;
    bed.index_follows();
    bed.clock.advance(PAGES.index_lag_ms + 1_000);
    assert_eq!(bed.sweeper().search_again(bed.deadline_ms()).await.unwrap().n_left, 0);
    bed.settle().await;
    assert_eq!((bed.parked().len(), bed.ledger("AGAIN#").len(), jobs(&bed).len()), (1, 0, 0));
    bed.set(&comment, "Padding", "x").await;
    bed.redrive_all().await;
    bed.settle().await;
    assert_eq!((bed.shown(&comment, "UserName"), bed.parked().len()), ("Anna".to_owned(), 0));
}

#[tokio::test]
async fn what_is_still_to_be_searched_for_again_has_not_drifted() {
    let (bed, comment) = missed().await;
    let slice = async || {
        let bounds = Bounds { n_items_max: usize::MAX, deadline_ms: bed.deadline_ms() };
        bed.sweeper().sweep_slice(bounds, |_| true).await.unwrap()
    };
    assert_eq!(slice().await.n_suspects, 1);
    assert_eq!(slice().await.drifts, [], "the search that is noted finds it");
    bed.forget("AGAIN#").await;
    let drifts = slice().await.drifts;
    assert_eq!(drifts.iter().map(|drift| &drift.item).collect::<Vec<_>>(), [&comment]);
}

#[tokio::test]
async fn what_a_sweep_died_of_is_given_to_jobs_and_those_behind_it_are_done() {
    let (mut bed, comment) = missed().await;
    bed.index_follows();
    bed.clock.advance(PAGES.index_lag_ms + 1_000);
    bed.writes_fail(Fault::Unanswered, |key| key.sk.starts_with("COMMENT#"));
    // It dies in the middle: the mark stays.
    let engine = bed.sweeper();
    let mut dying = Box::pin(engine.search_again(u64::MAX));
    for _ in 0..200 {
        assert!(futures::poll!(&mut dying).is_pending(), "it tries again and again");
    }
    drop(dying);
    assert_eq!(bed.ledger("AGAIN#").iter().filter(|item| item.contains_key("Last")).count(), 1);
    bed.fails(|_| None);
    let again = bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    assert!(again.n_done > 0 && !jobs(&bed).is_empty(), "{again:?}");
    bed.settle().await;
    assert_eq!((bed.shown(&comment, "UserName"), jobs(&bed).len()), ("Anna".to_owned(), 0));
    assert_eq!(bed.ledger("AGAIN#").len(), 0);
}

// ---- The list of items that cannot be interpreted ----

#[tokio::test]
async fn a_change_that_is_redriven_lists_its_item_for_counts_too() {
    let mut bed = Bed::new();
    let review = [("ProductId", "p"), ("CreatedAt", "t"), ("ReviewId", "r")];
    bed.put("Review", &review, &[("Rating", "many")]).await;
    let mut records = bed.records();
    let whole = records[0].to_string();
    corrupt(&mut records[0], "NewImage");
    bed.handle(&records).await;
    assert_eq!(bed.ledger("UNREADABLE").len(), 0, "the record is parked");
    bed.put_true(&whole);
    bed.redrive_all().await;
    assert_eq!(bed.parked(), Vec::<String>::new());
    assert_eq!(bed.ledger("UNREADABLE").len(), 1);
}

// ---- An operator's orders to jobs: pause, resume, cancel ----

/// A page of two items for each record of a job.
fn limits() -> FanOutLimits {
    FanOutLimits {
        direct_max: 2,
        page_items: 2,
        page_ms: 0,
        page_ms_max: 0,
        page_beside_ms: 0,
        ..FanOutLimits::default()
    }
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
    assert_eq!((n_named(&bed, "first"), jobs(&bed)), (n_comments, Vec::new()));
    (bed, user)
}

fn job(bed: &Bed) -> Job {
    let mut jobs = jobs(bed);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

async fn order(bed: &Bed, job: &Job, order: JobOrder) -> Obeyed {
    bed.engine().order(job, order, bed.deadline_ms()).await.unwrap()
}

async fn is_done(bed: &Bed, job: &Job, asked: JobOrder) -> bool {
    matches!(order(bed, job, asked).await, Obeyed::Done(_))
}

/// A user of 11 comments gets a second name, and the job for that is after this many batches.
async fn begun(n_batches: usize) -> (Bed, Key, Job) {
    let (mut bed, user) = commented(11).await;
    bed.set(&user, "Name", "second").await;
    for _ in 0..n_batches {
        bed.goes_on().await;
    }
    let begun = job(&bed);
    (bed, user, begun)
}

/// Comments with this name of their author.
fn n_named(bed: &Bed, name: &str) -> usize {
    let items = bed.memory().snapshot(Table::Main);
    items.keys().filter(|key| key.sk.starts_with("COMMENT#") && bed.shown(key, "UserName") == name).count()
}

#[tokio::test]
async fn a_fan_out_that_is_paused_stays_at_its_cursor_and_ends_right_when_it_is_resumed() {
    let (mut bed, user, begun) = begun(3).await;
    let n_before = n_named(&bed, "second");
    assert!(n_before > 0 && n_before < 11 && begun.after.is_some(), "{n_before} {begun:?}");

    assert_eq!(order(&bed, &begun, JobOrder::Pause).await, Obeyed::Done(Box::new(begun.clone())));
    assert_eq!(order(&bed, &begun, JobOrder::Pause).await, Obeyed::Already);
    bed.settle().await;
    bed.clock.advance(STALLED_MS + 1);
    let swept = bed.sweep().await;
    bed.settle().await;
    let stored = job(&bed);
    assert_eq!((swept.n_woken, n_named(&bed, "second"), stored.is_paused), (0, n_before, true));
    assert_eq!((stored.after.clone(), stored.n_touched), (begun.after, begun.n_touched));

    // A change in between makes it go round once more when it is resumed.
    bed.set_settled(&user, "Name", "third").await;
    assert_eq!((n_named(&bed, "third"), job(&bed).is_paused), (0, true));
    assert!(is_done(&bed, &stored, JobOrder::Resume).await);
    assert_eq!(order(&bed, &stored, JobOrder::Resume).await, Obeyed::Already);
    let swept = bed.sweep().await;
    assert_eq!(swept.n_woken, 0, "it moves");
    bed.settle().await;
    assert_eq!((n_named(&bed, "third"), jobs(&bed)), (11, Vec::new()));
    assert_eq!(bed.findings(), [""; 0]);
}

#[tokio::test]
async fn a_fan_out_that_is_cancelled_stops_and_the_next_change_begins_anew() {
    let (mut bed, user, begun) = begun(3).await;
    let n_before = n_named(&bed, "second");
    assert_eq!(order(&bed, &begun, JobOrder::Cancel).await, Obeyed::Done(Box::new(begun.clone())));
    bed.settle().await;
    assert_eq!((n_named(&bed, "second"), jobs(&bed)), (n_before, Vec::new()));
    assert_eq!(bed.findings().len(), 11 - n_before, "{:?}", bed.findings());
    for asked in [JobOrder::Pause, JobOrder::Resume, JobOrder::Cancel] {
        assert_eq!(order(&bed, &begun, asked).await, Obeyed::Gone);
    }
    assert_eq!(jobs(&bed), [], "nothing is written where it was");

    bed.set_settled(&user, "Name", "third").await;
    assert_eq!((n_named(&bed, "third"), bed.findings()), (11, Vec::new()));
}

#[tokio::test]
async fn a_fan_out_by_an_index_that_is_cancelled_begins_once_more_when_the_index_has_had_time() {
    let (mut bed, _, begun) = begun(1).await;
    assert!(bed.engine().is_searched_again(&begun));
    assert!(is_done(&bed, &begun, JobOrder::Cancel).await);
    bed.settle().await;
    bed.clock.advance(2 * FanOutLimits::default().index_lag_ms);
    bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    bed.settle().await;
    assert_eq!((n_named(&bed, "second"), jobs(&bed)), (11, Vec::new()));

    // A search of the table itself is made once.
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    for id in ["u1", "u2", "u3"] {
        bed.put("Follow", &[("FollowerId", id), ("FolloweeId", "bob")], &[]).await;
    }
    bed.settle().await;
    bed.set(&user, "Name", "second").await;
    bed.goes_on().await;
    assert!(!bed.engine().is_searched_again(&job(&bed)));
}

#[tokio::test]
async fn a_cascade_that_is_paused_while_it_waits_does_not_begin() {
    let mut bed = Bed::new();
    let subscription = bed.removed_user().await;
    let waiting = job(&bed);
    assert!(is_done(&bed, &waiting, JobOrder::Pause).await);
    let swept = bed.a_day_passes().await;
    bed.settle().await;
    let stored = job(&bed);
    assert_eq!((swept.n_begun, stored.is_paused, stored.is_running), (0, true, false));

    assert!(is_done(&bed, &stored, JobOrder::Resume).await);
    bed.settle().await;
    assert!(bed.has(&subscription) && !job(&bed).is_running, "it waits, as before");
    assert_eq!(bed.sweep().await.n_begun, 1);
    bed.settle().await;
    assert!(bed.has(&subscription) && !job(&bed).is_running, "it has listed, and waits again");
    assert_eq!(bed.a_day_passes().await.n_begun, 1);
    bed.settle().await;
    assert_eq!((bed.has(&subscription), jobs(&bed)), (false, Vec::new()));
}

#[tokio::test]
async fn a_cascade_that_is_cancelled_leaves_what_hangs_there() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let subscription = bed.put_settled("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
    bed.delete(&user).await;
    let removal = bed.records();
    bed.handle_settled(&removal).await;
    assert!(is_done(&bed, &job(&bed), JobOrder::Cancel).await);
    // The removal starts no other job when it is delivered again.
    bed.handle(&removal).await;
    bed.days_pass(1).await;
    assert!(bed.has(&subscription));
    assert_eq!(jobs(&bed), []);
}

#[tokio::test]
async fn an_order_that_lands_when_the_job_has_ended_writes_nothing() {
    for asked in [JobOrder::Pause, JobOrder::Cancel] {
        let (mut bed, user, begun) = begun(1).await;
        bed.fails(|call| matches!(call, Call::Write(_)).then_some((Side::After, Fault::Late)));
        // The answer is lost.
        bed.engine().order(&begun, asked, bed.deadline_ms()).await.unwrap_err();
        bed.fails(|_| None);
        bed.settle().await;
        assert_eq!((n_named(&bed, "second"), jobs(&bed)), (11, Vec::new()));
        // Another began after it under the same key.
        bed.clock.advance(1);
        bed.set(&user, "Name", "third").await;
        bed.goes_on().await;
        let other = job(&bed);
        assert_eq!((&other.key, order(&bed, &begun, asked).await), (&begun.key, Obeyed::Gone));
        bed.land();
        bed.settle().await;
        assert_eq!((n_named(&bed, "third"), jobs(&bed)), (11, Vec::new()), "{asked:?}");
    }
}

/// A comment that refuses a longer name: it has almost the largest size of an item.
async fn refusing(bed: &mut Bed) -> Key {
    let fields = [("PostId", "p"), ("CreatedAt", "t00"), ("CommentId", "c")];
    let content = "x".repeat(409_400 - 60);
    bed.put_settled("Comment", &fields, &[("UserId", "ann"), ("Content", &content)]).await
}

#[tokio::test]
async fn what_was_refused_is_looked_at_once_more_when_it_is_redriven_and_its_job_is_held_or_has_ended() {
    for is_held in [true, false] {
        let (mut bed, user) = commented(7).await;
        let comment = refusing(&mut bed).await;
        bed.set(&user, "Name", &"long".repeat(300)).await;
        while bed.parked().is_empty() {
            bed.goes_on().await;
        }
        if is_held {
            assert!(is_done(&bed, &job(&bed), JobOrder::Pause).await);
        }
        bed.settle().await;
        assert_eq!(jobs(&bed).len(), usize::from(is_held));
        bed.set(&comment, "Content", "short").await;
        // Its own record, which would mend it, has not arrived yet.
        drop(bed.records());
        bed.redrive_all().await;
        if is_held {
            assert!(is_done(&bed, &job(&bed), JobOrder::Resume).await);
        }
        bed.settle().await;
        assert_eq!((bed.findings(), jobs(&bed), bed.parked()), (Vec::new(), Vec::new(), Vec::new()), "{is_held}");
    }
}

#[tokio::test]
async fn what_is_no_job_any_more_is_not_taken_for_one() {
    let (bed, _, begun) = begun(1).await;
    let item = bed.schema.layout.key_item(&begun.key);
    let put = Write { table: Table::Main, key: begun.key.clone(), action: Action::Put(item.clone()), guard: None };
    bed.memory().write(&put).await.unwrap();
    assert_eq!(order(&bed, &begun, JobOrder::Cancel).await, Obeyed::Gone);
    assert_eq!(bed.item(&begun.key), Some(item));
}
