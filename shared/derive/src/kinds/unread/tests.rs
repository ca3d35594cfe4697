use expect_test::{Expect, expect};
use keys::{entity::Definition, layout::Layout};
use proptest::prelude::*;

use crate::{
    catalogue::Catalogue,
    change::Change,
    declaration::{FoundBy, Link},
    derived::Counts,
    fixture::{
        derived, effects, ground, inserted, item, key_of, modified, named, removed, rooms::unread, schema, short,
        table::TestTable,
    },
    kind::Kind,
    kinds::unread::Unread,
    query::SortKeys,
    schema::Schema,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("unread", change));
}

const MEMBER: &str = "ROOM#r / USER#ann Member ReadAt=2";
const MESSAGE: &str = "ROOM#r / MESSAGE#1 Message By=bob";

#[test]
fn a_source_that_comes_or_goes_finds_all_targets_of_its_range_and_one_that_changes_none() {
    let all = expect![[r#"
        unread-messages: find table ROOM#r / USER#… via Member -> Member
    "#]];
    check(&inserted(MESSAGE), &all);
    check(&removed(MESSAGE), &all);
    check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Gadget"), &all);
    check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Message By=cat"), &expect!["nothing\n"]);
}

#[test]
fn a_target_that_is_made_that_reads_or_whose_number_was_changed_is_refreshed() {
    let itself = expect![[r#"
        unread-messages: look ROOM#r / USER#ann (Member)
    "#]];
    check(&inserted(MEMBER), &itself);
    check(&modified(MEMBER, "ROOM#r / USER#ann Member ReadAt=3"), &itself);
    check(&modified(MEMBER, "ROOM#r / USER#ann Member"), &itself);
    check(&modified(MEMBER, &format!("{MEMBER} Unread=N:7")), &itself);
    check(&modified(MEMBER, &format!("{MEMBER} Note=x")), &expect!["nothing\n"]);
    check(&removed(MEMBER), &expect!["nothing\n"]);
}

/// The number of a member with this attribute, in a room with these messages.
fn number(read_at: &str, messages: &[&str]) -> String {
    let mut table = TestTable::new();
    let member = item(&format!("ROOM#r / USER#ann Member{read_at}"));
    let texts = messages.iter().map(|rest| item(&format!("ROOM#r / MESSAGE#{rest}")));
    for item in texts.chain([member.clone(), item("ROOM#q / MESSAGE#9 Message")]) {
        table.replace(key_of(&item), Some(item));
    }
    table.settle(&[0]);
    assert_eq!(table.differing(), Vec::<String>::new());
    table.items[&key_of(&member)].get("Unread").map_or("none".to_owned(), short)
}

#[test]
fn what_is_behind_the_attribute_is_counted_up_to_the_limit() {
    let messages = ["1 Message", "2 Message", "2#PIN Pin", "2%23x Message", "3 Message", "4 Gadget"];
    for (read_at, wanted) in [
        ("", "N:3"),
        (" ReadAt=0", "N:3"),
        (" ReadAt=1", "N:3"),
        (" ReadAt=2", "N:2"),
        (" ReadAt=2#x", "N:1"),
        (" ReadAt=20", "N:1"),
        (" ReadAt=3", "N:0"),
        (" ReadAt=9", "N:0"),
        (" ReadAt=N:1", "none"),
        (" ReadAt=", "none"),
    ] {
        assert_eq!(number(read_at, &messages), wanted, "{read_at}");
    }
    assert_eq!(number("", &["5#PIN Pin"]), "N:0");
    let long = format!(" ReadAt={}", "x".repeat(1_025));
    assert_eq!(number(&long, &messages), "none", "no key is so long");
}

/// A schema in which a room's items have such a sort key, and a member reads up to an attribute.
fn schema_of(sk: &str) -> (Schema, Unread) {
    let member = ground("Member", ("USER#{UserId}", "ROOM#{RoomId}"), &["ReadAt", "Topic"], &["Unread"]);
    let seat = derived("Seat", ("ROOM#{RoomId}", "SEAT#{UserId}"), &[]);
    let all: [Definition; 3] = [ground("Message", ("ROOM#{RoomId}", sk), &["By"], &[]), member, seat];
    let layout = Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") };
    let found = FoundBy { via: "Seat".into(), index: None, by: Link::of(&[("RoomId", "RoomId")]) };
    (Schema::new(layout, all), Unread { found, ..unread() })
}

/// The range behind an attribute.
fn behind(sk: &str, kind: impl FnOnce(Unread) -> Unread, rest: &str) -> Result<SortKeys, String> {
    let (schema, unread) = schema_of(sk);
    let member = item(&format!("USER#ann / ROOM#r Member{rest}"));
    let key = key_of(&member);
    let image = schema.image(&key, &member).unwrap();
    let of = kind(unread).behind(&schema, &image).map_err(|error| error.to_string())?.unwrap();
    assert_eq!((of.query.pk.as_str(), of.query.limit), ("ROOM#r", Some(3)));
    Ok(of.query.sk)
}

#[test]
fn the_range_begins_behind_every_key_with_the_value() {
    let between = |first: &str, last: &str| Ok(SortKeys::Between(first.to_owned(), last.to_owned()));
    let after = |text: &str| Ok(SortKeys::After(text.to_owned()));
    let same = |unread| unread;
    for (sk, rest, wanted) in [
        ("MSG#{At}#{Id}", "", Ok(SortKeys::Prefix("MSG#".to_owned()))),
        ("MSG#{At}#{Id}", " ReadAt=2024", between("MSG#2024$", "MSG$")),
        ("MSG#{At}#{Id}", " ReadAt=a#b", between("MSG#a%23b$", "MSG$")),
        ("MSG#{At}", " ReadAt=2024", between("MSG#2024\0", "MSG$")),
        ("MSG#{At}#END", " ReadAt=2024", between("MSG#2024#END\0", "MSG$")),
        ("MSG#{At:6}#{Id}", " ReadAt=N:42", between("MSG#000042$", "MSG$")),
        ("MSG#{At:6}.{Id}", " ReadAt=N:42", between("MSG#000042/", "MSG$")),
        ("MSG#{At:6}#{Id}", " ReadAt=42", between("MSG#000042$", "MSG$")),
        ("MSG#{At:6.2}", " ReadAt=N:1.5", between("MSG#000150\0", "MSG$")),
        ("MSG#{upper(At)}#{Id}", " ReadAt=ab", between("MSG#AB$", "MSG$")),
        ("{At}#{Id}", " ReadAt=2024", after("2024$")),
        ("{At}", " ReadAt=2024", after("2024")),
        ("{At}", "", Ok(SortKeys::All)),
        ("MSG#{At:6}", " ReadAt=N:1.5", Err("ReadAt is not a whole number from 0 up".to_owned())),
        ("MSG#{At:6}", " ReadAt=N:1234567", Err("ReadAt does not fit in 6 digits".to_owned())),
        ("MSG#{At}", " ReadAt=N:7", Err("ReadAt is N, and S is wanted".to_owned())),
    ] {
        assert_eq!(behind(sk, same, rest), wanted, "{sk}{rest}");
    }
    let longest = "x".repeat(1_020);
    let behind_longest = between(&format!("MSG#{}y", "x".repeat(1_019)), "MSG$");
    assert_eq!(behind("MSG#{At}", same, &format!(" ReadAt={longest}")), behind_longest, "no key is longer");
    let of_topic = |unread| Unread { link: Link::of(&[("RoomId", "RoomId"), ("Topic", "Topic")]), ..unread };
    let topic = "T#{Topic}#{At}#{Id}";
    assert_eq!(behind(topic, of_topic, " Topic=tea"), Ok(SortKeys::Prefix("T#tea#".to_owned())));
    assert_eq!(behind(topic, of_topic, " Topic=tea ReadAt=5"), between("T#tea#5$", "T#tea$"));
}

#[test]
fn a_target_whose_link_leads_nowhere_has_no_number_and_zero_may_be_absent() {
    let (schema, kind) = schema_of("T#{Topic}#{At}");
    let link = Link::of(&[("RoomId", "RoomId"), ("Topic", "Topic")]);
    let derived = |kind: Unread, rest: &str| {
        let member = item(&format!("USER#ann / ROOM#r Member{rest}"));
        let items = [(key_of(&member), member)].into();
        format!("{:?}", kind.derive("unread", &schema, &items, &Counts::default()))
    };
    let kind = Unread { link, ..kind };
    assert!(derived(kind.clone(), "").contains("value: None"));
    assert!(derived(kind.clone(), " Topic=tea").contains(r#"value: Some(N("0"))"#));
    assert!(derived(Unread { zero_is_absent: true, ..kind }, " Topic=tea").contains("value: None"));
}

#[test]
fn sources_that_are_no_range_in_the_order_of_the_field_are_refused() {
    let refused = |sk: &str, change: &dyn Fn(Unread) -> Unread| {
        let (schema, unread) = schema_of(sk);
        format!("{}\n", Catalogue::new(&schema, vec![named("unread", change(unread))]).unwrap_err())
    };
    let same = |unread| unread;
    let (none, of_by) = (Link::of(&[]), Link::of(&[("RoomId", "RoomId"), ("Id", "UserId")]));
    let shown = [
        refused("MSG#{At}#{Id}", &|unread| Unread { link: none.clone(), ..unread }),
        refused("MSG#{At}#{Id}", &|unread| Unread { link: of_by.clone(), ..unread }),
        refused("MSG#{Id}#{At}", &same),
        refused("MSG#{MAX-At:12}", &same),
        refused("MSG#{At}.{Id}", &same),
        refused("{At*}#{Id}", &same),
        refused("MSG#{At/}", &same),
        refused("MSG#{At}", &|unread| Unread { after: "Read".into(), ..unread }),
        refused("MSG#{At}", &|unread| Unread { attribute: "Topic".into(), ..unread }),
        refused("MSG#{At}", &|unread| Unread { found: FoundBy { via: "Member".into(), ..unread.found }, ..unread }),
    ];
    expect![[r#"
        derivation unread: the items of Message are not consecutive items of one partition: the link does not give RoomId of their partition key
        derivation unread: the items of Message are not consecutive items of one partition: Id is not at the beginning of their key
        derivation unread: Message items are not in the order of At: their sort key is MSG#{Id}#{At}, and behind the fields of the link it must begin with {At}, as MSG#{At}#{id} does; mirror them under such a key, and count the mirrors
        derivation unread: MSG#{MAX-At:12} of Message has the greatest At first, so newer items are before the value: mirror them under a sort key without MAX-, and count the mirrors
        derivation unread: a value of At may contain the text that ends it in MSG#{At}.{Id} of Message: write # there
        derivation unread: a value of At may contain the text that ends it in {At*}#{Id} of Message: write # there
        derivation unread: At in MSG#{At/} of Message is no value as it is: name a text or a number
        derivation unread: Member has no attribute Read
        derivation unread: Member does not declare Topic as derived
        derivation unread: nothing gives UserId of the key by which the targets are found
    "#]].assert_eq(&shown.concat());
}

/// Changes of a small domain.
fn steps() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((0usize..10, 0usize..6, any::<bool>()), 1..40)
}

const ITEMS: [&str; 10] = [
    "ROOM#r / USER#ann Member",
    "ROOM#r / USER#ann Member ReadAt=2 Unread=N:9",
    "ROOM#r / USER#bob Member ReadAt=1",
    "ROOM#r / USER#bob Member ReadAt=N:1",
    "ROOM#r / MESSAGE#1 Message By=ann",
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
        table.run(&ITEMS, steps, &choices);
        prop_assert_eq!(table.differing(), Vec::<String>::new());
    }
}

#[test]
fn a_target_that_cannot_be_read_is_reported_and_others_are_not() {
    let unreadable = |text: &str| {
        let (schema, item) = (schema(), item(text));
        let key = key_of(&item);
        let image = schema.image(&key, &item).unwrap();
        unread().unreadable(&schema, &image).map(|why| why.to_string())
    };
    assert_eq!(unreadable(MEMBER), None);
    assert_eq!(unreadable("ROOM#r / USER#ann Member"), None);
    assert_eq!(unreadable(MESSAGE), None);
    let why = unreadable("ROOM#r / USER#ann Member ReadAt=N:1");
    assert_eq!(why.as_deref(), Some("ReadAt is N, and S is wanted"));
}
