//! Lists whose members count: more of them than a transaction takes, and one whose counter refuses.

use std::collections::BTreeMap;

use derive::write::Table;
use design::samples::Samples;
use engine::{
    inspect::to_recount,
    ledger::LedgerKind,
    park::parked,
    redrive::{Redriven, discard::Discarded},
};
use expect_test::expect;
use keys::{
    counter::{COUNTER, CounterKey, VALUE},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};

use super::bed::{Bed, Pace};

const CASE: &str = "27-replies-at-every-level";

/// More members than a transaction takes.
const MANY: usize = 150;

/// The deadline of an operator's command, in milliseconds since the epoch.
const DEADLINE_MS: u64 = u64::MAX;

/// The event of a new comment below these.
async fn written(bed: &mut Bed, ancestors: &[String]) -> String {
    let ancestors: Vec<Value> = ancestors.iter().map(|id| json!({ "S": id })).collect();
    let item = json!({ "id": { "S": "c" }, "ancestorIds": { "L": ancestors } });
    bed.operate(&json!({ "op": "put", "table": "Comment", "item": item })).await;
    let [event] = &bed.events()[..] else { panic!("one table was written") };
    event.clone()
}

fn counter(id: &str) -> CounterKey {
    CounterKey::home(Key::new(format!("Comment#{id}"), "-"), "replies")
}

/// How many of the members have each count.
fn counts(bed: &Bed, members: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for id in members {
        let key = counter(id).key().unwrap();
        let item: Option<Item> = bed.store.view(Table::Main, |items| items.get(&key).cloned());
        let count = match item.as_ref().and_then(|item| item.get(VALUE)) {
            Some(AttributeValue::N(count)) => count.clone(),
            None => "0".to_owned(),
            Some(other) => format!("{other:?}"),
        };
        *counts.entry(count).or_default() += 1;
    }
    counts
}

fn all(count: &str, n: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(count.to_owned(), n)])
}

#[tokio::test]
async fn more_members_than_a_transaction_takes_count_under_watermarks_and_are_parked_whole_under_receipts() {
    let members: Vec<String> = (0..MANY).map(|n| format!("a{n}")).collect();
    let mut bed = Bed::of(CASE, LedgerKind::Watermarks, Pace::OneByOne);
    let event = written(&mut bed, &members).await;
    for _ in 0..2 {
        assert!(bed.handle(&event).await.account.parked.is_empty());
        assert_eq!(counts(&bed, &members), all("1", MANY));
    }

    let mut bed = Bed::of(CASE, LedgerKind::Receipts, Pace::OneByOne);
    let event = written(&mut bed, &members).await;
    let why = "the change adds to too many counters at once: a transaction of 151 actions; the limit is 100. Discard it \
               and run `ripple repair`";
    let handled = bed.handle(&event).await;
    assert_eq!(handled.failed_from, None);
    let causes: Vec<&str> = handled.account.parked.iter().map(|parked| parked.cause.as_str()).collect();
    assert_eq!(causes, [why]);
    let again = bed.handle(&event).await.account;
    assert_eq!((again.parked.len(), again.n_duplicates), (0, 1));
    let all_parked = parked(&bed.store).await.unwrap();
    let [change] = all_parked.as_slice() else { panic!("{all_parked:?}") };
    let redriven = bed.engine.redrive(change, DEADLINE_MS).await.unwrap();
    let Redriven::Still { cause } = redriven else { panic!("{redriven:?}") };
    assert_eq!(cause, why);
    assert_eq!(bed.engine.discard(change, DEADLINE_MS).await.unwrap(), Discarded::Done);
    assert_eq!((parked(&bed.store).await.unwrap().len(), to_recount(&bed.store).await.unwrap().len()), (0, MANY));
    assert_eq!(bed.handle(&event).await.account.n_duplicates, 1);
    assert_eq!(counts(&bed, &members), all("0", MANY));
}

#[tokio::test]
async fn a_member_whose_counter_refuses_is_parked_and_its_redrive_counts_it_once() {
    let members = ["a", "b", "c"].map(str::to_owned);
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let mut bed = Bed::of(CASE, ledger, Pace::OneByOne);
        let layout = &bed.schema.layout;
        let mut refusing = layout.key_item(&counter("b").key().unwrap());
        refusing.extend(layout.type_of(COUNTER));
        refusing.insert(VALUE.to_owned(), AttributeValue::S("many".to_owned()));
        bed.store.put_raw(Table::Main, refusing).unwrap();
        drop(bed.store.take_records());
        let event = written(&mut bed, &members).await;
        let handled = bed.handle(&event).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1), "{ledger}");
        let n_counted = if ledger == LedgerKind::Watermarks { 2 } else { 0 };
        let n_of = |counts: &BTreeMap<String, usize>| counts.get("1").copied().unwrap_or_default();
        assert_eq!(n_of(&counts(&bed, &members)), n_counted, "{ledger}");

        let key = counter("b").key().unwrap();
        let mut corrected = bed.store.view(Table::Main, |items| items[&key].clone());
        corrected.remove(VALUE);
        bed.store.put_raw(Table::Main, corrected).unwrap();
        let change = parked(&bed.store).await.unwrap().remove(0);
        for _ in 0..2 {
            let redriven = bed.engine.redrive(&change, DEADLINE_MS).await.unwrap();
            assert!(matches!(redriven, Redriven::Applied(_) | Redriven::Gone), "{ledger}: {redriven:?}");
            drop(bed.handle(&event).await);
            assert_eq!(counts(&bed, &members), all("1", 3), "{ledger}");
        }
    }
}

#[test]
fn the_sentence_of_the_count_and_a_sample_have_the_members() {
    let (schema, catalogue) = manifest::read(&super::folder().join(CASE).join("ripple.toml")).unwrap();
    let sentences = design::sentence::sentences(&schema, &catalogue);
    let (_, sentence) = sentences.iter().find(|(name, _)| name == "replies").unwrap();
    expect!["counts the Comment items once for each different member of ancestorIds and adds up `votes`"]
        .assert_eq(sentence.split(" where ").next().unwrap());
    let samples = Samples::made_up(&schema).as_read_by(&schema, &catalogue);
    let sample = samples.item("Comment").unwrap();
    let member = |name: &str| AttributeValue::L(vec![AttributeValue::S(format!("{{{name}}}"))]);
    for (name, value) in [
        ("ancestorIds", member("ancestorIds")),
        ("mentions", member("mentions")),
        ("votes", AttributeValue::N("1".to_owned())),
    ] {
        assert_eq!(sample.get(name), Some(&value));
    }
}
