//! Reads that DynamoDB refuses: the record on whose behalf the item is read is parked, and everything beside it goes on.

use derive::{family::Family, query::Query};
use keys::key::Key;
use operate::verify::{AtRest, VerifyEvent};
use store::faulty::{Call, Fault, Side};

use crate::cases::{bed::Bed, verification::verified};

const USERS: [&str; 5] = ["ann", "bob", "cleo", "dan", "eve"];

/// Reads of this item are refused, alone or beside others.
fn refuse_item(bed: &Bed, refused: &Key) {
    let refused = refused.clone();
    bed.fails(move |call| {
        let is_it = matches!(call, Call::Get(_, keys) if keys.contains(&refused));
        is_it.then_some((Side::Before, Fault::Refused))
    });
}

/// Queries of this kind are refused.
fn refuse_query(bed: &Bed, is_refused: impl Fn(&Query) -> bool + Send + 'static) {
    bed.fails(move |call| {
        let is_it = matches!(call, Call::Query(_, query) if is_refused(query));
        is_it.then_some((Side::Before, Fault::Refused))
    });
}

/// Each of the users follows somebody.
async fn follows(bed: &mut Bed) -> Vec<serde_json::Value> {
    for user in USERS {
        bed.put("Follow", &[("FollowerId", user), ("FolloweeId", "zoe")], &[]).await;
    }
    bed.records()
}

fn mirror(user: &str) -> Key {
    Key::new("USER#zoe", format!("FOLLOWER#{user}"))
}

#[tokio::test]
async fn an_item_that_cannot_be_read_is_parked_and_its_neighbours_are_written() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    let records = follows(&mut bed).await;
    refuse_item(&bed, &mirror("cleo"));
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from, None);
    assert_eq!(bed.parked(), ["PARKED#level-triggered / 00000000000000000000000000000003#00"]);
    let cause = &handled.account.parked[0].cause;
    assert!(cause.starts_with("BatchGetItem on USER#zoe / FOLLOWER#cleo: refused"), "{cause}");
    for user in USERS {
        assert_eq!(!bed.shown(&mirror(user), "EntityType").is_empty(), user != "cleo", "{user}");
    }
    bed.fails(|_| None);
    bed.redrive_all().await;
    bed.settle().await;
    assert_eq!((bed.shown(&mirror("cleo"), "EntityType").as_str(), bed.parked().len()), ("Follower", 0));
}

#[tokio::test]
async fn a_source_that_cannot_be_read_parks_what_is_derived_from_it_and_nothing_else() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    for user in USERS {
        bed.put("User", &[("UserId", user)], &[("Name", user)]).await;
    }
    bed.settle().await;
    let comments = ["cleo", "ann"].map(|user| (user, [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", user)]));
    let mut keys = Vec::new();
    for (user, fields) in &comments {
        keys.push(bed.put("Comment", fields, &[("UserId", user)]).await);
    }
    let records = bed.records();
    refuse_item(&bed, &Key::new("USER#cleo", "PROFILE"));
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.parked().len()), (None, 1), "{:?}", bed.parked());
    assert_eq!(handled.account.parked[0].position.0, 0);
    assert_eq!(keys.iter().map(|key| bed.shown(key, "UserName")).collect::<Vec<_>>(), ["", "ann"]);
}

#[tokio::test]
async fn an_item_to_list_that_cannot_be_read_holds_up_no_other() {
    let mut bed = Bed::new();
    let mut keys = Vec::new();
    for id in ["c", "d", "e"] {
        let fields = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", id)];
        keys.push(bed.put("Comment", &fields, &[("UserId", "N:7")]).await);
    }
    let records = bed.records();
    let is_list = keys[1].clone();
    let mut n_gets = 0;
    // Lists come first; the looks that follow are not refused.
    bed.fails(move |call| {
        let is_it = matches!(call, Call::Get(_, keys) if keys.contains(&is_list));
        n_gets += usize::from(is_it);
        (is_it && n_gets < 4).then_some((Side::Before, Fault::Refused))
    });
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.parked().len()), (None, 1), "{:?}", bed.parked());
    let mut listed: Vec<&Key> = handled.account.unreadable.iter().map(|listed| &listed.key).collect();
    listed.dedup();
    assert_eq!(listed, [&keys[0], &keys[2]]);
}

#[tokio::test]
async fn a_search_that_is_refused_parks_the_change_that_asks_for_it_and_no_other() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    for user in ["ann", "bob"] {
        bed.put("User", &[("UserId", user)], &[("Name", user)]).await;
        let fields = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", user)];
        bed.put("Comment", &fields, &[("UserId", user)]).await;
    }
    bed.settle().await;
    for user in ["ann", "bob"] {
        bed.set(&Key::new(format!("USER#{user}"), "PROFILE"), "Name", "new").await;
    }
    let records = bed.records();
    refuse_query(&bed, |query| query.index.is_some() && query.pk.contains("ann"));
    let handled = bed.handle(&records).await;
    assert_eq!(
        (handled.failed_from, bed.parked()),
        (None, vec!["PARKED#level-triggered / 00000000000000000000000000000007#00".to_owned()])
    );
    bed.fails(|_| None);
    bed.settle().await;
    let name = |user: &str| bed.shown(&Key::new("POST#p", format!("COMMENT#t#{user}")), "UserName");
    assert_eq!((name("ann"), name("bob")), ("ann".to_owned(), "new".to_owned()));
    bed.redrive_all().await;
    assert_eq!(name("ann"), "new");
}

#[tokio::test]
async fn a_verification_reports_what_cannot_be_read_and_decides_about_the_rest() {
    let mut bed = Bed::new();
    follows(&mut bed).await;
    bed.settle().await;
    for user in ["ann", "cleo"] {
        bed.delete(&mirror(user)).await;
    }
    refuse_item(&bed, &mirror("cleo"));
    let (events, _) = verified(&bed, &AtRest).await;
    let unreadable = events.iter().any(|event| {
        matches!(event, VerifyEvent::Unreadable(it) if it.sk == "FOLLOWER#cleo" && it.why.contains("cannot be read"))
    });
    let found = events.iter().any(|event| matches!(event, VerifyEvent::Finding(it, _) if it.sk == "FOLLOWER#ann"));
    assert!(unreadable && found, "{events:?}");
}
