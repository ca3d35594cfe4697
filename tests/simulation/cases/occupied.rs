//! Items of the application under the keys of derived items: they stay, are reported, and the derived item waits.

use derive::{
    guard::Purpose,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use serde_json::Value;
use store::{
    Store as _,
    faulty::{Call, Fault, Side},
};

use crate::{cases::bed::Bed, executor::now, items::s};

const FOLLOW: [(&str, &str); 2] = [("follower", "ann"), ("followee", "bob")];

/// Users, follows with their mirrors, orders, and an item for each status of a user's orders; with a type attribute or
/// without one. The key of a profile's note may be that of a mirror where items say what they are.
fn bed(has_type: bool) -> Bed {
    let of_type = if has_type { "type = \"Kind\"" } else { "" };
    let (schema, catalogue) = manifest::load(&format!(
        r##"
        [table]
        partition-key = "pk"
        sort-key = "sk"
        {of_type}
        [entity.User]
        partition-key = "USER#{{id}}"
        sort-key = "PROFILE"
        [entity.Follow]
        partition-key = "USER#{{follower}}"
        sort-key = "FOLLOWS#{{followee}}"
        attributes = ["since"]
        [entity.Follower]
        partition-key = "USER#{{followee}}"
        sort-key = "FOLLOWER#{{follower}}"
        derived = true
        [entity.Order]
        partition-key = "USER#{{user}}"
        sort-key = "ORDER#{{order}}"
        attributes = ["status"]
        [entity.OrderStatus]
        partition-key = "USER#{{user}}"
        sort-key = "STATUS#{{status}}"
        derived = true
        derived-attributes = ["orders"]
        [derivation.followers]
        kind = "mirror"
        from = "Follow"
        to = "Follower"
        [derivation.by-status]
        kind = "count"
        from = "Order"
        into = "OrderStatus.orders"
        creates = true
        "##
    ))
    .unwrap();
    Bed::with(schema, catalogue)
}

/// A note of the application under this key; without a type where there is `None`.
fn note(bed: &Bed, key: &Key, kind: Option<&str>) -> Item {
    let mut note = bed.schema.layout.key_item(key);
    note.extend(kind.and_then(|kind| bed.schema.layout.type_of(kind)));
    note.insert("text", s("precious"));
    let write = Write { table: Table::Main, key: key.clone(), action: Action::Put(note.clone()), guard: None };
    now(bed.memory().write(&write)).unwrap();
    note
}

fn item(bed: &Bed, key: &Key) -> Option<Item> {
    bed.memory().snapshot(Table::Main).remove(key)
}

/// The names of the derivations for which an item is listed; not of the items that no derivation can read.
fn listed(bed: &Bed) -> Vec<String> {
    let entries = bed.ledger("UNREADABLE");
    let names = entries.iter().filter_map(|entry| Some(text(entry, "Derivation")?.to_owned()));
    names.filter(|name| name != "*").collect()
}

#[tokio::test]
async fn an_applications_item_stays_under_a_derived_key_and_the_derived_item_waits() {
    // A type that nobody declared, no type, and that of a declared entity; in a table without types, no mark of Ripple's.
    for (has_type, kind) in [(true, Some("Note")), (true, None), (true, Some("User")), (false, None)] {
        for is_first in [true, false] {
            let mut bed = bed(has_type);
            let mirror = Key::new("USER#bob", "FOLLOWER#ann");
            let status = Key::new("USER#ann", "STATUS#paid");
            let keys = [&mirror, &status];
            let of_first: Vec<Item> = keys.iter().filter(|_| is_first).map(|key| note(&bed, key, kind)).collect();
            bed.put("Follow", &FOLLOW, &[("since", "today")]).await;
            bed.put("Order", &[("user", "ann"), ("order", "1")], &[("status", "paid")]).await;
            bed.settle().await;
            let notes = if is_first { of_first } else { keys.map(|key| note(&bed, key, kind)).to_vec() };
            bed.settle().await;
            bed.put("Follow", &FOLLOW, &[("since", "yesterday")]).await;
            bed.put("Order", &[("user", "ann"), ("order", "2")], &[("status", "paid")]).await;
            bed.settle().await;

            let case = format!("{has_type} {kind:?} {is_first}");
            assert_eq!(keys.map(|key| item(&bed, key).unwrap()).to_vec(), notes, "{case}");
            let waits = ["followers: USER#bob / FOLLOWER#ann", "by-status-created: USER#ann / STATUS#paid"];
            let mut found = bed.findings();
            found.sort();
            assert_eq!(found.len(), 2, "{case}: {found:?}");
            assert!(found.iter().any(|it| it == waits[0]) && found.iter().any(|it| it.ends_with(&waits[1][17..])));
            assert_eq!(listed(&bed).len(), 2, "{case}: {:?}", listed(&bed));

            bed.delete(&mirror).await;
            bed.delete(&status).await;
            bed.settle().await;
            let (since, orders) = (bed.shown(&mirror, "since"), bed.shown(&status, "orders"));
            assert_eq!((since.as_str(), orders.as_str()), ("yesterday", "2"), "{case}");
            assert_eq!((bed.findings(), listed(&bed)), (Vec::new(), Vec::new()), "{case}");
        }
    }
}

/// A cascade finds the follows of a user by their mirrors, or by the key of one that is occupied.
#[tokio::test]
async fn a_cascade_deletes_what_it_finds_by_the_occupied_key_of_a_mirror() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[]).await;
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    bed.delete(&user).await;
    bed.settle().await;
    bed.two_days_pass().await;
    assert_eq!((item(&bed, &follow), bed.shown(&mirror, "text").as_str()), (None, "precious"));
    bed.delete(&mirror).await;
    bed.settle().await;
    assert_eq!((item(&bed, &mirror), bed.findings(), listed(&bed)), (None, Vec::new(), Vec::new()));
}

#[tokio::test]
async fn an_item_that_becomes_the_derived_one_ends_the_wait() {
    let mut bed = bed(true);
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put("Follow", &FOLLOW, &[("since", "today")]).await;
    bed.settle().await;
    bed.set(&mirror, "Kind", "Follower").await;
    bed.settle().await;
    assert_eq!((bed.shown(&mirror, "since"), bed.shown(&mirror, "text")), ("today".to_owned(), String::new()));
    assert_eq!((bed.findings(), listed(&bed)), (Vec::new(), Vec::new()));
}

/// A mirror whose key does not give its source's key: the post's detail.
const DETAIL: [(&str, &str); 3] = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];

#[tokio::test]
async fn a_mirror_that_lists_its_sources_is_created_from_those_that_named_it_while_it_waited() {
    for is_first in [true, false] {
        let mut bed = Bed::new();
        let detail = Key::new("POST#p", "METADATA");
        if is_first {
            note(&bed, &detail, Some("Note"));
        }
        bed.put("Post", &DETAIL, &[("Title", "one")]).await;
        bed.settle().await;
        note(&bed, &detail, Some("Note"));
        bed.settle().await;
        assert_eq!(bed.shown(&detail, "text"), "precious");
        bed.delete(&detail).await;
        bed.settle().await;
        assert_eq!((bed.shown(&detail, "Title").as_str(), bed.findings()), ("one", Vec::new()), "{is_first}");
    }
}

/// The wait of a post's detail ends, and before its entry goes the detail waits once more: is it there at last?
pub(crate) async fn waits_again_before_the_entry_goes(mut bed: Bed) -> bool {
    let detail = Key::new("POST#p", "METADATA");
    note(&bed, &detail, Some("Note"));
    bed.put("Post", &DETAIL, &[]).await;
    bed.settle().await;
    bed.delete(&detail).await;
    let records = bed.records();
    let mut late = bed.start(&bed.event(&records));
    bed.stops_before(&mut late, Purpose::KeyWait);
    note(&bed, &detail, Some("Note"));
    bed.settle().await;
    bed.delete(&detail).await;
    late.finish();
    bed.settle().await;
    item(&bed, &detail).is_some()
}

/// The item that has the key of a mirror goes: is the mirror there?
pub(crate) async fn vacated(mut bed: Bed) -> bool {
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    bed.delete(&mirror).await;
    bed.settle().await;
    item(&bed, &mirror).is_some()
}

/// The application's item leaves the key, and a record that follows in the batch cannot be done: both are redelivered.
#[tokio::test]
async fn an_entry_goes_when_a_record_of_the_same_item_is_done_later_than_the_one_that_freed_the_key() {
    let mut bed = Bed::new();
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    note(&bed, &mirror, Some("Note"));
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    assert_eq!(listed(&bed).len(), 1);
    bed.set(&follow, "FolloweeName", "Bobby").await;
    bed.records();
    bed.delete(&mirror).await;
    bed.put("Follower", &[("FolloweeId", "bob"), ("FollowerId", "ann")], &[]).await;
    let records = bed.records();
    assert_eq!(records.len(), 2);
    bed.fails(move |call| {
        let is_of_follow = matches!(call, Call::Write(write) if write.key == follow);
        is_of_follow.then_some((Side::Before, Fault::Unanswered))
    });
    let handled = bed.handle(&records).await;
    bed.stay_away(false);
    let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
    let from = records.iter().position(|record| number(record) == handled.failed_from).unwrap();
    bed.handle(&records[from..]).await;
    bed.settle().await;
    assert_eq!((bed.findings(), listed(&bed)), (Vec::new(), Vec::new()));
}
