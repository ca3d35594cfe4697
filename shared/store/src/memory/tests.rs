//! Behavior that the contract suite cannot see: records, small pages, raw items.

use std::collections::BTreeSet;

use derive::write::{Action, Update};
use keys::layout::Index;
use serde_dynamo::AttributeValue;

use super::*;

fn layout() -> Layout {
    let index = Index { name: "I".into(), pk: "IPK".into(), sk: "ISK".into(), projection: Some(vec![]) };
    Layout { entity_type: Some("EntityType".into()), indexes: vec![index], ..Layout::of("PK", "SK") }
}

fn item(sk: &str, more: &[(&str, AttributeValue)]) -> Item {
    let mut item = layout().key_item(&Key::new("P", sk));
    item.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    item
}

fn write(table: Table, sk: &str, action: Action) -> Write {
    Write { table, key: Key::new("P", sk), action, guard: None }
}

fn put(sk: &str, more: &[(&str, AttributeValue)]) -> Write {
    write(Table::Main, sk, Action::Put(item(sk, more)))
}

fn update(sk: &str, set: Item, remove: &str) -> Write {
    let remove = BTreeSet::from([remove.to_owned()]);
    write(Table::Main, sk, Action::Update(Update { set, remove, ..Update::default() }))
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn done(store: &MemoryStore, write: &Write) {
    assert!(matches!(store.write_now(write).unwrap(), Outcome::Done { .. }), "{write:?}");
}

#[test]
fn every_change_of_the_main_table_makes_a_record() {
    let store = MemoryStore::new(layout());
    done(&store, &put("a", &[("V", n("1"))]));
    done(&store, &put("a", &[("V", n("2"))]));
    done(&store, &write(Table::Main, "a", Action::Delete));
    store.put_raw(Table::Main, item("b", &[])).unwrap();
    let key = |sk: &str| Key::new("P", sk);
    let (one, two) = (item("a", &[("V", n("1"))]), item("a", &[("V", n("2"))]));
    let wanted = vec![
        (key("a"), None, Some(one.clone())),
        (key("a"), Some(one), Some(two.clone())),
        (key("a"), Some(two), None),
        (key("b"), None, Some(item("b", &[]))),
    ];
    assert_eq!(store.take_records(), wanted);
    assert_eq!(store.take_records(), vec![], "taken");
}

#[test]
fn a_write_that_changes_nothing_makes_no_record() {
    let store = MemoryStore::new(layout());
    done(&store, &put("a", &[("V", n("1"))]));
    assert_eq!(store.take_records().len(), 1);
    done(&store, &put("a", &[("V", n("1.0"))]));
    done(&store, &update("a", Item::from([("V".to_owned(), n("1"))]), "Missing"));
    done(&store, &write(Table::Main, "missing", Action::Delete));
    done(&store, &update("missing", Item::new(), "V"));
    done(&store, &write(Table::Ledger, "a", Action::Put(item("a", &[]))));
    assert_eq!(store.take_records(), vec![]);
    assert_eq!(store.snapshot(Table::Main).len(), 1, "a removal from nothing makes no item");
    assert_eq!(store.snapshot(Table::Ledger).len(), 1);
}

#[test]
fn a_cancelled_transaction_makes_no_record() {
    let store = MemoryStore::new(layout());
    let failing = Write { guard: Some(derive::guard::Guard::present(derive::guard::Purpose::Update)), ..put("b", &[]) };
    let outcome = store.transact_now(&Transaction::new(vec![put("a", &[]), failing]).unwrap());
    assert_eq!(outcome, TransactOutcome::Cancelled { reasons: vec![Reason::None, Reason::GuardFailed] });
    assert_eq!(store.take_records(), vec![]);
    assert_eq!(store.snapshot(Table::Main), BTreeMap::new());
}

#[test]
fn an_item_without_a_key_cannot_be_put() {
    let store = MemoryStore::new(layout());
    assert!(store.put_raw(Table::Main, Item::from([("PK".to_owned(), s("P"))])).is_err());
}

#[tokio::test]
async fn pages_of_one_item_hold_everything_in_order() {
    let store = MemoryStore::with_page_bytes(layout(), 1);
    // The index reverses the order, and two of its sort keys are equal.
    for (sk, index_sk) in [("a", "3"), ("b", "2"), ("c", "2"), ("d", "1")] {
        done(&store, &put(sk, &[("IPK", s("I")), ("ISK", s(index_sk)), ("V", n("1"))]));
    }
    let query = |index: Option<&str>, pk: &str| Query::prefix(index, pk, "");
    for (about, query, wanted) in [
        ("scan", None, "abcd"),
        ("query", Some(query(None, "P")), "abcd"),
        ("index", Some(query(Some("I"), "I")), "dbca"),
    ] {
        let (mut found, mut n_pages, mut after) = (String::new(), 0, None);
        loop {
            let page = match &query {
                Some(query) => store.query(Table::Main, query, after).await.unwrap(),
                None => store.scan(Table::Main, Segment::WHOLE, after).await.unwrap(),
            };
            found.extend(page.items.iter().map(|item| keys::item::text(item, "SK").unwrap()));
            n_pages += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((found.as_str(), n_pages), (wanted, 5), "{about}: the last page is empty");
    }
}
