use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::Catalogue,
    change::Change,
    declaration::Link,
    fixture::{
        effects, inserted, item, key_of, modified, named, removed, rooms::latest, schema, short, table::TestTable,
    },
    kinds::latest::Latest,
    query::Order,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("latest", change));
}

fn rings_for_both() -> Expect {
    expect![[r#"
        last-message: look ROOM#r / METADATA (Room)
        first-message: look ROOM#r / METADATA (Room)
    "#]]
}

const ROOM: &str = "ROOM#r / METADATA Room Topic=tea";
const MESSAGE: &str = "ROOM#r / MESSAGE#1 Message By=ann Text=x";

#[test]
fn a_source_that_comes_or_goes_rings_its_target_once_for_each_that_reads_it() {
    let both = rings_for_both();
    check(&inserted(MESSAGE), &both);
    check(&removed(MESSAGE), &both);
    check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Gadget By=ann"), &both);
}

#[test]
fn a_change_of_what_nobody_takes_rings_nobody() {
    check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Message By=ann Text=y"), &expect!["nothing\n"]);
    check(&modified(ROOM, "ROOM#r / METADATA Room Topic=coffee"), &expect!["nothing\n"]);
    check(&removed(ROOM), &expect!["nothing\n"]);
    let by_bob = "ROOM#r / MESSAGE#1 Message By=bob Text=x";
    check(&modified(MESSAGE, by_bob), &expect!["last-message: look ROOM#r / METADATA (Room)\n"]);
}

#[test]
fn a_target_that_is_made_or_whose_part_was_changed_is_looked_at() {
    let both = rings_for_both();
    check(&inserted(ROOM), &both);
    check(&modified(ROOM, &format!("{ROOM} LastBy=me")), &expect!["last-message: look ROOM#r / METADATA (Room)\n"]);
}

/// The content of a room after these messages, in order of arrival.
fn held(messages: &[&str]) -> String {
    let mut table = TestTable::new();
    for text in [&[ROOM], messages].concat() {
        let item = item(text);
        table.replace(key_of(&item), Some(item));
    }
    table.settle(&[0]);
    assert_eq!(table.differing(), Vec::<String>::new());
    let room = &table.items[&key_of(&item(ROOM))];
    let names = ["LastBy", "LastAt", "FirstAt"].into_iter().filter_map(|name| Some((name, room.get(name)?)));
    names.map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_and_the_first_are_by_sort_key_whatever_came_first_and_items_of_others_are_passed_over() {
    assert_eq!(held(&[]), "");
    assert_eq!(held(&[MESSAGE]), "LastBy=ann LastAt=1 FirstAt=1");
    let later = "ROOM#r / MESSAGE#2 Message By=bob";
    assert_eq!(held(&[later, MESSAGE]), "LastBy=bob LastAt=2 FirstAt=1");
    assert_eq!(held(&[MESSAGE, later, "ROOM#r / MESSAGE#3 Message"]), "LastAt=3 FirstAt=1");
    let others =
        ["ROOM#r / MESSAGE#0#PIN Pin By=pin", "ROOM#r / MESSAGE#9#PIN Pin By=pin", "ROOM#q / MESSAGE#9 Message"];
    assert_eq!(held(&[&others[..], &[MESSAGE]].concat()), "LastBy=ann LastAt=1 FirstAt=1");
}

#[test]
fn a_list_has_the_last_few_in_their_order() {
    let newest = |messages: &[&str]| {
        let mut table = TestTable::new();
        for text in [&[ROOM], messages].concat() {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
            table.settle(&[0]);
        }
        assert_eq!(table.differing(), Vec::<String>::new());
        let entry = |entry: &AttributeValue| {
            let AttributeValue::M(entry) = entry else { panic!("no map: {entry:?}") };
            ["At", "By"].map(|name| entry.get(name).map(short).unwrap_or_default()).join(" ")
        };
        match table.items[&key_of(&item(ROOM))].get("Newest") {
            Some(AttributeValue::L(entries)) => entries.iter().map(entry).collect::<Vec<_>>().join(", "),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(newest(&[]), "None");
    assert_eq!(newest(&[MESSAGE]), "1 ann");
    let more = ["ROOM#r / MESSAGE#3 Message By=cat", "ROOM#r / MESSAGE#2 Message", "ROOM#r / MESSAGE#2#PIN Pin By=dan"];
    assert_eq!(newest(&[&[MESSAGE], &more[..]].concat()), "3 cat, 2 ");
    assert_eq!(newest(&[MESSAGE, more[0], "ROOM#r / MESSAGE#3 Gadget"]), "1 ann");
}

#[test]
fn a_key_that_is_escaped_in_another_way_has_no_sources() {
    let room = "ROOM#%61 / METADATA";
    let kind = latest(Order::Descending, &[("By", "LastBy")]);
    assert!(kind.first(&schema(), &key_of(&item(&format!("{room} Room")))).is_none());
    assert!(kind.first(&schema(), &key_of(&item("ROOM#a / METADATA Room"))).is_some());
}

#[test]
fn sources_that_are_not_one_range_of_one_partition_are_refused() {
    let schema = schema();
    let refused = |kind: Latest| Catalogue::new(&schema, vec![named("last", kind)]).unwrap_err().to_string();
    let room = || latest(Order::Descending, &[("By", "LastBy")]);
    let all = [
        Latest { link: Some(Link::of(&[("RoomId", "At")])), ..room() },
        Latest { link: Some(Link::of(&[("RoomId", "By")])), ..room() },
        Latest { source: "Pin".into(), link: Some(Link::of(&[])), ..room() },
        latest(Order::Descending, &[("Nothing", "LastBy")]),
        latest(Order::Descending, &[("By", "Topic")]),
    ];
    let shown: String = all.into_iter().map(|kind| refused(kind) + "\n").collect();
    expect![[r#"
        derivation last: the items of Message that lead to one Room are not consecutive items of one partition: the key of Room does not give RoomId of their partition key
        derivation last: the items of Message that lead to one Room are not consecutive items of one partition: the key of Room does not give RoomId of their partition key
        derivation last: nothing gives RoomId of the key of Room
        derivation last: Message has no attribute Nothing
        derivation last: Room does not declare Topic as derived
    "#]].assert_eq(&shown);
}

/// Changes of a small domain.
fn steps() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((0usize..9, 0usize..6, any::<bool>()), 1..40)
}

const KEYS: [&str; 9] = [
    "ROOM#r / METADATA Room",
    "ROOM#r / METADATA Room Topic=x LastBy=me",
    "ROOM#r / MESSAGE#1 Message By=ann",
    "ROOM#r / MESSAGE#1 Message By=bob",
    "ROOM#r / MESSAGE#2 Message By=cat",
    "ROOM#r / MESSAGE#2#PIN Pin By=dan",
    "ROOM#r / MESSAGE#3 Message",
    "ROOM#r / MESSAGE#3 Gadget By=eve",
    "ROOM#q / MESSAGE#3 Message By=eve",
];

proptest! {
    #[test]
    fn any_order_of_records_and_late_writes_ends_as_defined(steps in steps(), choices in prop::collection::vec(0usize..50, 1..30)) {
        let mut table = TestTable::new();
        table.run(&KEYS, steps, &choices);
        prop_assert_eq!(table.differing(), Vec::<String>::new());
    }
}
