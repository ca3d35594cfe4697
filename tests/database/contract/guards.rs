//! Guards: each succeeds and fails, on every action, alone and in a transaction.

use std::collections::BTreeSet;

use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome};

use crate::contract::{
    bed::Bed,
    items::{delete, guarded, item, key, n, put, s, set, unchanged},
};

/// An attribute that needs a placeholder.
const ATTRIBUTE: &str = "claims.#1";

/// Guards, each with items (or none) on which it succeeds or fails.
fn guards() -> Vec<(Guard, Option<AttributeValue>, bool, bool)> {
    let (one, two) = (Some(n("1")), Some(n("2")));
    // Guard, the attribute's value, whether an item exists, whether the guard succeeds.
    vec![
        (absent(), None, false, true),
        (absent(), None, true, false),
        (present(), None, true, true),
        (present(), None, false, false),
        (theirs("1"), Some(s("1")), true, true),
        (theirs("1"), Some(s("2")), true, false),
        (theirs("1"), one.clone(), true, false),
        (theirs("1"), None, true, false),
        (theirs("1"), None, false, false),
        (as_read(Some(n("1.0"))), one.clone(), true, true),
        (as_read(one.clone()), two.clone(), true, false),
        (as_read(one.clone()), None, true, false),
        (as_read(one.clone()), None, false, false),
        (as_read(None), None, true, true),
        (as_read(None), one.clone(), true, false),
        (unchanged(ATTRIBUTE, None), None, true, true),
        (unchanged(ATTRIBUTE, None), None, false, true),
        (unchanged(ATTRIBUTE, None), one.clone(), true, false),
        (unchanged(ATTRIBUTE, one.clone()), one.clone(), true, true),
        (unchanged(ATTRIBUTE, one.clone()), two, true, false),
        (unchanged(ATTRIBUTE, one.clone()), Some(s("1")), true, false),
        (unchanged(ATTRIBUTE, one.clone()), None, true, false),
        (unchanged(ATTRIBUTE, one), None, false, false),
        (bounds_as_read(None), None, true, true),
        (bounds_as_read(None), None, false, true),
        (bounds_as_read(None), Some(n("1")), true, false),
        (bounds_as_read(Some(n("1.0"))), Some(n("1")), true, true),
        (bounds_as_read(Some(n("1"))), Some(n("2")), true, false),
        (bounds_as_read(Some(n("1"))), None, false, false),
        (asks(Ask::Equal, n("2.0")), Some(n("2")), true, true),
        (asks(Ask::Differs, s("a")), Some(s("b")), true, true),
        (asks(Ask::Differs, s("a")), Some(s("a")), true, false),
        (asks(Ask::Differs, s("1")), Some(n("1")), true, true),
        (asks(Ask::Differs, s("a")), None, true, true),
        (asks(Ask::Differs, s("a")), None, false, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), None, true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), None, false, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[1, 255])), true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[2])), true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[2, 0])), true, false),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[200])), true, false),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(s("1")), true, false),
        (below_or_lacks("Other"), None, true, true),
        (below_or_lacks("Other"), None, false, true),
        (below_or_lacks("Other"), Some(b(&[1])), true, true),
        (below_or_lacks("Other"), Some(b(&[2])), true, false),
        (below_or_lacks("PK"), None, true, false),
        (below_or_lacks("PK"), None, false, true),
        (below_or_lacks("PK"), Some(b(&[1])), true, true),
        (below_or_lacks("PK"), Some(b(&[2])), true, false),
        (asks(Ask::AtLeast, n("10.0")), Some(n("10")), true, true),
        (asks(Ask::AtLeast, n("10")), Some(n("9.99")), true, false),
        (asks(Ask::AtLeast, n("10")), Some(s("9")), true, false),
        (asks(Ask::AtLeast, n("10")), None, true, false),
        (asks(Ask::AtLeast, n("10")), None, false, false),
        (Guard::still_zero(None), None, true, true),
        (Guard::still_zero(None), None, false, true),
        (Guard::still_zero(None), Some(n("0")), true, true),
        (Guard::still_zero(None), Some(n("0.01")), true, false),
        (Guard::still_zero(None), Some(n("-1")), true, false),
        (Guard::still_zero(None), Some(s("0")), true, false),
        (both(), None, true, true),
        (both(), None, false, false),
        (both(), Some(n("1")), true, false),
    ]
}

fn absent() -> Guard {
    Guard::absent(Purpose::Receipt)
}

fn present() -> Guard {
    Guard::present(Purpose::Update)
}

/// The attribute is below 2, or is missing together with another one.
fn below_or_lacks(other: &str) -> Guard {
    let ask = Ask::BelowOrLacksBoth(ATTRIBUTE.to_owned(), b(&[2]), other.to_owned());
    Guard { purpose: Purpose::Application, asks: vec![ask] }
}

/// An item exists, but lacks the attribute.
fn both() -> Guard {
    Guard { purpose: Purpose::Application, asks: vec![Ask::Present, Ask::Lacks(ATTRIBUTE.to_owned())] }
}

/// The least value of a bucket that had no greatest one.
fn bounds_as_read(value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::Bucket, [(ATTRIBUTE, value), ("Max", None)])
}

/// Two conditions on the item.
fn theirs(text: &str) -> Guard {
    Guard::as_read(Purpose::StillTheirs, [(ATTRIBUTE, Some(s(text))), ("Name", Some(s("old")))])
}

/// The item is as it was read: with this attribute and its name, and without a third one.
fn as_read(value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::Job, [(ATTRIBUTE, value), ("Name", Some(s("old"))), ("Third", None)])
}

fn b(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(bytes.to_vec())
}

fn asks(ask: impl Fn(String, AttributeValue) -> Ask, value: AttributeValue) -> Guard {
    Guard { purpose: Purpose::Application, asks: vec![ask(ATTRIBUTE.to_owned(), value)] }
}

/// Every guard on every action: the write, the item before and after it, and whether the guard succeeds.
fn cases() -> Vec<(Write, Option<Item>, Option<Item>, bool)> {
    let mut cases = Vec::new();
    for (position, (guard, value, is_there, holds)) in guards().into_iter().enumerate() {
        // A counter's guard checks all attributes of a counter, because any of them may not be zero.
        let attributes: &[&str] = if guard == Guard::still_zero(None) { &["Value", "Sum"] } else { &[ATTRIBUTE] };
        let actions = ["put", "update", "delete"];
        for (attribute, action) in attributes.iter().flat_map(|attribute| actions.map(|action| (*attribute, action))) {
            let key = key(&format!("{position:02}#{attribute}#{action}"));
            let before = is_there.then(|| {
                let mut before = item(&key, [("Name", s("old"))]);
                before.extend(value.clone().map(|value| (attribute.to_owned(), value)));
                before
            });
            let (write, after) = acted(&key, action, before.as_ref());
            let after = if holds { after } else { before.clone() };
            cases.push((guarded(write, guard.clone()), before, after, holds));
        }
    }
    cases
}

fn acted(key: &Key, action: &str, before: Option<&Item>) -> (Write, Option<Item>) {
    match action {
        "put" => {
            let new = item(key, [("Name", s("new"))]);
            (put(key, new.clone()), Some(new))
        }
        "update" => {
            let mut after = before.cloned().unwrap_or_else(|| item(key, []));
            after.insert("Name".to_owned(), s("new"));
            (set(key, [("Name", s("new"))]), Some(after))
        }
        _ => (delete(key), None),
    }
}

async fn arrange<S: Store>(bed: &Bed<S>, write: &Write, before: Option<Item>) {
    if let Some(before) = before {
        bed.done(&put(&write.key, before)).await;
    }
}

pub(crate) async fn every_ask_is_tried<S: Store>(bed: Bed<S>) {
    let name = |ask: &Ask| match ask {
        Ask::Absent => "absent",
        Ask::Present => "present",
        Ask::Lacks(_) => "lacks",
        Ask::Equal(..) => "equal",
        Ask::Differs(..) => "differs",
        Ask::AtLeast(..) => "at least",
        Ask::LacksOrEqual(..) => "lacks or equal",
        Ask::LacksOrBelow(..) => "lacks or below",
        Ask::BelowOrLacksBoth(..) => "below or lacks both",
    };
    let tried: BTreeSet<&str> = guards().iter().flat_map(|(guard, ..)| guard.asks.iter().map(name)).collect();
    bed.same(&tried.len(), &9, "what guards ask");
}

pub(crate) async fn a_guard_decides_over_a_single_write<S: Store>(bed: Bed<S>) {
    for (write, before, after, holds) in cases() {
        arrange(&bed, &write, before).await;
        let outcome = bed.store.write(&write).await.unwrap();
        let outcome_wanted = if holds { Outcome::Done { units: 1.0 } } else { Outcome::GuardFailed };
        bed.same(&outcome, &outcome_wanted, &write);
        bed.same(&bed.item(&write.key).await, &after, &write);
    }
}

pub(crate) async fn a_guard_decides_over_a_transaction<S: Store>(bed: Bed<S>) {
    for (write, before, after, holds) in cases() {
        arrange(&bed, &write, before).await;
        let other = Key::new("P#2", &write.key.sk);
        let outcome = bed.transact(vec![put(&other, item(&other, [])), write.clone()]).await;
        if let TransactOutcome::Cancelled { reasons } = &outcome {
            bed.same(reasons, &vec![Reason::None, Reason::GuardFailed], &write);
        }
        bed.same(&matches!(outcome, TransactOutcome::Done { .. }), &holds, &write);
        bed.same(&bed.item(&write.key).await, &after, &write);
        bed.same(&bed.item(&other).await.is_some(), &holds, &write);
    }
}

pub(crate) async fn a_transaction_checks_an_item_that_it_does_not_write<S: Store>(bed: Bed<S>) {
    for (write, before, _, holds) in cases().into_iter().filter(|(write, ..)| write.key.sk.ends_with("put")) {
        arrange(&bed, &write, before.clone()).await;
        let check = Write { action: Action::Check, ..write };
        let other = Key::new("P#2", &check.key.sk);
        let outcome = bed.transact(vec![put(&other, item(&other, [])), check.clone()]).await;
        if let TransactOutcome::Cancelled { reasons } = &outcome {
            bed.same(reasons, &vec![Reason::None, Reason::GuardFailed], &check);
        }
        bed.same(&matches!(outcome, TransactOutcome::Done { .. }), &holds, &check);
        bed.same(&bed.item(&check.key).await, &before, &check);
        bed.same(&bed.item(&other).await.is_some(), &holds, &check);
    }
    let alone = Write { action: Action::Check, ..guarded(put(&key("a"), item(&key("a"), [])), absent()) };
    bed.same(&bed.store.write(&alone).await.unwrap_err().is_retry(), &false, "a check alone");
}

pub(crate) async fn a_value_is_unchanged_whatever_its_form<S: Store>(bed: Bed<S>) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let list = |values: Vec<AttributeValue>| AttributeValue::L(values);
    let of = |name: &str, value| AttributeValue::M([(name.to_owned(), value)].into());
    for (position, (stored, asked, holds)) in [
        (n("2"), n("2.0"), true),
        (n("100"), n("1E2"), true),
        (AttributeValue::Ss(texts(&["a", "b"])), AttributeValue::Ss(texts(&["b", "a"])), true),
        (AttributeValue::Ns(texts(&["1", "2"])), AttributeValue::Ns(texts(&["2.0", "1"])), true),
        (AttributeValue::Bs(vec![vec![1], vec![2]]), AttributeValue::Bs(vec![vec![2], vec![1]]), true),
        (list(vec![n("1"), s("a")]), list(vec![n("1.0"), s("a")]), true),
        (list(vec![n("1"), s("a")]), list(vec![s("a"), n("1")]), false),
        (of("k", n("1")), of("k", n("1.0")), true),
        (of("k", n("1")), of("l", n("1")), false),
        (AttributeValue::Null(true), AttributeValue::Null(true), true),
        (AttributeValue::Bool(true), AttributeValue::Bool(false), false),
        (s(""), s(""), true),
        (AttributeValue::B(vec![0, 255]), AttributeValue::B(vec![0, 255]), true),
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        bed.done(&put(&key, item(&key, [(ATTRIBUTE, stored.clone())]))).await;
        let write = guarded(set(&key, [("Name", s("new"))]), unchanged(ATTRIBUTE, Some(asked.clone())));
        let is_done = matches!(bed.store.write(&write).await.unwrap(), Outcome::Done { .. });
        bed.same(&is_done, &holds, (stored, asked));
    }
}
