//! Random writes: the model responds like the embedded DynamoDB, units and reasons included, and ends with the same
//! items.
//!
//! The domain is tiny, so that writes conflict. An update that only removes attributes of a missing item is left out:
//! in the model it creates no item, as seen on AWS (<https://github.com/scylladb/scylladb/issues/5862>, by the older
//! parameters); in the embedded DynamoDB and in DynamoDB Local it creates one with only the key. The service sends none
//! without a guard.

use derive::{
    guard::{Guard, Purpose},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key, value::same_item};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome};

use crate::contract::{
    bed::{Bed, embedded, memory, runtime},
    items::{add, delete, guarded, in_ledger, item, map, n, put, s, unchanged, update},
};

fn value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        select(vec![n("1"), n("1.0"), n("-2.5"), n("40")]),
        select(vec![s("x"), s(""), AttributeValue::Null(true)]),
        (0usize..3_000).prop_map(|bytes| s(&"y".repeat(bytes))),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["Name", "Value", "a.b"])
}

/// Attributes, sometimes with the keys of the index.
fn attributes() -> impl Strategy<Value = Item> {
    let index = (prop::option::of(select(vec!["G", "H"])), prop::option::of(select(vec!["1", "2"])));
    (vec((name(), value()), 0..3), index).prop_map(|(attributes, (pk, sk))| {
        let mut item: Item = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        item.extend(pk.map(|pk| ("GSI1PK".to_owned(), s(pk))));
        item.extend(sk.map(|sk| ("GSI1SK".to_owned(), s(sk))));
        item
    })
}

fn guard() -> impl Strategy<Value = Option<Guard>> {
    prop_oneof![
        4 => Just(None),
        1 => Just(Some(Guard::absent(Purpose::Receipt))),
        1 => Just(Some(Guard::present(Purpose::Update))),
        1 => (name(), prop::option::of(value())).prop_map(|(name, value)| Some(unchanged(name, value))),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let key = select(vec!["a", "b", "c"]).prop_map(|sk| Key::new("P", sk));
    let removed = select(vec!["Gone", "GSI1SK", "GSI1PK"]);
    let action =
        (key, attributes(), removed, 0..4, -3i64..4).prop_map(|(key, attributes, removed, kind, amount)| match kind {
            0 => {
                let mut all = item(&key, []);
                all.extend(attributes);
                put(&key, all)
            }
            1 => {
                let mut set = map([("Set", n("1"))]);
                set.extend(attributes.into_iter().filter(|(name, _)| name != removed && name != "Value"));
                update(&key, set, &[removed], &[("Value", amount)])
            }
            2 => add(&key, "Value", amount),
            _ => delete(&key),
        });
    (action, guard(), any::<bool>()).prop_map(|(write, guard, ledger)| {
        let write = match guard {
            Some(guard) => guarded(write, guard),
            None => write,
        };
        if ledger { in_ledger(write) } else { write }
    })
}

/// Makes the writes, alone or together; returns the results as text, and the items of the tables.
async fn play<S: Store>(bed: &Bed<S>, script: &[(Vec<Write>, bool)]) -> (Vec<String>, Vec<Item>) {
    let mut words = Vec::new();
    for (writes, together) in script {
        match Transaction::new(writes.clone()) {
            Ok(transaction) if *together => {
                words.push(match bed.store.transact(&transaction).await.unwrap() {
                    TransactOutcome::Done { units } => format!("{units:?}"),
                    TransactOutcome::Cancelled { reasons } => {
                        let reason = |reason| match reason {
                            Reason::Rejected(_) => "Rejected".to_owned(),
                            other => format!("{other:?}"),
                        };
                        format!("{:?}", reasons.into_iter().map(reason).collect::<Vec<_>>())
                    }
                });
            }
            _ => {
                for write in writes {
                    words.push(match bed.store.write(write).await {
                        Ok(Outcome::Done { units }) => format!("{units}"),
                        Ok(Outcome::GuardFailed) => "GuardFailed".to_owned(),
                        Err(error) => format!("retry: {}", error.is_retry()),
                    });
                }
            }
        }
    }
    let mut items = Vec::new();
    for table in [Table::Main, Table::Ledger] {
        items.extend(bed.scan_all(table).await.0);
    }
    (words, items)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_does_what_the_embedded_one_does(script in vec((vec(write(), 1..5), any::<bool>()), 1..30)) {
        let (model, real) = runtime().block_on(async {
            (play(&memory(), &script).await, play(&embedded().await, &script).await)
        });
        prop_assert_eq!(&model.0, &real.0);
        let (mut stored, mut modelled) = (real.1, model.1);
        let key = |item: &Item| format!("{:?} {:?}", item.get("PK"), item.get("SK"));
        stored.sort_by_key(key);
        modelled.sort_by_key(key);
        let is_same = stored.len() == modelled.len() && stored.iter().zip(&modelled).all(|(a, b)| same_item(a, b));
        prop_assert!(is_same, "embedded {:?}, model {:?}", stored, modelled);
    }
}
