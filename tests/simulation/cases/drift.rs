//! The sweep, slice by slice: what has drifted is reported, what is on its way is not, and counters of zero are collected.

use std::collections::BTreeSet;

use derive::{schema::Unreadable, write::Table};
use engine::{
    clock::Clock as _,
    look::listing::listed,
    registry::{Hold, RegistryWatch},
    sweep::{Bounds, Slice},
};
use expect_test::expect;
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store as _;

use crate::{
    cases::{Bed, COMMENT, comment, corrupt},
    items::{n, s},
};

/// How long an item differs before it has drifted, in milliseconds.
const WAIT_MS: u64 = 900_000;

/// A run that reads at most this many items.
async fn run(bed: &Bed, n_items_max: usize) -> Slice {
    // What an index may have missed was searched for long before.
    bed.forget("AGAIN#").await;
    let bounds = Bounds { n_items_max, deadline_ms: bed.deadline_ms() };
    let is_past = |noted_at_ms| bed.clock.now_ms() - noted_at_ms >= WAIT_MS;
    bed.sweeper().sweep_slice(bounds, is_past).await.unwrap()
}

/// A run over the whole table, which writes nothing into it.
async fn round(bed: &Bed) -> Slice {
    let before = bed.memory().snapshot(Table::Main);
    let slice = run(bed, usize::MAX).await;
    assert_eq!(bed.memory().snapshot(Table::Main), before, "the sweep reports, and mends nothing");
    assert_eq!(slice.n_items, before.len());
    slice
}

/// The drifts, one a line.
fn drifts(slice: &Slice) -> String {
    let mut lines: Vec<String> =
        slice.drifts.iter().map(|drift| format!("{}: {}\n", drift.item, drift.derivations.join(", "))).collect();
    lines.sort();
    lines.concat()
}

fn n_notes(bed: &Bed) -> usize {
    bed.ledger("SUSPECTS").len()
}

/// A table with something of everything that is level-triggered.
async fn full() -> Bed {
    let mut bed = Bed::new();
    for (id, name) in [("ann", "Ann"), ("bob", "Bob"), ("cleo", "Cleo"), ("dan", "Dan")] {
        bed.put("User", &[("UserId", id)], &[("Name", name)]).await;
    }
    for (follower, followee) in [("ann", "bob"), ("cleo", "bob"), ("dan", "ann"), ("bob", "dan")] {
        bed.put("Follow", &[("FollowerId", follower), ("FolloweeId", followee)], &[]).await;
    }
    for post in ["p", "q", "r"] {
        let key = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", post)];
        bed.put("Post", &key, &[("Status", "published"), ("Title", "x")]).await;
    }
    bed.put("Comment", &COMMENT, &[("UserId", "bob")]).await;
    bed.put("Comment", &[("PostId", "q"), ("CreatedAt", "t"), ("CommentId", "d")], &[("UserId", "bob")]).await;
    for product in ["tea", "cup"] {
        bed.put("Product", &[("ProductId", product)], &[("Category", "kitchen")]).await;
        let line = [("OrderId", "o"), ("ProductId", product)];
        bed.put("OrderItem", &line, &[("Quantity", "N:2")]).await;
    }
    bed.put("Folder", &[("FolderId", "top")], &[("Name", "top")]).await;
    for folder in ["a", "b"] {
        bed.put("Folder", &[("FolderId", folder)], &[("Name", folder), ("ParentId", "top")]).await;
    }
    bed.settle().await;
    assert_eq!(bed.findings(), [""; 0]);
    bed
}

#[tokio::test]
async fn what_a_derivation_lacks_that_is_not_filled_yet_is_no_drift() {
    let bed = full().await;
    bed.set(&Key::new("POST#p", "COMMENT#t#c"), "UserName", "by hand").await;
    bed.set(&Key::new("USER#bob", "PROFILE"), "FollowerCount", "N:9").await;
    let attached = bed.engine().watching(RegistryWatch::publishing(0, Hold::default()));
    attached.publish(bed.deadline_ms()).await.unwrap();
    round(&bed).await;
    bed.clock.advance(WAIT_MS);
    assert_eq!(drifts(&round(&bed).await), "", "nothing is filled");
    let registry = bed.engine().registry(bed.deadline_ms()).await.unwrap();
    let filled = BTreeSet::from(["follower-count-display".to_owned()]);
    let until_ms = bed.clock.now_ms();
    assert_eq!(bed.engine().mark_filled(&filled, &registry, until_ms, bed.deadline_ms()).await.unwrap(), 1);
    assert_eq!(drifts(&round(&bed).await), "USER#bob / PROFILE: follower-count-display\n");
}

#[tokio::test]
async fn what_has_drifted_is_reported_and_nothing_that_is_right() {
    let mut bed = full().await;
    for _ in 0..2 {
        assert_eq!((round(&bed).await.n_suspects, n_notes(&bed)), (0, 0), "all is right");
        bed.clock.advance(WAIT_MS);
    }
    let key = |pk: &str, sk: &str| Key::new(pk, sk);
    // A copy, a mirror that is gone, one that holds more, one whose source is gone, and two with claims.
    bed.set(&key("POST#p", "COMMENT#t#c"), "UserName", "by hand").await;
    bed.delete(&key("USER#bob", "FOLLOWER#ann")).await;
    bed.set(&key("USER#bob", "FOLLOWER#cleo"), "Note", "by hand").await;
    bed.delete(&key("USER#dan", "FOLLOWS#ann")).await;
    bed.delete(&key("POST#q", "METADATA")).await;
    bed.set(&key("POST#r", "METADATA"), "Claims", "by hand").await;
    // A display, a path and a key of an index.
    bed.set(&key("USER#bob", "PROFILE"), "FollowerCount", "N:9").await;
    bed.set(&key("FOLDER#a", "METADATA"), "Path", "by hand").await;
    bed.set(&key("PRODUCT#tea", "METADATA"), "GSI2SK", "by hand").await;
    assert_eq!(bed.records().len(), 9, "nobody is given the records");

    let first = round(&bed).await;
    assert_eq!((first.n_suspects, drifts(&first).as_str()), (11, ""), "they may be on their way");
    bed.clock.advance(WAIT_MS - 1);
    let sooner = round(&bed).await;
    assert_eq!((sooner.n_suspects, drifts(&sooner).as_str()), (0, ""));
    bed.clock.advance(1);
    let wanted = expect![[r#"
        FOLDER#a / METADATA: folder-path
        POST#p / COMMENT#t#c: comment-author
        POST#q / METADATA: post-detail, comment-count-display, post-author
        POST#r / METADATA: post-detail
        PRODUCT#tea / METADATA: best-sellers
        USER#ann / FOLLOWER#dan: follower-mirror
        USER#bob / FOLLOWER#ann: follower-mirror, follower-name
        USER#bob / FOLLOWER#cleo: follower-mirror
        USER#bob / PROFILE#COUNT#follower-count#00: follower-count, follower-mirror
        USER#bob / PROFILE: follower-count-display
        USER#dan / PROFILE#COUNT#following-count#00: following-count
    "#]];
    wanted.assert_eq(&drifts(&round(&bed).await));
    wanted.assert_eq(&drifts(&round(&bed).await));
}

#[tokio::test]
async fn one_that_comes_in_step_is_taken_off_and_one_that_differs_otherwise_waits_anew() {
    let bed = full().await;
    let comments = [Key::new("POST#p", "COMMENT#t#c"), Key::new("POST#q", "COMMENT#t#d")];
    for comment in &comments {
        bed.set(comment, "UserName", "by hand").await;
    }
    assert_eq!((round(&bed).await.n_suspects, n_notes(&bed)), (2, 2));
    bed.clock.advance(WAIT_MS);
    bed.set(&comments[0], "UserName", "Bob").await;
    bed.set(&comments[1], "UserName", "by another hand").await;
    let slice = round(&bed).await;
    assert_eq!((slice.n_suspects, drifts(&slice).as_str(), n_notes(&bed)), (1, "", 1));
    // Another change of the item does not affect the part that differs.
    bed.set(&comments[1], "Content", "edited").await;
    bed.clock.advance(WAIT_MS);
    assert_eq!(drifts(&round(&bed).await), "POST#q / COMMENT#t#d: comment-author\n");
}

/// The records of a new name and of a counter cannot be decoded. Their keys still name the items.
#[tokio::test]
async fn what_is_decided_by_an_item_of_which_a_change_is_parked_that_does_not_decode_has_not_drifted() {
    let mut bed = full().await;
    let following = counter("USER#dan", "PROFILE", "following-count");
    bed.set(&Key::new("USER#bob", "PROFILE"), "Name", "Robert").await;
    bed.set(&following, "Value", "N:7").await;
    let mut records = bed.records();
    for record in &mut records {
        corrupt(record, "NewImage");
    }
    bed.handle_settled(&records).await;
    assert_eq!(bed.parked().len(), 4, "each once by each family");
    round(&bed).await;
    bed.clock.advance(WAIT_MS);
    assert_eq!(drifts(&round(&bed).await), format!("{following}: following-count\n"), "what the two decide waits");
    bed.forget("PARKED").await;
    expect![[r#"
        POST#p / COMMENT#t#c: comment-author
        POST#q / COMMENT#t#d: comment-author
        USER#ann / FOLLOWS#bob: followee-name
        USER#cleo / FOLLOWS#bob: followee-name
        USER#dan / FOLLOWER#bob: follower-name
        USER#dan / PROFILE#COUNT#following-count#00: following-count
        USER#dan / PROFILE: following-count-display
    "#]]
    .assert_eq(&drifts(&round(&bed).await));
}

#[tokio::test]
async fn an_item_that_is_listed_since_it_cannot_be_read_has_not_drifted() {
    let bed = full().await;
    let comment = Key::new("POST#p", "COMMENT#t#c");
    bed.set(&comment, "UserName", "by hand").await;
    let unreadable = Unreadable { attribute: "UserId".to_owned(), why: "is not of type S".to_owned() };
    for (listing, wanted) in [(Some(&unreadable), String::new()), (None, format!("{comment}: comment-author\n"))] {
        let write = listed(&bed.schema.layout, "comment-author", &comment, listing, 0);
        bed.memory().write(&write).await.unwrap();
        round(&bed).await;
        bed.clock.advance(WAIT_MS);
        assert_eq!(drifts(&round(&bed).await), wanted);
    }
}

fn counter(pk: &str, sk: &str, derivation: &str) -> Key {
    CounterKey { target: Key::new(pk, sk), derivation: derivation.to_owned(), satellite: 0 }.key().unwrap()
}

#[tokio::test]
async fn a_count_has_drifted_where_its_sources_or_their_mirrors_beside_it_say_otherwise() {
    let mut bed = full().await;
    bed.put("File", &[("FolderId", "a"), ("UploadedAt", "t"), ("FileId", "f")], &[("SizeBytes", "N:7")]).await;
    bed.put_settled("Like", &[("UserId", "bob"), ("PostId", "p")], &[]).await;
    assert_eq!(round(&bed).await.n_suspects, 0);
    // Too high, without the counter, with another sum, with a satellite, of nobody, and one that cannot be read.
    bed.set(&counter("USER#ann", "PROFILE", "post-count"), "Value", "N:4").await;
    bed.delete(&counter("POST#p", "METADATA", "comment-count")).await;
    bed.set(&counter("FOLDER#a", "METADATA", "folder-totals"), "Sum", "N:8").await;
    for key in [
        CounterKey { satellite: 3, ..CounterKey::parse(&counter("USER#bob", "PROFILE", "follower-count")).unwrap() },
        CounterKey::parse(&counter("ORG#none", "METADATA", "team-count")).unwrap(),
    ] {
        bed.put_raw(&key.key().unwrap(), "Counter", [("Value", n("2"))]);
    }
    bed.set(&counter("USER#dan", "PROFILE", "following-count"), "Value", "by hand").await;
    // The likes of a post have partition keys of their users, so a drift of their count is not reported.
    let likes = bed.memory().snapshot(Table::Main).into_keys().find(|key| key.sk.contains("#COUNT#like-count#"));
    bed.set(&likes.unwrap(), "Value", "N:9").await;
    drop(bed.records());

    let wanted = expect![[r#"
        FOLDER#a / METADATA#COUNT#folder-totals#00: folder-totals
        ORG#none / METADATA#COUNT#team-count#00: team-count
        POST#p / METADATA#COUNT#comment-count#00: comment-count
        USER#ann / PROFILE#COUNT#post-count#00: post-count
        USER#bob / PROFILE#COUNT#follower-count#00: follower-count, follower-mirror
        USER#dan / PROFILE#COUNT#following-count#00: following-count
    "#]];
    let first = round(&bed).await;
    assert_eq!(drifts(&first), "", "they may be on their way");
    bed.clock.advance(WAIT_MS);
    let counts = |slice: &Slice| -> String {
        let drifts = drifts(slice);
        drifts.split_inclusive('\n').filter(|line| line.contains("#COUNT#")).collect()
    };
    wanted.assert_eq(&counts(&round(&bed).await));
    // One has a new value, and something was counted into the other since.
    bed.set(&counter("USER#ann", "PROFILE", "post-count"), "Value", "N:3").await;
    bed.put_settled("Comment", &comment("d"), &[("UserId", "bob")]).await;
    let n_reported = counts(&round(&bed).await).lines().count();
    assert_eq!(n_reported, 4);
    bed.clock.advance(WAIT_MS);
    assert!(counts(&round(&bed).await).contains("POST#p / METADATA#COUNT#comment-count#00: comment-count\n"));
}

#[tokio::test]
async fn a_key_that_its_fields_would_not_make_counts_as_absent_and_makes_no_count_drift() {
    let mut bed = Bed::new();
    bed.put("User", &[("UserId", "a%zz")], &[]).await;
    let key = bed.put("Follow", &[("FollowerId", "a%zz"), ("FolloweeId", "b%zz")], &[]).await;
    let mut other = bed.item(&key).unwrap();
    other.insert("PK".to_owned(), s("USER#a%zz"));
    bed.memory().put_raw(Table::Main, other).unwrap();
    bed.settle().await;
    assert_eq!(bed.shown(&counter(&key.pk, "PROFILE", "following-count"), "Value"), "1");
    assert_eq!((bed.findings(), round(&bed).await.n_suspects), (Vec::new(), 0));
}

#[tokio::test]
async fn a_target_with_very_many_items_is_left_to_verify() {
    let bed = Bed::new();
    let key = |id: usize| Key::new("POST#p", format!("COMMENT#t#c{id:05}"));
    for id in 0..10_200 {
        bed.put_raw(&key(id), "Comment", []);
    }
    let n_counts = || n_notes_of(&bed, "Counter#POST#p");
    run(&bed, usize::MAX).await;
    assert_eq!(n_counts(), 0);
    for id in 9_900..10_200 {
        bed.delete(&key(id)).await;
    }
    run(&bed, usize::MAX).await;
    assert_eq!(n_counts(), 1);
}

fn n_notes_of(bed: &Bed, prefix: &str) -> usize {
    let notes = bed.memory().snapshot(Table::Ledger).into_keys();
    notes.filter(|key| key.pk == "SUSPECTS" && key.sk.starts_with(prefix)).count()
}

#[tokio::test]
async fn a_collection_that_two_runs_read_is_compared_as_a_whole() {
    let mut bed = full().await;
    bed.set(&counter("USER#ann", "PROFILE", "post-count"), "Value", "N:4").await;
    drop(bed.records());
    for n_items in 1..12 {
        let mut n_suspects = 0;
        while {
            let slice = run(&bed, n_items).await;
            n_suspects += slice.n_suspects;
            slice.round_ms.is_none()
        } {}
        // The count, and the display of it.
        assert_eq!(n_suspects, if n_items == 1 { 2 } else { 0 }, "{n_items}");
    }
}

#[tokio::test]
async fn a_satellite_of_zero_goes_while_others_stay() {
    let bed = Bed::new();
    let target = Key::new("POST#p", "METADATA");
    let attributes: [&[(&str, &str)]; 6] = [
        &[("Value", "0")],
        &[("Value", "3")],
        &[],
        &[("Value", "0"), ("Sum", "0.0")],
        &[("Value", "0"), ("Sum", "0.1")],
        &[("Value", "-1")],
    ];
    for (satellite, attributes) in (0..).zip(attributes) {
        let counter = CounterKey { target: target.clone(), derivation: "like-count".to_owned(), satellite };
        let attributes = attributes.iter().map(|(name, number)| (*name, n(number)));
        bed.put_raw(&counter.key().unwrap(), "Counter", attributes);
    }
    // It has the key of a counter, and is none.
    let other = Item::from([("PK", s("POST#p")), ("SK", s("METADATA#COUNT#like-count#09")), ("Value", n("0"))]);
    bed.memory().put_raw(Table::Main, other).unwrap();
    assert_eq!(run(&bed, usize::MAX).await.n_zero_counters, 3);
    let left: Vec<String> = bed.memory().snapshot(Table::Main).into_keys().map(|key| key.sk).collect();
    let left: Vec<&str> = left.iter().filter_map(|sk| sk.rsplit('#').next()).collect();
    assert_eq!(left, ["01", "04", "05", "09"]);
}

#[tokio::test]
async fn a_round_goes_on_where_the_last_run_stopped_and_says_how_long_it_took() {
    let bed = full().await;
    bed.set(&Key::new("POST#p", "COMMENT#t#c"), "UserName", "by hand").await;
    let n_items = bed.memory().snapshot(Table::Main).len();
    for (n_before, took_ms) in [(0, 0), (1, 1)] {
        let (mut n_runs, mut n_read, mut n_suspects, mut round_ms) = (0, 0, 0, None);
        while round_ms.is_none() {
            let slice = run(&bed, 4).await;
            assert!(slice.n_items <= 4, "{slice:?}");
            bed.clock.advance(1_000);
            (n_runs, n_read, n_suspects) = (n_runs + 1, n_read + slice.n_items, n_suspects + slice.n_suspects);
            round_ms = slice.round_ms;
        }
        assert_eq!((n_read, n_suspects), (n_items, 1 - n_before), "each item once, and noted once");
        // A round begins when the last one ends.
        assert_eq!(round_ms, Some((n_runs - 1 + took_ms) * 1_000));
    }
}

#[tokio::test]
async fn suspects_are_looked_at_again_a_few_a_run_and_all_in_turn() {
    let bed = Bed::new();
    let mut comments = Vec::new();
    for id in ["a", "b", "c", "d", "e"] {
        comments.push(bed.put("Comment", &comment(id), &[("UserName", "by hand")]).await);
    }
    assert_eq!(run(&bed, usize::MAX).await.n_suspects, 6);
    comments.push(counter("POST#p", "METADATA", "comment-count"));
    bed.clock.advance(WAIT_MS);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let slice = run(&bed, 2).await;
        assert!(slice.drifts.len() <= 2, "{slice:?}");
        seen.extend(slice.drifts.into_iter().map(|drift| drift.item));
    }
    assert_eq!(seen, comments);
}
