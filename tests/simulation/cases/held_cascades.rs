//! What a cascade waits for, and two sweeps that look at a waiting cascade at once.

use derive::{guard::Purpose, write::Table};
use engine::{batch::SETTLE_MS, jobs::ground::sweep::Swept};
use keys::key::Key;
use serde_json::{Value, json};

use crate::{
    cases::bed::Bed,
    executor::{Gone, Task},
};

/// Longer than a cascade waits, in milliseconds.
const SETTLED_MS: u64 = 26 * 3_600 * 1_000;

/// So soon a cascade that is held is looked at again at the earliest, in milliseconds.
const HELD_MS_MIN: u64 = 1_000;

fn is_there(bed: &Bed, key: &Key) -> bool {
    bed.memory().snapshot(Table::Main).contains_key(key)
}

async fn a_day_passes(bed: &mut Bed) -> Swept {
    bed.clock.advance(SETTLED_MS);
    let swept = bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap();
    bed.settle().await;
    swept
}

/// Corrupts an image of the record of this item, and handles all. Returns the true record.
async fn handled_corrupt(bed: &mut Bed, key: &Key, image: &str) -> Value {
    let mut records = bed.records();
    let is_of_key = |record: &&mut Value| {
        let keys = &record["dynamodb"]["Keys"];
        keys["PK"]["S"] == key.pk.as_str() && keys["SK"]["S"] == key.sk.as_str()
    };
    let record = records.iter_mut().find(is_of_key).unwrap();
    let whole = record.clone();
    record["dynamodb"][image] = json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    bed.settle().await;
    whole
}

/// The cascade of `bob` waits, and deletes the follow when the parked change is redriven.
async fn waits_for(mut bed: Bed, follow: &Key, whole: &Value) {
    bed.delete(&Key::new("USER#bob", "PROFILE")).await;
    bed.settle().await;
    let swept = a_day_passes(&mut bed).await;
    assert_eq!((swept.n_held, swept.n_begun), (1, 0));
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.settle().await;
    for _ in 0..2 {
        a_day_passes(&mut bed).await;
    }
    assert!(!is_there(&bed, follow), "it hung on a user that is gone");
    assert_eq!(bed.findings(), Vec::<String>::new());
}

/// The mirror of a follow, by which a cascade finds it, is missing as long as the follow's record is parked.
#[tokio::test]
async fn a_cascade_waits_while_a_change_is_parked_of_what_it_finds_by_a_mirror() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    let whole = handled_corrupt(&mut bed, &follow, "NewImage").await;
    waits_for(bed, &follow, &whole).await;
}

/// Somebody deletes the mirror by hand, and the record of that is parked.
#[tokio::test]
async fn a_cascade_waits_while_a_change_is_parked_of_a_mirror_in_its_collection() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    bed.delete(&mirror).await;
    let whole = handled_corrupt(&mut bed, &mirror, "OldImage").await;
    waits_for(bed, &follow, &whole).await;
}

#[tokio::test]
async fn a_cascade_does_not_wait_for_a_parked_change_of_what_hangs_on_another() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "bob")], &[]).await;
    let other = bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "eve")], &[]).await;
    handled_corrupt(&mut bed, &other, "NewImage").await;
    bed.delete(&Key::new("USER#bob", "PROFILE")).await;
    bed.settle().await;
    let swept = a_day_passes(&mut bed).await;
    assert_eq!((swept.n_held, swept.n_begun), (0, 1));
}

fn sweep(bed: &Bed) -> Task<Swept> {
    let (engine, deadline_ms) = (bed.sweeper(), bed.deadline_ms());
    Task::new(&Gone::default(), async move { engine.sweep(|_| true, deadline_ms).await.unwrap() })
}

/// One sweep finds the cascade held and puts an entry that is due in a second. The other sees that entry when what held the
/// cascade is gone, and both write the job.
#[tokio::test]
async fn of_two_sweeps_at_once_none_deletes_the_entry_that_the_other_put() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let whole = handled_corrupt(&mut bed, &user, "NewImage").await;
    bed.delete(&user).await;
    bed.settle().await;
    bed.clock.advance(SETTLE_MS);
    let mut first = sweep(&bed);
    bed.stops_before(&mut first, Purpose::Wait);
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.clock.advance(HELD_MS_MIN);
    let mut second = sweep(&bed);
    bed.stops_before(&mut second, Purpose::Wait);
    assert_eq!(first.finish().unwrap().n_held, 1);
    assert_eq!(second.finish().unwrap().n_begun, 0, "the job is not as it read it");
    bed.clock.advance(HELD_MS_MIN);
    let swept = bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap();
    assert_eq!(swept.n_begun, 1, "the cascade waits for no round over the table: {swept:?}");
}

/// The same where the other sweep finds that the owner exists again, and the owner is gone once more by the next sweep.
#[tokio::test]
async fn a_sweep_that_would_end_a_cascade_leaves_the_entry_that_another_put() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let whole = handled_corrupt(&mut bed, &user, "NewImage").await;
    bed.delete(&user).await;
    bed.settle().await;
    bed.clock.advance(SETTLE_MS);
    let mut first = sweep(&bed);
    bed.stops_before(&mut first, Purpose::Wait);
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.clock.advance(HELD_MS_MIN);
    bed.put("User", &[("UserId", "ann")], &[]).await;
    let mut second = sweep(&bed);
    bed.stops_before(&mut second, Purpose::Wait);
    first.finish();
    assert_eq!(second.finish().unwrap().n_ended, 0, "the job is not as it read it");
    let swept = bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap();
    assert_eq!(swept.n_ended, 1, "its entry is there: {swept:?}");
}

#[tokio::test]
async fn a_cascade_whose_list_has_expired_lists_again_and_deletes_what_hangs() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let subscription = bed.put("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    a_day_passes(&mut bed).await;
    assert!(!bed.ledger("LISTED#").is_empty(), "it has listed");
    // What holds a cascade for weeks outlasts its list.
    bed.forget("LISTED#").await;
    a_day_passes(&mut bed).await;
    assert!(is_there(&bed, &subscription), "a new list waits as the first one did");
    a_day_passes(&mut bed).await;
    assert!(!is_there(&bed, &subscription), "it hung on a user that is gone");
    assert_eq!((bed.parked(), bed.findings()), (Vec::<String>::new(), Vec::new()));
}
