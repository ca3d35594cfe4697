use expect_test::{Expect, expect};
use keys::{item::Item, key::Key};
use proptest::prelude::*;

use super::*;
use crate::{
    catalogue::Catalogue,
    change::Change,
    fixture::{effects, inserted, item, key_of, modified, named, removed, schema, table::TestTable},
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("counted item", change));
}

const COUNTER: &str = "DESK#d / STATUS#open#COUNT#tickets#00 Counter";
const GROUP: &str = "DESK#d / STATUS#open StatusGroup Tickets=N:2";

#[test]
fn a_counter_whose_value_changed_rings_its_item() {
    let requested = || expect!["tickets-item: look DESK#d / STATUS#open (StatusGroup)\n"];
    check(&inserted(&format!("{COUNTER} Value=N:1")), &requested());
    check(&modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:3 Shown=BOOL:true")), &requested());
    check(&removed(&format!("{COUNTER} Value=N:1")), &requested());
    check(&modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:4.0 Note=x")), &expect!["nothing\n"]);
    check(&inserted("DESK#d / STATUS#open#COUNT#others#00 Counter Value=N:1"), &expect!["nothing\n"]);
    check(&inserted("DESK#d / METADATA#COUNT#statuses#00 Counter Value=N:1"), &expect!["nothing\n"]);
}

#[test]
fn an_item_that_somebody_made_changed_or_removed_is_looked_at() {
    let requested = || expect!["tickets-item: look DESK#d / STATUS#open (StatusGroup)\n"];
    check(&inserted(GROUP), &requested());
    check(&removed(GROUP), &requested());
    check(&modified(GROUP, &format!("{GROUP} Note=x")), &requested());
    check(&modified(GROUP, "DESK#d / STATUS#open StatusGroup Tickets=N:3"), &expect!["nothing\n"]);
}

#[test]
fn a_target_that_is_not_derived_is_refused() {
    let schema = schema();
    let kind = CountedItem { counts: vec!["tickets".to_owned()], target: "Desk".to_owned() };
    let error = Catalogue::new(&schema, vec![named("made", kind)]).unwrap_err().to_string();
    expect!["derivation made: Desk is not declared as derived"].assert_eq(&error);
}

#[test]
fn an_item_exists_while_any_of_its_counts_is_above_zero() {
    let schema = schema();
    let counts = ["tickets", "returns"].map(str::to_owned).to_vec();
    let kind = CountedItem { counts, target: "StatusGroup".to_owned() };
    let key = |status: &str| Key::new("DESK#d", format!("STATUS#{status}"));
    let tallies =
        [("a", "tickets", 1), ("a", "returns", 2), ("b", "returns", 1), ("c", "tickets", 0), ("d", "other", 3)];
    let mut counts = Counts::new();
    for (status, count, n) in tallies {
        counts.insert((key(status), count.to_owned()), crate::tally::Tally::of(n));
    }
    let made = kind.derive("item", &schema, &Items::new(), &counts);
    let made: Vec<&Key> =
        made.iter().filter_map(|it| if let Derived::Item { key, .. } = it { Some(key) } else { None }).collect();
    assert_eq!(made, [&key("a"), &key("b")]);
    let counter = |count: &str| inserted(&format!("DESK#d / STATUS#b#COUNT#{count}#00 Counter Value=N:1"));
    let asks = |change: &Change| kind.plan(&schema, &Sight::of(&schema, change)).len();
    assert_eq!([asks(&counter("returns")), asks(&counter("tickets")), asks(&counter("other"))], [1, 1, 0]);
}

/// The groups of a table of these items, and the displays of the desk, when everything is handled.
fn held(items: &[&str]) -> String {
    let mut table = TestTable::new();
    for text in items {
        let item = item(text);
        table.replace(key_of(&item), Some(item));
        table.settle(&[0]);
    }
    assert_eq!(table.differing(), Vec::<String>::new());
    let shown = |(key, item): (&Key, &Item)| {
        let shown = ["Tickets", "Statuses"].into_iter().find_map(|name| item.get(name))?;
        Some(format!("{key} {}", crate::fixture::short(shown)))
    };
    table.items.iter().filter_map(shown).collect::<Vec<_>>().join("; ")
}

#[test]
fn there_is_an_item_for_each_value_that_is_counted_and_a_count_of_them() {
    let [one, two] = ["DESK#d / TICKET#1 Ticket Status=open", "DESK#d / TICKET#2 Ticket Status=open"];
    let desk = "DESK#d / METADATA Desk";
    assert_eq!(held(&[desk]), "");
    assert_eq!(held(&[one, two, desk]), "DESK#d / METADATA N:1; DESK#d / STATUS#open N:2");
    let closed = "DESK#d / TICKET#1 Ticket Status=closed";
    assert_eq!(
        held(&[one, two, closed, desk]),
        "DESK#d / METADATA N:2; DESK#d / STATUS#closed N:1; DESK#d / STATUS#open N:1"
    );
    assert_eq!(held(&[one, closed, desk]), "DESK#d / METADATA N:1; DESK#d / STATUS#closed N:1");
    assert_eq!(held(&[one, "DESK#d / TICKET#1 Ticket", desk]), "DESK#d / METADATA N:0");
}

const ITEMS: [&str; 14] = [
    "DESK#d / METADATA Desk",
    "DESK#d / METADATA Desk Statuses=N:7",
    "DESK#d / TICKET#1 Ticket Status=open",
    "DESK#d / TICKET#1 Ticket Status=closed",
    "DESK#d / TICKET#2 Ticket Status=open",
    "DESK#d / TICKET#2 Ticket",
    "DESK#d / STATUS#open StatusGroup Tickets=N:9 Note=x",
    "DESK#d / STATUS#late StatusGroup",
    "DESK#d / METADATA Desk Place=hall Clerks=SS:ann,bob",
    "DESK#d / METADATA Desk Place=hall Clerks=SS:bob,cid",
    "DESK#d / METADATA Desk Place=yard Clerks=SS:bob Closed=BOOL:true",
    "DESK#d / METADATA Desk Place=yard Clerks=bob Closed=maybe",
    "CLERK#cid / DESK#d Duty Place=moon",
    "CLERK#eve / DESK#d Duty",
];

proptest! {
    #[test]
    fn any_order_of_records_and_late_writes_ends_as_defined(
        steps in prop::collection::vec((0usize..14, 0usize..6, any::<bool>()), 1..40),
        choices in prop::collection::vec(0usize..50, 1..30),
    ) {
        let mut table = TestTable::new();
        table.run(&ITEMS, steps, &choices);
        prop_assert_eq!(table.differing(), Vec::<String>::new());
    }
}
