//! Cascades, record by record: what they wait for, what they leave, and sweeps that look at one at once.

use std::collections::HashMap;

use derive::{
    family::Family,
    guard::Purpose,
    write::{ITEM_BYTES_MAX, Table},
};
use engine::{
    batch::SETTLE_MS,
    jobs::{
        blocked::Blocker,
        sweep::{Swept, jobs},
    },
    loss::marks,
};
use keys::{job::JobKey, key::Key, size::item_bytes};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::faulty::{Call, Fault, Side};

use crate::{
    caller::{Gone, Task},
    cases::{Bed, COMMENT, FOLLOW, INVOCATION_MS, MET, comment, corrupt},
};

const HOUR_MS: u64 = 3_600 * 1_000;

/// Longer than the ledger is sure of, in milliseconds.
const BEHIND_HORIZON_MS: u64 = 15 * 24 * HOUR_MS;

const POST: [(&str, &str); 3] = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];

/// An item goes, and everybody has handled that.
async fn removed(bed: &mut Bed, key: &Key) {
    bed.settle().await;
    bed.delete_settled(key).await;
}

/// Each deletion checks that the owner is absent, and two transactions that check one item at once conflict.
#[tokio::test]
async fn deletions_under_one_owner_do_not_meet() {
    let mut bed = Bed::new().conflicting();
    let post = bed.put("Post", &POST, &[("Status", "published")]).await;
    for n in 0..100 {
        bed.put("Comment", &comment(&format!("c{n}")), &[]).await;
    }
    removed(&mut bed, &post).await;
    bed.calls();
    bed.days_pass(2).await;
    let (met, deleted): (Vec<String>, Vec<String>) = bed.calls().into_iter().partition(|call| call.ends_with(MET));
    let n_deleted: usize = deleted.iter().map(|call| call.matches("delete POST#p / COMMENT#").count()).sum();
    assert_eq!((n_deleted, met), (100, vec![]), "comments");
}

#[tokio::test]
async fn a_removal_from_behind_the_horizon_starts_no_job() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let subscription = bed.put_settled("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
    bed.delete(&user).await;
    let records = bed.records();
    bed.clock.advance(BEHIND_HORIZON_MS);
    bed.handle(&records).await;
    let n_jobs = bed.memory().snapshot(Table::Main).keys().filter(|key| JobKey::parse(key).is_some()).count();
    assert_eq!((n_jobs, bed.has(&subscription)), (0, true));
}

#[tokio::test]
async fn an_item_that_is_none_of_ours_is_not_deleted_where_one_hung() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    removed(&mut bed, &user).await;
    bed.days_pass(1).await;
    bed.a_day_passes().await;
    let begun = bed.records();
    // The mirror that leads to the follow still exists, and the follow has another type.
    bed.set(&follow, "EntityType", "Gadget").await;
    bed.handle_settled(&begun).await;
    assert_eq!(bed.shown(&follow, "EntityType"), "Gadget");
}

#[tokio::test]
async fn a_deletion_that_is_refused_parks_the_record_of_its_job() {
    let mut bed = Bed::new();
    let comment = bed.put("Comment", &COMMENT, &[]).await;
    let detail = Key::new("POST#p", "METADATA");
    bed.settle().await;
    // More claims than a transaction can check.
    let claim = |at: usize| {
        let part = |name: &str, text: String| (name.to_owned(), AttributeValue::S(text));
        AttributeValue::M(HashMap::from([part("PK", "USER#a".to_owned()), part("SK", format!("POST#t#{at}"))]))
    };
    bed.put_raw(&detail, "PostDetail", [("Claims", AttributeValue::L((0..120).map(claim).collect()))]);
    bed.delete_settled(&detail).await;
    bed.days_pass(2).await;
    assert!(bed.has(&comment));
    let parked = bed.parked();
    assert!(parked.len() == 1 && parked[0].starts_with("PARKED#level-triggered"), "{parked:?}");
}

#[tokio::test]
async fn an_item_that_is_refused_keeps_none_beside_it_from_being_changed() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let post = |id: &'static str| [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", id)];
    let small = [bed.put("Post", &post("a"), &[]).await, bed.put("Post", &post("c"), &[]).await];
    let large = bed.put("Post", &post("z"), &[]).await;
    let n_bytes = ITEM_BYTES_MAX - item_bytes(&bed.item(&large).unwrap()) - "Padding".len();
    bed.set(&large, "Padding", &"x".repeat(n_bytes)).await;
    removed(&mut bed, &user).await;
    bed.days_pass(2).await;
    assert_eq!(small.each_ref().map(|post| bed.shown(post, "Status")), ["archived", "archived"]);
    assert_eq!(bed.shown(&large, "Status"), "");
    // Its mirror is too large as well.
    let parked = bed.parked();
    assert!(parked.iter().all(|parked| parked.contains("level-triggered")) && !parked.is_empty(), "{parked:?}");
}

#[tokio::test]
async fn a_cascade_whose_list_has_expired_lists_again_and_deletes_what_hangs() {
    let mut bed = Bed::new();
    let subscription = bed.removed_user().await;
    bed.days_pass(1).await;
    assert!(!bed.ledger("LISTED#").is_empty(), "it has listed");
    // What holds a cascade for weeks outlasts its list.
    bed.forget("LISTED#").await;
    bed.days_pass(1).await;
    assert!(bed.has(&subscription), "a new list waits as the first one did");
    bed.days_pass(1).await;
    assert!(!bed.has(&subscription), "it hung on a user that is gone");
    assert_eq!((bed.parked(), bed.findings()), (Vec::<String>::new(), Vec::new()));
}

// ---- What a cascade waits for ----

/// Corrupts an image of the record of this item, and handles all. Returns the true record.
async fn handled_corrupt(bed: &mut Bed, key: &Key, image: &str) -> Value {
    let mut records = bed.records();
    let is_of_key = |record: &&mut Value| {
        let keys = &record["dynamodb"]["Keys"];
        keys["PK"]["S"] == key.pk.as_str() && keys["SK"]["S"] == key.sk.as_str()
    };
    let record = records.iter_mut().find(is_of_key).unwrap();
    let whole = record.clone();
    corrupt(record, image);
    bed.handle_settled(&records).await;
    whole
}

/// The cascade of `bob` waits, and deletes the follow when the parked change is redriven.
async fn waits_for(mut bed: Bed, follow: &Key, whole: &Value) {
    removed(&mut bed, &Key::new("USER#bob", "PROFILE")).await;
    let swept = bed.a_day_passes().await;
    assert_eq!((swept.n_blocked, swept.n_begun), (1, 0));
    bed.settle().await;
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.settle().await;
    bed.days_pass(2).await;
    assert!(!bed.has(follow), "it hung on a user that is gone");
    assert_eq!(bed.findings(), Vec::<String>::new());
}

/// The mirror of a follow, by which a cascade finds it, is missing as long as the follow's record is parked.
#[tokio::test]
async fn a_cascade_waits_while_a_change_is_parked_of_what_it_finds_by_a_mirror() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    let whole = handled_corrupt(&mut bed, &follow, "NewImage").await;
    waits_for(bed, &follow, &whole).await;
}

/// Somebody deletes the mirror by hand, and the record of that is parked.
#[tokio::test]
async fn a_cascade_waits_while_a_change_is_parked_of_a_mirror_in_its_collection() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put_settled("Follow", &FOLLOW, &[]).await;
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    bed.delete(&mirror).await;
    let whole = handled_corrupt(&mut bed, &mirror, "OldImage").await;
    waits_for(bed, &follow, &whole).await;
}

/// A post is moved by a delete and a put, and the record of the put is parked.
#[tokio::test]
async fn a_cascade_waits_while_an_older_change_is_parked_that_may_be_of_its_owner() {
    let mut bed = Bed::new();
    let post = bed.put("Post", &POST, &[]).await;
    let comment = bed.put_settled("Comment", &COMMENT, &[]).await;
    bed.delete(&post).await;
    let moved = bed.put("Post", &[("AuthorId", "bob"), ("CreatedAt", "t"), ("PostId", "p")], &[]).await;
    let whole = handled_corrupt(&mut bed, &moved, "NewImage").await;
    let swept = bed.a_day_passes().await;
    assert_eq!((swept.n_blocked, swept.n_begun), (2, 0), "of the post and of its mirror");
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.settle().await;
    bed.days_pass(2).await;
    assert!(bed.has(&comment), "its post is there");
}

#[tokio::test]
async fn a_cascade_does_not_wait_for_a_parked_change_of_what_hangs_on_another_or_on_nobody() {
    let mut bed = Bed::new();
    let user = bed.put_settled("User", &[("UserId", "bob")], &[]).await;
    for (entity, fields) in
        [("Follow", &[("FollowerId", "bob"), ("FolloweeId", "eve")][..]), ("Group", &[("GroupId", "g")])]
    {
        let other = bed.put(entity, fields, &[]).await;
        handled_corrupt(&mut bed, &other, "NewImage").await;
    }
    assert_eq!(bed.parked().len(), 4, "each by each family");
    removed(&mut bed, &user).await;
    let swept = bed.a_day_passes().await;
    assert_eq!((swept.n_blocked, swept.n_begun), (0, 1));
}

/// One sweep finds the cascade held and puts an entry that is due in a second. The other sees that entry when what held the
/// cascade is gone, and both write the job. Returns what each did.
async fn two_sweeps(bed: &mut Bed, is_back: bool) -> [Swept; 2] {
    let sweep = |bed: &Bed| {
        let (engine, deadline_ms) = (bed.sweeper(), bed.deadline_ms());
        Task::new(&Gone::default(), async move { engine.sweep(|_| true, deadline_ms).await.unwrap() })
    };
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let whole = handled_corrupt(bed, &user, "NewImage").await;
    removed(bed, &user).await;
    bed.clock.advance(SETTLE_MS);
    let mut first = sweep(bed);
    bed.stops_before(&mut first, Purpose::Wait);
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    // The sweep checks a blocked cascade again after a second at the earliest.
    bed.clock.advance(1_000);
    if is_back {
        bed.put("User", &[("UserId", "ann")], &[]).await;
    }
    let mut second = sweep(bed);
    bed.stops_before(&mut second, Purpose::Wait);
    [first.finish().unwrap(), second.finish().unwrap()]
}

#[tokio::test]
async fn of_two_sweeps_at_once_none_deletes_the_entry_that_the_other_put() {
    let mut bed = Bed::new();
    let [first, second] = two_sweeps(&mut bed, false).await;
    assert_eq!((first.n_blocked, second.n_begun), (1, 0), "the job is not as the second read it");
    bed.clock.advance(1_000);
    assert_eq!(bed.sweep().await.n_begun, 1, "the cascade waits for no round over the table");
}

#[tokio::test]
async fn a_sweep_that_would_end_a_cascade_leaves_the_entry_that_another_put() {
    let mut bed = Bed::new();
    let [_, second] = two_sweeps(&mut bed, true).await;
    assert_eq!(second.n_ended, 0, "the job is not as it read it");
    assert_eq!(bed.sweep().await.n_ended, 1, "its entry is there");
}

// ---- Where nobody knows how far the functions are, the sweep goes by its own pulse, as in Lambda ----

async fn swept(bed: &Bed) -> Swept {
    bed.sweeper().sweep_by_pulse(bed.deadline_ms()).await.unwrap()
}

/// Why the jobs that wait are held.
async fn blocker(bed: &Bed) -> Vec<Blocker> {
    let engine = bed.engine();
    let all = jobs(engine.store(), &bed.schema.layout).await.unwrap();
    let mut stored: Vec<Blocker> =
        engine.blocked_jobs(&all, true, bed.deadline_ms()).await.unwrap().into_values().collect();
    stored.dedup();
    stored
}

/// Each hour the sweep runs, and the functions handle all that is there.
async fn hours_pass(bed: &mut Bed, n_hours: u64) -> usize {
    let mut n_begun = 0;
    for _ in 0..n_hours {
        bed.clock.advance(HOUR_MS);
        n_begun += swept(bed).await.n_begun;
        bed.settle().await;
    }
    n_begun
}

/// A post is moved by a delete and a put. The record of the put is in a lane of its own, whose batch fails until the stream
/// drops it; all other records, the pulses among them, are handled.
#[tokio::test]
async fn a_lane_that_is_given_up_while_the_others_handle_each_pulse_holds_a_cascade() {
    let mut bed = Bed::new();
    let post = bed.put("Post", &POST, &[("Status", "published")]).await;
    let comment = bed.put_settled("Comment", &COMMENT, &[]).await;
    swept(&bed).await;
    removed(&mut bed, &post).await;
    bed.put("Post", &[("AuthorId", "bob"), ("CreatedAt", "t"), ("PostId", "p")], &[("Status", "published")]).await;
    let lane = bed.records();
    assert_eq!((hours_pass(&mut bed, 21).await, marks(bed.engine().store()).await.unwrap()), (0, vec![]));
    bed.fails(|call| {
        let is_of_table = matches!(call, Call::Write(write) if write.table == Table::Main);
        is_of_table.then(|| (Side::Before, Fault::Throttle([0].into())))
    });
    bed.clock.advance(INVOCATION_MS + 1);
    assert!(bed.handle(&lane).await.failed_from.is_some());
    bed.fails(|_| None);
    // The event source mapping drops the record here.
    assert_eq!(hours_pass(&mut bed, 60).await, 0);
    assert!(matches!(blocker(&bed).await[..], [Blocker::PossibleLoss(_)]), "{:?}", blocker(&bed).await);
    assert!(bed.has(&comment), "its post is there");
}

/// Of what was before the first pulse nothing is known, until the settling time is over once more.
#[tokio::test]
async fn a_cascade_of_a_removal_before_the_first_pulse_waits_for_the_settling_time() {
    let mut bed = Bed::new();
    let post = bed.put("Post", &POST, &[("Status", "published")]).await;
    removed(&mut bed, &post).await;
    bed.clock.advance(30 * HOUR_MS);
    assert_eq!(swept(&bed).await.n_begun, 0);
    assert_eq!(blocker(&bed).await, [Blocker::NoPulse(0)]);
    assert_eq!(hours_pass(&mut bed, 20).await, 0);
    assert!(matches!(blocker(&bed).await[..], [Blocker::YoungPulse(_)]));
    assert_eq!(hours_pass(&mut bed, 8).await, 2);
}

#[tokio::test]
async fn a_function_that_derives_nothing_by_looking_proves_nothing_by_a_pulse() {
    let mut bed = Bed::new().running(Family::Additive);
    assert_eq!(swept(&bed).await, Swept::default());
    bed.settle().await;
    assert_eq!(bed.ledger("PULSE").len(), 0);
}

/// A post is moved by a delete and a put. The functions stop between the two, and work again when the stream has dropped the
/// record of the put: is the comment of the post there at last?
pub(crate) async fn moved_before_a_day_without_functions(mut bed: Bed) -> i64 {
    let post = bed.put("Post", &POST, &[("Status", "published")]).await;
    let comment = bed.put_settled("Comment", &COMMENT, &[]).await;
    hours_pass(&mut bed, 3).await;
    removed(&mut bed, &post).await;
    bed.put("Post", &[("AuthorId", "bob"), ("CreatedAt", "t"), ("PostId", "p")], &[("Status", "published")]).await;
    drop(bed.records());
    bed.clock.advance(30 * HOUR_MS);
    hours_pass(&mut bed, 60).await;
    i64::from(bed.has(&comment))
}
