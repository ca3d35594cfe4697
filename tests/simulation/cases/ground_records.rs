//! Cascades and the organization chart, record by record.

use std::collections::HashMap;

use derive::{
    guard::Purpose,
    write::{ITEM_BYTES_MAX, Table},
};
use engine::{
    clock::Clock as _,
    jobs::ground::sweep::Swept,
    ledger::LedgerKind,
    loss::{POSSIBLE_LOSS_MS, clear, marks},
    record::event::Lane,
    redrive::replay::Origin,
};
use keys::{job::JobKey, key::Key, size::item_bytes};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use support::record::STREAM_ARN;

use crate::{
    cases::bed::{Bed, MET, SHARD},
    items::s,
};

/// Longer than a cascade waits, in milliseconds.
const SETTLED_MS: u64 = 26 * 3_600 * 1_000;

/// Longer than the ledger is sure of, in milliseconds.
const BEHIND_HORIZON_MS: u64 = 15 * 24 * 3_600 * 1_000;

const POST: [(&str, &str); 3] = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];
const COMMENT: [(&str, &str); 3] = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];

fn is_there(bed: &Bed, key: &Key) -> bool {
    bed.memory().snapshot(Table::Main).contains_key(key)
}

fn n_jobs(bed: &Bed) -> usize {
    bed.memory().snapshot(Table::Main).keys().filter(|key| JobKey::parse(key).is_some()).count()
}

/// A day passes, and the jobs that are due begin.
async fn a_day_passes(bed: &Bed) -> Swept {
    bed.clock.advance(SETTLED_MS);
    bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap()
}

/// The due jobs list what belongs to the owner, wait once more, and end.
pub(super) async fn two_days_pass(bed: &mut Bed) {
    for _ in 0..2 {
        a_day_passes(bed).await;
        bed.settle().await;
    }
}

/// A post with a comment is removed. Returns the records and the comment's key.
async fn removed_post(bed: &mut Bed) -> (Vec<Value>, Key) {
    let post = bed.put("Post", &POST, &[("Status", "published")]).await;
    let comment = bed.put("Comment", &COMMENT, &[]).await;
    bed.settle().await;
    bed.delete(&post).await;
    let mut records = bed.records();
    bed.handle(&records).await;
    let mirrors = bed.records();
    bed.handle(&mirrors).await;
    records.extend(mirrors);
    (records, comment)
}

#[tokio::test]
async fn a_removal_that_is_delivered_again_or_replayed_starts_no_second_job() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let mut bed = Bed::new().under(ledger);
        let (records, comment) = removed_post(&mut bed).await;
        assert_eq!(n_jobs(&bed), 2, "one of the post, one of its mirror");
        bed.handle(&records).await;
        assert_eq!(n_jobs(&bed), 2);
        assert!(is_there(&bed, &comment), "the job waits");
        assert_eq!(a_day_passes(&bed).await.n_begun, 2);
        bed.settle().await;
        assert!(is_there(&bed, &comment), "it is listed");
        assert_eq!(a_day_passes(&bed).await.n_begun, 2);
        bed.settle().await;
        assert_eq!((is_there(&bed, &comment), n_jobs(&bed)), (false, 0), "{ledger}");

        let later = bed.put("Comment", &COMMENT, &[]).await;
        bed.settle().await;
        bed.handle(&records).await;
        let lane = Lane { stream_arn: Some(STREAM_ARN.to_owned()), shard: Some(SHARD.to_owned()) };
        let origin = Origin { lane, was_given_up: false };
        bed.engine().replay(&bed.event(&records), &origin, bed.deadline_ms()).await.unwrap();
        two_days_pass(&mut bed).await;
        assert!(is_there(&bed, &later), "{ledger}: it came later without its post, and is an ordinary item");
        assert_eq!(n_jobs(&bed), 0);
    }
}

/// Each deletion checks that the owner is absent, and two transactions that check one item at once conflict.
#[tokio::test]
async fn deletions_under_one_owner_do_not_meet() {
    let mut bed = Bed::new().conflicting();
    removed_post(&mut bed).await;
    for n in 0..100 {
        let comment = format!("c{n}");
        bed.put("Comment", &[("PostId", "p"), ("CreatedAt", "t"), ("CommentId", &comment)], &[]).await;
    }
    bed.settle().await;
    bed.calls();
    two_days_pass(&mut bed).await;
    let (met, deleted): (Vec<String>, Vec<String>) = bed.calls().into_iter().partition(|call| call.ends_with(MET));
    let n_deleted: usize = deleted.iter().map(|call| call.matches("delete POST#p / COMMENT#").count()).sum();
    assert_eq!((n_deleted, met), (101, vec![]), "comments");
}

/// Posts come back under another key and are liked before their mirrors exist again.
#[tokio::test]
async fn what_is_written_after_a_post_came_back_under_another_key_is_not_deleted() {
    for is_listed_before in [true, false] {
        let mut bed = Bed::new();
        let fields = |id: &'static str, at: &'static str| [("AuthorId", "ann"), ("CreatedAt", at), ("PostId", id)];
        for id in ["p", "q", "r"] {
            let post = bed.put("Post", &fields(id, "t"), &[]).await;
            bed.settle().await;
            bed.delete(&post).await;
            bed.settle().await;
        }
        if is_listed_before {
            a_day_passes(&bed).await;
            bed.settle().await;
        } else {
            bed.clock.advance(SETTLED_MS);
        }
        let mut likes = Vec::new();
        for id in ["p", "q", "r"] {
            bed.put("Post", &fields(id, "u"), &[]).await;
            likes.push(bed.put("Like", &[("UserId", "bob"), ("PostId", id)], &[]).await);
        }
        // The functions lag: they have only the jobs' records, not yet those of the posts and the likes.
        let later = bed.records();
        a_day_passes(&bed).await;
        bed.settle().await;
        assert_eq!(likes.iter().filter(|like| is_there(&bed, like)).count(), 3, "before the mirrors");
        bed.handle(&later).await;
        bed.settle().await;
        a_day_passes(&bed).await;
        bed.settle().await;
        assert_eq!((likes.iter().filter(|like| is_there(&bed, like)).count(), n_jobs(&bed)), (3, 0));
        assert_eq!(bed.findings(), [""; 0]);
    }
}

#[tokio::test]
async fn what_was_changed_since_it_was_listed_stays() {
    let mut bed = Bed::new();
    let (_, comment) = removed_post(&mut bed).await;
    let other = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "d")];
    let unchanged = bed.put("Comment", &other, &[]).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    bed.settle().await;
    assert!(is_there(&bed, &comment), "it is listed");
    bed.set(&comment, "Text", "edited").await;
    let later = bed.put("Comment", &[("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "e")], &[]).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    bed.settle().await;
    assert_eq!([&comment, &unchanged, &later].map(|key| is_there(&bed, key)), [true, false, true]);
    assert_eq!(n_jobs(&bed), 0);
}

/// The application adds an attribute between the look at an item and its deletion.
#[tokio::test]
async fn what_is_given_an_attribute_while_it_is_deleted_stays() {
    let mut bed = Bed::new();
    let (_, comment) = removed_post(&mut bed).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    let begun = bed.records();
    let mut deleting = bed.start(&bed.event(&begun));
    bed.stops_before(&mut deleting, Purpose::StillTheirs);
    bed.set(&comment, "Text", "edited").await;
    assert!(deleting.finish().is_some());
    bed.settle().await;
    assert!(is_there(&bed, &comment));
    assert_eq!(n_jobs(&bed), 0);
}

/// A table for each entity, with a number as the owner's key.
const BY_NUMBER: &str = r#"
    [tables.Author]
    partition-key = { name = "id", type = "N" }

    [tables.Book]
    partition-key = "id"

    [tables.Book.index.byAuthor]
    partition-key = { name = "authorId", type = "N" }

    [entity.Author]
    table = "Author"

    [entity.Book]
    table = "Book"
    attributes = ["authorId"]

    [derivation.books-of-a-removed-author]
    kind = "cascade"
    owner = "Author"
    hanging = [{ entity = "Book", index = "byAuthor", by = { authorId = "id" }, only-if = { authorId = "id" } }]
"#;

#[tokio::test]
async fn what_names_its_owner_by_a_number_goes_with_it() {
    let (schema, catalogue) = manifest::load(BY_NUMBER).unwrap();
    let mut bed = Bed::with(schema, catalogue);
    let author = bed.put("Author", &[("id", "-3")], &[]).await;
    let mut books = Vec::new();
    for (id, author) in [("a", "N:-3"), ("b", "N:4")] {
        books.push(bed.put("Book", &[("id", id)], &[("authorId", author)]).await);
    }
    bed.settle().await;
    bed.delete(&author).await;
    bed.settle().await;
    two_days_pass(&mut bed).await;
    assert_eq!(books.iter().map(|key| is_there(&bed, key)).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn a_removal_from_behind_the_horizon_starts_no_job() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let subscription = bed.put("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    let records = bed.records();
    bed.clock.advance(BEHIND_HORIZON_MS);
    bed.handle(&records).await;
    assert_eq!((n_jobs(&bed), is_there(&bed, &subscription)), (0, true));
}

#[tokio::test]
async fn a_cascade_ends_when_the_owner_comes_back_in_the_middle_of_it() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let mut subscriptions = Vec::new();
    for id in 0..30 {
        let id = format!("s{id:02}");
        subscriptions.push(bed.put("Subscription", &[("UserId", "ann"), ("SubscriptionId", &id)], &[]).await);
    }
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    let begun = bed.records();
    bed.handle(&begun).await;
    let n_left = |bed: &Bed| subscriptions.iter().filter(|key| is_there(bed, key)).count();
    let n_after_a_page = n_left(&bed);
    assert!(n_after_a_page > 0 && n_after_a_page < 30, "{n_after_a_page}");
    bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.settle().await;
    assert_eq!((n_left(&bed), n_jobs(&bed)), (n_after_a_page, 0));
    assert_eq!(bed.findings(), [""; 0]);
}

#[tokio::test]
async fn a_job_whose_owner_is_back_before_its_time_ends_without_a_look_at_anything() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.settle().await;
    let swept = a_day_passes(&bed).await;
    assert_eq!((swept.n_begun, swept.n_ended, n_jobs(&bed)), (0, 1, 0));
}

#[tokio::test]
async fn a_claim_that_was_given_to_somebody_else_stays_and_ones_own_goes_however_it_was_written() {
    let mut bed = Bed::new();
    for (id, email) in [("ann", " Ann@X.org"), ("bob", "bob@x.org")] {
        let user = bed.put("User", &[("UserId", id)], &[("Email", email)]).await;
        let address = email.trim().to_lowercase();
        bed.put("EmailClaim", &[("Email", &address)], &[("UserId", id)]).await;
        bed.settle().await;
        bed.delete(&user).await;
    }
    bed.settle().await;
    let given = bed.put("EmailClaim", &[("Email", "bob@x.org")], &[("UserId", "cleo")]).await;
    two_days_pass(&mut bed).await;
    assert!(is_there(&bed, &given));
    assert!(!is_there(&bed, &Key::new("EMAIL#ann@x.org", "CLAIM")));
}

#[tokio::test]
async fn an_item_that_is_none_of_ours_is_not_deleted_where_one_hung() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    bed.settle().await;
    a_day_passes(&bed).await;
    let begun = bed.records();
    // The mirror that leads to the follow still exists, and the follow has another type.
    bed.set(&follow, "EntityType", "Gadget").await;
    bed.handle(&begun).await;
    bed.settle().await;
    assert_eq!(bed.shown(&follow, "EntityType"), "Gadget");
}

#[tokio::test]
async fn a_cascade_waits_while_an_older_change_is_parked_that_may_be_of_its_owner() {
    let mut bed = Bed::new();
    let [old, new] = ["ann", "bob"].map(|author| [("AuthorId", author), ("CreatedAt", "t"), ("PostId", "p")]);
    let post = bed.put("Post", &old, &[]).await;
    let comment = bed.put("Comment", &COMMENT, &[]).await;
    bed.settle().await;
    bed.delete(&post).await;
    bed.put("Post", &new, &[]).await;
    let mut records = bed.records();
    let whole = records[1].clone();
    records[1]["dynamodb"]["NewImage"] = serde_json::json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    bed.settle().await;
    let swept = a_day_passes(&bed).await;
    assert_eq!((swept.n_held, swept.n_begun, n_jobs(&bed)), (2, 0, 2), "of the post and of its mirror");
    bed.put_true(&whole.to_string());
    bed.redrive_all().await;
    bed.settle().await;
    two_days_pass(&mut bed).await;
    assert!(is_there(&bed, &comment), "its post is there");
}

#[tokio::test]
async fn a_cascade_does_not_wait_for_a_parked_change_of_something_else() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    bed.put("Group", &[("GroupId", "g")], &[]).await;
    let mut records = bed.records();
    records[1]["dynamodb"]["NewImage"] = serde_json::json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    assert_eq!(bed.parked().len(), 2);
    bed.delete(&user).await;
    bed.settle().await;
    let swept = a_day_passes(&bed).await;
    assert_eq!((swept.n_held, swept.n_begun), (0, 1));
}

/// A post is moved by a delete and a put, and the put is lost: its mapping was off for longer than the stream keeps records.
#[tokio::test]
async fn a_cascade_waits_while_changes_may_be_lost() {
    let mut bed = Bed::new();
    let [old, new] = ["ann", "bob"].map(|author| [("AuthorId", author), ("CreatedAt", "t"), ("PostId", "p")]);
    let post = bed.put("Post", &old, &[("Status", "published")]).await;
    let comment = bed.put("Comment", &COMMENT, &[]).await;
    bed.settle().await;
    bed.delete(&post).await;
    bed.settle().await;
    bed.put("Post", &new, &[("Status", "published")]).await;
    let lost = bed.records();
    bed.clock.advance(POSSIBLE_LOSS_MS);
    bed.put("Group", &[("GroupId", "g")], &[]).await;
    let mut late = bed.records();
    late[0]["dynamodb"]["ApproximateCreationDateTime"] = ((bed.clock.now_ms() - POSSIBLE_LOSS_MS) / 1_000).into();
    bed.handle(&late).await;
    for _ in 0..3 {
        let swept = a_day_passes(&bed).await;
        assert_eq!((swept.n_begun, is_there(&bed, &comment)), (0, true), "{swept:?}");
        assert!(swept.n_held > 0, "{swept:?}");
    }
    // The missing mirror is found and mended, and a verify takes the mark away.
    bed.handle(&lost).await;
    bed.settle().await;
    let engine = bed.engine();
    for mark in marks(engine.store()).await.unwrap() {
        assert!(clear(engine.store(), &mark).await.unwrap());
    }
    two_days_pass(&mut bed).await;
    assert!(is_there(&bed, &comment), "its post is there");
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
    let mut item = bed.schema.layout.key_item(&detail);
    item.insert("EntityType".to_owned(), s("PostDetail"));
    item.insert("Claims".to_owned(), AttributeValue::L((0..120).map(claim).collect()));
    bed.memory().put_raw(Table::Main, item).unwrap();
    bed.delete(&detail).await;
    bed.settle().await;
    two_days_pass(&mut bed).await;
    assert!(is_there(&bed, &comment));
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
    let n_bytes = ITEM_BYTES_MAX - item_bytes(&bed.memory().snapshot(Table::Main)[&large]) - "Padding".len();
    bed.set(&large, "Padding", &"x".repeat(n_bytes)).await;
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    two_days_pass(&mut bed).await;
    assert_eq!(small.each_ref().map(|post| bed.shown(post, "Status")), ["archived", "archived"]);
    assert_eq!(bed.shown(&large, "Status"), "");
    // Its mirror is too large as well.
    let parked = bed.parked();
    assert!(parked.iter().all(|parked| parked.contains("level-triggered")) && !parked.is_empty(), "{parked:?}");
}

/// Puts an employee with this manager.
async fn hire(bed: &Bed, id: &str, manager: Option<&str>) -> Key {
    let manager: Vec<(&str, &str)> = manager.map(|manager| ("ManagerId", manager)).into_iter().collect();
    bed.put("Employee", &[("OrgId", "o"), ("EmployeeId", id)], &manager).await
}

/// The paths of the chart.
fn chart(bed: &Bed) -> Vec<String> {
    let items = bed.memory().snapshot(Table::Main);
    items.keys().filter_map(|key| key.sk.strip_prefix("EMP#")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_team_follows_its_manager_in_the_chart() {
    let mut bed = Bed::new();
    for (id, manager) in [("ceo", None), ("vp", Some("ceo")), ("cto", Some("ceo")), ("dev", Some("vp"))] {
        hire(&bed, id, manager).await;
    }
    hire(&bed, "junior", Some("dev")).await;
    bed.settle().await;
    assert_eq!(chart(&bed), ["/ceo", "/ceo/cto", "/ceo/vp", "/ceo/vp/dev", "/ceo/vp/dev/junior"]);
    let vp = hire(&bed, "vp", Some("cto")).await;
    bed.settle().await;
    assert_eq!(chart(&bed), ["/ceo", "/ceo/cto", "/ceo/cto/vp", "/ceo/cto/vp/dev", "/ceo/cto/vp/dev/junior"]);
    assert_eq!((bed.shown(&vp, "Path"), bed.findings()), ("/ceo/cto/vp".to_owned(), Vec::new()));
}

#[tokio::test]
async fn an_employee_whose_manager_comes_later_is_in_the_chart_then() {
    let mut bed = Bed::new();
    hire(&bed, "dev", Some("vp")).await;
    bed.settle().await;
    assert_eq!((chart(&bed), bed.findings()), (Vec::new(), Vec::new()));
    let vp = hire(&bed, "vp", None).await;
    bed.settle().await;
    assert_eq!(chart(&bed), ["/vp", "/vp/dev"]);
    bed.delete(&vp).await;
    bed.settle().await;
    assert_eq!((chart(&bed), bed.findings()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn employees_in_a_loop_are_in_no_chart_and_are_findings_until_it_is_broken() {
    let mut bed = Bed::new();
    let boss = hire(&bed, "a", None).await;
    hire(&bed, "b", Some("a")).await;
    hire(&bed, "c", Some("b")).await;
    bed.settle().await;
    assert_eq!((chart(&bed).len(), bed.findings()), (3, Vec::new()));
    hire(&bed, "a", Some("b")).await;
    bed.settle().await;
    assert_eq!((chart(&bed), bed.shown(&boss, "Path")), (Vec::new(), String::new()));
    assert_eq!(
        bed.findings(),
        ["employee-path: ORG#o / EMPLOYEE#a", "employee-path: ORG#o / EMPLOYEE#b"],
        "and not those below the loop"
    );
    hire(&bed, "a", None).await;
    bed.settle().await;
    assert_eq!((chart(&bed).len(), bed.findings()), (3, Vec::new()));
}

#[tokio::test]
async fn a_chart_item_that_a_hand_made_goes_and_one_that_a_hand_deleted_comes_back() {
    let mut bed = Bed::new();
    hire(&bed, "a", None).await;
    bed.put("OrgChart", &[("OrgId", "o"), ("Path", "/gone/b")], &[("EmployeeId", "b")]).await;
    bed.settle().await;
    assert_eq!(chart(&bed), ["/a"]);
    bed.delete(&Key::new("ORG#o", "EMP#/a")).await;
    bed.settle().await;
    assert_eq!((chart(&bed), bed.findings()), (vec!["/a".to_owned()], Vec::new()));
}
