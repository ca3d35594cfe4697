//! The ways of counting that are written by hand.
//!
//! [`ADD` change by change](add_each) and [summed by batch](add_summed) count again after a retry.
//! A [transaction](transactions) with a marker for each change counts once.
//!
//! [`powertools`] is the idempotency of Powertools for AWS Lambda (Python) for each record, here as a reimplementation of
//! its protocol on DynamoDB. Source: `aws-lambda-powertools` 3.37.0, `utilities/idempotency/base.py` and
//! `persistence/dynamodb.py`. `_put_record` puts an item with the status `INPROGRESS` unless there is one, or the one that
//! is there is still in progress after its time; the function of the record runs; `_update_record` sets the status
//! `COMPLETED` and the result. The item that `_put_record` found comes with its refusal: `COMPLETED` is done, and
//! `INPROGRESS` fails the record (`IdempotencyAlreadyInProgressError`). The Lambda context is registered, so an item is in
//! progress for as long as the invocation may last. No item expires in this run, so that condition is left out.
//!
//! Each call that has lost its answer is sent again, as the SDKs do. A transaction is sent again under another token, so
//! that its markers decide, as they do for a new function.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use benches::joins::{COUNTER_SK, group};
use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, TRANSACT_ACTIONS_MAX, Table, Transaction, Update, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;
use store::{Reason, Store, StoreError, TransactOutcome, Updated};

/// How long an invocation may last, in milliseconds.
pub(crate) const INVOCATION_MS: u64 = 60_000;

/// An addition to the counter of a group, without any protection.
fn add(into: usize, n_changes: usize) -> Write {
    let add = Item::from([("Value".to_owned(), AttributeValue::N(n_changes.to_string()))]);
    let action = Action::Update(Update { add, ..Update::default() });
    Write { table: Table::Main, key: Key::new(group(into), COUNTER_SK), action, guard: None }
}

/// The answer to a call, which is sent again until there is one.
async fn answered<T>(mut call: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retry(), "{error}"),
        }
    }
}

pub(crate) async fn add_each(store: &impl Store, groups: &[usize], changes: Range<usize>) {
    for into in &groups[changes] {
        answered(async || store.write(&add(*into, 1)).await).await;
    }
}

pub(crate) async fn add_summed(store: &impl Store, groups: &[usize], changes: Range<usize>) {
    for (into, n_changes) in summed(groups, changes) {
        answered(async || store.write(&add(into, n_changes)).await).await;
    }
}

/// Changes of each group.
pub(crate) fn summed(groups: &[usize], changes: impl IntoIterator<Item = usize>) -> BTreeMap<usize, usize> {
    changes.into_iter().fold(BTreeMap::new(), |mut summed, change| {
        *summed.entry(groups[change]).or_default() += 1;
        summed
    })
}

pub(crate) async fn transactions(store: &impl Store, layout: &Layout, groups: &[usize], changes: Range<usize>) {
    let (mut parts, mut part, mut into) = (Vec::new(), Vec::new(), BTreeSet::new());
    for change in changes {
        into.insert(groups[change]);
        if part.len() + 1 + into.len() > TRANSACT_ACTIONS_MAX {
            parts.push(std::mem::take(&mut part));
            into = BTreeSet::from([groups[change]]);
        }
        part.push(change);
    }
    parts.push(part);
    for mut part in parts {
        while !part.is_empty() {
            let markers = part.iter().map(|change| marker(layout, *change));
            let adds = summed(groups, part.iter().copied());
            let writes = markers.chain(adds.into_iter().map(|(into, n_changes)| add(into, n_changes)));
            let transaction = Transaction::new(writes.collect()).expect("a transaction");
            match answered(async || store.transact(&transaction).await).await {
                TransactOutcome::Done { .. } => break,
                // A change that has its marker is counted.
                TransactOutcome::Cancelled { reasons } => {
                    let n_before = part.len();
                    let mut reasons = reasons.into_iter();
                    part.retain(|_| !matches!(reasons.next(), Some(Reason::GuardFailed)));
                    assert!(part.len() < n_before, "a transaction is cancelled by its markers only");
                }
            }
        }
    }
}

fn marker(layout: &Layout, change: usize) -> Write {
    let key = Key::new(format!("MARKER#{change:032x}"), "MARKER");
    let (item, guard) = (layout.key_item(&key), Some(Guard::absent(Purpose::Application)));
    Write { table: Table::Ledger, key, action: Action::Put(item), guard }
}

/// Returns the first change that failed.
pub(crate) async fn powertools(
    store: &impl Store,
    groups: &[usize],
    changes: Range<usize>,
    now_ms: u64,
) -> Option<usize> {
    let mut failed = None;
    for change in changes {
        let is_done = match answered(async || store.update(&in_progress(change, now_ms)).await).await {
            Updated::Done { .. } => {
                answered(async || store.write(&add(groups[change], 1)).await).await;
                answered(async || store.write(&completed(change, now_ms)).await).await;
                true
            }
            Updated::GuardFailed { item } => item.is_some_and(|item| item.get("status") == Some(&text("COMPLETED"))),
        };
        if !is_done {
            failed = failed.or(Some(change));
        }
    }
    failed
}

fn idempotency(change: usize, set: Item, guard: Option<Guard>) -> Write {
    let key = Key::new(format!("count#{change:032x}"), "IDEMPOTENCY");
    Write { table: Table::Ledger, key, action: Action::Update(Update::set(set)), guard }
}

/// `_put_record`. It sets all attributes that an item in progress has, so the item is the same after a put.
fn in_progress(change: usize, now_ms: u64) -> Write {
    let set = [
        ("expiration", number(now_ms / 1_000 + 3_600)),
        ("status", text("INPROGRESS")),
        ("in_progress_expiration", number(now_ms + INVOCATION_MS)),
    ];
    let asks = vec![
        Ask::LacksOrEqual("status".to_owned(), text("INPROGRESS")),
        Ask::LacksOrBelow("in_progress_expiration".to_owned(), number(now_ms)),
    ];
    let set = set.map(|(name, value)| (name.to_owned(), value)).into();
    idempotency(change, set, Some(Guard { purpose: Purpose::Application, asks }))
}

/// `_update_record`.
fn completed(change: usize, now_ms: u64) -> Write {
    let set = [("expiration", number(now_ms / 1_000 + 3_600)), ("data", text("null")), ("status", text("COMPLETED"))];
    idempotency(change, set.map(|(name, value)| (name.to_owned(), value)).into(), None)
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
