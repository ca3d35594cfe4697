//! Updates.

use derive::{
    guard::{Guard, Purpose},
    tally::Sum,
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome};

use crate::contract::{
    bed::Bed,
    items::{add, delete, guarded, in_ledger, item, item_of_bytes, key, n, put, s, set, unchanged, update, write},
};

pub(crate) async fn an_update_sets_removes_and_adds<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let before = [("Name", s("old")), ("Gone", s("x")), ("Kept", s("k")), ("Value", n("40"))];
    bed.done(&put(&key, item(&key, before))).await;
    let set = item(&key, [("Name", s("new")), ("More", s("m"))]);
    let set: Item = set.into_iter().filter(|(name, _)| name != "PK" && name != "SK").collect();
    bed.done(&update(&key, set, &["Gone", "NeverThere"], &[("Value", 2), ("Sum", -7)])).await;
    let after = [("Name", s("new")), ("More", s("m")), ("Kept", s("k")), ("Value", n("42")), ("Sum", n("-7"))];
    bed.same(&bed.item(&key).await, &Some(item(&key, after)), "after");
}

pub(crate) async fn an_update_makes_a_missing_item<S: Store>(bed: Bed<S>) {
    let (a, b, c) = (key("a"), key("b"), key("c"));
    bed.done(&set(&a, [("Name", s("x"))])).await;
    bed.done(&add(&b, "Value", 0)).await;
    let nothing = guarded(update(&c, Item::new(), &["Name"], &[]), Guard::present(Purpose::Update));
    bed.same(&bed.store.write(&nothing).await.unwrap(), &Outcome::GuardFailed, "a removal from nothing");
    bed.same(&bed.item(&a).await, &Some(item(&a, [("Name", s("x"))])), "set");
    bed.same(&bed.item(&b).await, &Some(item(&b, [("Value", n("0"))])), "add");
    bed.same(&bed.item(&c).await, &None, "remove");
}

pub(crate) async fn an_addition_is_exact<S: Store>(bed: Bed<S>) {
    for (sk, before, amount, after) in [
        ("a", "0.1", 2, "2.1"),
        ("b", "99999999999999999999999999999999999998", 1, "99999999999999999999999999999999999999"),
        ("c", "-5", 5, "0"),
        ("d", "9223372036854775807", i64::MAX, "18446744073709551614"),
        ("e", "0", i64::MIN, "-9223372036854775808"),
        ("f", "1E3", 1, "1001"),
        ("g", "0.50", -1, "-0.5"),
    ] {
        let key = key(sk);
        bed.done(&put(&key, item(&key, [("Value", n(before))]))).await;
        bed.done(&add(&key, "Value", amount)).await;
        bed.same(&bed.item(&key).await, &Some(item(&key, [("Value", n(after))])), (before, amount));
    }
    let key = key("h");
    bed.done(&put(&key, item(&key, [("Value", n("0.12345678901234567890123456789012345678"))]))).await;
    let error = bed.store.write(&add(&key, "Value", 1)).await.unwrap_err();
    bed.same(&error.is_retry(), &false, "a sum of 39 digits");
}

pub(crate) async fn decimals_are_added_exactly<S: Store>(bed: Bed<S>) {
    for (sk, before, amount, after) in [
        ("a", "0.1", "0.2", "0.3"),
        ("b", "12345678901234567890123456789012345.67", "0.33", "12345678901234567890123456789012346"),
        ("c", "-19.99", "19.990", "0"),
        ("d", "1E-20", "1", "1.00000000000000000001"),
    ] {
        let key = key(sk);
        bed.done(&put(&key, item(&key, [("Sum", n(before))]))).await;
        let add = Item::from([("Sum".to_owned(), n(amount))]);
        bed.done(&write(&key, Action::Update(Update { add, ..Update::default() }))).await;
        // DynamoDB Local (1.25.1) keeps zeros at the end of a decimal.
        let stored = bed.item(&key).await.and_then(|item| Sum::of(item.get("Sum")?));
        bed.same(&stored, &Sum::of(&n(after)), (before, amount));
    }
}

pub(crate) async fn elements_are_added_to_and_taken_from_a_set<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let set = |texts: &[&str]| AttributeValue::Ss(texts.iter().map(|&text| text.to_owned()).collect());
    let tags = |texts: &[&str]| Item::from([("Tags".to_owned(), set(texts))]);
    let add = |texts: &[&str]| write(&key, Action::Update(Update { add: tags(texts), ..Update::default() }));
    let delete = |texts: &[&str]| write(&key, Action::Update(Update { delete: tags(texts), ..Update::default() }));
    for (done, after) in [
        (add(&["b", "a"]), Some(set(&["a", "b"]))),
        (add(&["b", "c"]), Some(set(&["a", "b", "c"]))),
        (delete(&["a", "x"]), Some(set(&["b", "c"]))),
        (delete(&["b", "c"]), None),
        (delete(&["b"]), None),
    ] {
        bed.done(&done).await;
        let mut held = bed.item(&key).await.unwrap();
        if let Some(AttributeValue::Ss(texts)) = held.get("Tags") {
            let mut texts = texts.clone();
            texts.sort();
            held.insert("Tags".to_owned(), AttributeValue::Ss(texts));
        }
        bed.same(&held.get("Tags").cloned(), &after, &done);
    }
    bed.done(&put(&key, item(&key, [("Tags", s("text"))]))).await;
    for wrong in [add(&["a"]), delete(&["a"])] {
        bed.same(&bed.store.write(&wrong).await.unwrap_err().is_retry(), &false, &wrong);
    }
}

pub(crate) async fn an_addition_to_a_text_is_refused<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let before = item(&key, [("Name", s("x")), ("Value", s("12"))]);
    bed.done(&put(&key, before.clone())).await;
    let write = update(&key, Item::new(), &["Name"], &[("Value", 1)]);
    let error = bed.store.write(&write).await.unwrap_err();
    bed.same(&error.is_retry(), &false, &error);
    assert!(error.to_string().contains(&key.to_string()), "{}: {error}", bed.name);
    bed.same(&bed.item(&key).await, &Some(before), "nothing is done");
}

pub(crate) async fn a_failed_guard_comes_before_a_wrong_type<S: Store>(bed: Bed<S>) {
    let key = key("a");
    bed.done(&put(&key, item(&key, [("Value", s("12"))]))).await;
    let write = guarded(add(&key, "Value", 1), Guard::absent(Purpose::Receipt));
    bed.same(&bed.store.write(&write).await.unwrap(), &Outcome::GuardFailed, "alone");
    let outcome = bed.transact(vec![write]).await;
    let reasons = vec![Reason::GuardFailed];
    bed.same(&outcome, &TransactOutcome::Cancelled { reasons }, "in a transaction");
}

pub(crate) async fn an_attribute_may_have_any_name<S: Store>(bed: Bed<S>) {
    // Reserved words, and names that an expression would read as its own syntax.
    let names = ["Name", "Value", "size", "a.b", "a#b", "#g", ":g", "a b", "[0]", "ä€", "0", "and", "x = y"];
    for (position, name) in names.into_iter().enumerate() {
        let key = key(&position.to_string());
        bed.done(&set(&key, [(name, s("x"))])).await;
        let guard = crate::contract::items::unchanged(name, Some(s("x")));
        bed.done(&guarded(update(&key, Item::new(), &[name], &[("n", 1)]), guard)).await;
        bed.done(&add(&key, name, 3)).await;
        bed.all_done(vec![add(&key, name, 4)]).await;
        bed.same(&bed.item(&key).await, &Some(item(&key, [(name, n("7")), ("n", n("1"))])), name);
    }
}

pub(crate) async fn an_update_cannot_grow_an_item_past_the_limit<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let before = item_of_bytes(&key, 409_000);
    bed.done(&put(&key, before.clone())).await;
    let grow = set(&key, [("More", s(&"y".repeat(1_000)))]);
    let error = bed.store.write(&grow).await.unwrap_err();
    bed.same(&error.is_retry(), &false, &error);
    bed.is_rejected(vec![grow], vec![Reason::Rejected(String::new())]).await;
    bed.same(&bed.item(&key).await.as_ref(), &Some(&before), "nothing is done");
}

// ---- Transactions: all actions or none, and the cancellation reasons ----

pub(crate) async fn reasons_stand_by_position<S: Store>(bed: Bed<S>) {
    let (receipt, counter, gone, free) = (key("r"), key("c"), key("g"), key("f"));
    bed.done(&in_ledger(put(&receipt, item(&receipt, [])))).await;
    let writes = vec![
        add(&counter, "Value", 1),
        guarded(in_ledger(put(&receipt, item(&receipt, []))), Guard::absent(Purpose::Receipt)),
        guarded(put(&free, item(&free, [])), Guard::absent(Purpose::Receipt)),
        guarded(delete(&gone), Guard::present(Purpose::Update)),
    ];
    let reasons = vec![Reason::None, Reason::GuardFailed, Reason::None, Reason::GuardFailed];
    bed.same(&bed.transact(writes).await, &TransactOutcome::Cancelled { reasons }, "reasons");
}

pub(crate) async fn a_wrong_type_is_rejected_by_position<S: Store>(bed: Bed<S>) {
    let (receipt, counter, text, digits) = (key("r"), key("c"), key("t"), key("d"));
    bed.done(&in_ledger(put(&receipt, item(&receipt, [])))).await;
    bed.done(&put(&text, item(&text, [("Value", s("x"))]))).await;
    bed.done(&put(&digits, item(&digits, [("Value", n("0.12345678901234567890123456789012345678"))]))).await;
    let writes = vec![
        add(&counter, "Value", 1),
        guarded(in_ledger(put(&receipt, item(&receipt, []))), Guard::absent(Purpose::Receipt)),
        add(&text, "Value", 1),
        add(&digits, "Value", 1),
    ];
    let rejected = || Reason::Rejected(String::new());
    bed.is_rejected(writes, vec![Reason::None, Reason::GuardFailed, rejected(), rejected()]).await;
    bed.same(&bed.item(&counter).await, &None, "nothing is done");
}

pub(crate) async fn a_cancelled_transaction_does_nothing<S: Store>(bed: Bed<S>) {
    let (a, b, c, d) = (key("a"), key("b"), key("c"), key("d"));
    for key in [&a, &b, &c] {
        bed.done(&put(key, item(key, [("Value", n("1"))]))).await;
    }
    let (before, _) = bed.scan_all(Table::Main).await;
    let writes = vec![
        add(&a, "Value", 1),
        put(&b, item(&b, [])),
        delete(&c),
        in_ledger(put(&d, item(&d, []))),
        guarded(set(&d, [("Name", s("x"))]), unchanged("Name", Some(s("y")))),
    ];
    let TransactOutcome::Cancelled { .. } = bed.transact(writes).await else {
        panic!("{}: should be cancelled", bed.name);
    };
    bed.same(&bed.scan_all(Table::Main).await.0, &before, "the main table");
    bed.same(&bed.scan_all(Table::Ledger).await.0, &vec![], "the ledger");
}

pub(crate) async fn a_transaction_spans_both_tables<S: Store>(bed: Bed<S>) {
    let same = key("same");
    let units = bed.all_done(vec![add(&same, "Value", 3), in_ledger(add(&same, "Other", 4))]).await;
    bed.same_units(&units, &[(Table::Main, 2.0), (Table::Ledger, 2.0)], "units by table");
    let in_table = async |table| bed.store.get(table, std::slice::from_ref(&same)).await.unwrap();
    let main = item(&same, [("Value", n("3"))]);
    bed.same(&in_table(Table::Main).await, &vec![(same.clone(), main)], "main");
    let ledger = item(&same, [("Other", n("4"))]);
    bed.same(&in_table(Table::Ledger).await, &vec![(same.clone(), ledger)], "ledger");
}

pub(crate) async fn an_item_is_deleted_while_its_owner_is_absent_and_it_is_still_theirs<S: Store>(bed: Bed<S>) {
    let (owner, other, hanging) = (key("owner"), key("other"), key("hanging"));
    let says = Guard::as_read(Purpose::StillTheirs, [("Name", Some(s("ann")))]);
    let absent =
        |key: &Key| Write { action: Action::Check, ..guarded(delete(key), Guard::absent(Purpose::OwnerAbsent)) };
    let deletion = || vec![absent(&owner), absent(&other), guarded(delete(&hanging), says.clone())];
    bed.done(&put(&hanging, item(&hanging, [("Name", s("ann"))]))).await;

    bed.done(&put(&other, item(&other, []))).await;
    let reasons = vec![Reason::None, Reason::GuardFailed, Reason::None];
    bed.same(&bed.transact(deletion()).await, &TransactOutcome::Cancelled { reasons }, "an owner is there");
    bed.done(&delete(&other)).await;

    bed.done(&put(&hanging, item(&hanging, [("Name", s("bob"))]))).await;
    let reasons = vec![Reason::None, Reason::None, Reason::GuardFailed];
    bed.same(&bed.transact(deletion()).await, &TransactOutcome::Cancelled { reasons }, "it is somebody else's");
    bed.done(&put(&hanging, item(&hanging, [("Name", s("ann"))]))).await;

    let units = bed.all_done(deletion()).await;
    bed.same_units(&units, &[(Table::Main, 6.0)], "units, the checks' included");
    bed.same(&bed.item(&hanging).await, &None, "it is gone");
}

pub(crate) async fn a_transaction_has_a_hundred_actions<S: Store>(bed: Bed<S>) {
    let keys: Vec<_> = (0..100).map(|position| key(&format!("{position:03}"))).collect();
    let units = bed.all_done(keys.iter().map(|key| add(key, "Value", 1)).collect()).await;
    bed.same_units(&units, &[(Table::Main, 200.0)], "units");
    let mut again: Vec<_> = keys.iter().map(|key| add(key, "Value", 1)).collect();
    again[99].guard = Some(Guard::absent(Purpose::Receipt));
    let TransactOutcome::Cancelled { reasons } = bed.transact(again).await else {
        panic!("{}: should be cancelled", bed.name);
    };
    let failed: Vec<usize> = (0..reasons.len()).filter(|&position| reasons[position] != Reason::None).collect();
    bed.same(&failed, &vec![99], "the last one's guard");
    let found = bed.store.get(Table::Main, &keys).await.unwrap();
    bed.same(&found.len(), &100, "items");
    assert!(found.iter().all(|(_, item)| item.get("Value") == Some(&n("1"))), "{}: {found:?}", bed.name);
}
