//! Updates and transactions; values are read as they were written; and the price of writes.

use std::collections::HashMap;

use derive::{
    guard::{Guard, Purpose},
    tally::Sum,
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key, size::item_bytes, value::same_item};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome};

use crate::{
    contract::{
        Bed, add, delete, guarded, in_ledger, item, item_of_bytes, key, layout, put, set, unchanged, update, write,
    },
    n, s,
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
        let mut stored = bed.item(&key).await.unwrap();
        if let Some(AttributeValue::Ss(texts)) = stored.get("Tags") {
            let mut texts = texts.clone();
            texts.sort();
            stored.insert("Tags".to_owned(), AttributeValue::Ss(texts));
        }
        bed.same(&stored.get("Tags").cloned(), &after, &done);
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
        let guard = crate::contract::unchanged(name, Some(s("x")));
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

// ---- Values are read as they were written ----

pub(crate) async fn every_type_comes_back<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut nested = s("deep");
    for _ in 0..15 {
        nested = AttributeValue::L(vec![AttributeValue::M([("k".to_owned(), nested)].into()), n("1")]);
    }
    let attributes = [
        ("s", s("ä€😀\n\"\\")),
        ("s-empty", s("")),
        ("n", n("-12.5")),
        ("b", AttributeValue::B(vec![0, 1, 254, 255])),
        ("b-empty", AttributeValue::B(vec![])),
        ("bool-true", AttributeValue::Bool(true)),
        ("bool-false", AttributeValue::Bool(false)),
        ("null", AttributeValue::Null(true)),
        ("ss", AttributeValue::Ss(texts(&["b", "a", ""]))),
        ("ns", AttributeValue::Ns(texts(&["3", "-1", "2.5"]))),
        ("bs", AttributeValue::Bs(vec![vec![2], vec![1, 1]])),
        ("l", AttributeValue::L(vec![n("1"), s("a"), AttributeValue::Null(true)])),
        ("l-empty", AttributeValue::L(vec![])),
        ("m", AttributeValue::M([("a.b".to_owned(), n("1")), ("#".to_owned(), s("x"))].into())),
        ("m-empty", AttributeValue::M(HashMap::new())),
        ("nested", nested),
    ];
    let stored = item(&key, attributes.clone());
    bed.done(&put(&key, stored.clone())).await;
    let found = bed.item(&key).await.unwrap();
    assert!(same_item(&found, &stored), "in the {} store: {found:?}", bed.name);
    bed.done(&set(&key, attributes)).await;
    let found = bed.item(&key).await.unwrap();
    assert!(same_item(&found, &stored), "in the {} store, by an update: {found:?}", bed.name);
}

pub(crate) async fn numbers_come_back_in_full<S: Store>(bed: Bed<S>) {
    for (position, (stored, form)) in [
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("-12345678901234567890123456789012345678", "-12345678901234567890123456789012345678"),
        ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
        ("1234567890123456789.0123456789012345678", "1234567890123456789.0123456789012345678"),
        ("007", "7"),
        ("1.500", "1.5"),
        ("1E3", "1000"),
        ("25e-1", "2.5"),
        ("-0", "0"),
        ("0.0", "0"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        bed.done(&put(&key, item(&key, [("Value", n(stored))]))).await;
        bed.same(&bed.item(&key).await, &Some(item(&key, [("Value", n(form))])), stored);
    }
}

pub(crate) async fn every_entity_from_e_01_to_e_29_comes_back<S: Store>(bed: Bed<S>) {
    let (schema, samples) = (catalogue::schema(), table_design::samples().unwrap());
    assert_eq!(samples.len(), schema.entities().count(), "a sample of each");
    for sample in samples {
        let key = layout().key(&sample).unwrap();
        bed.done(&put(&key, sample.clone())).await;
        let found = bed.item(&key).await.unwrap();
        assert!(same_item(&found, &sample), "{}: {key} comes back as {found:?}", bed.name);
        let entity = keys::item::text(&sample, "EntityType").unwrap();
        let definition = schema.entity(entity).unwrap();
        for name in definition.attributes.iter().chain(&definition.derived_attributes) {
            // An item of an order that is not cancelled lacks this attribute.
            assert!(found.contains_key(name) || name == "Cancelled", "{entity}.{name}");
        }
        assert!(definition.key.parse_key(&key).is_some(), "{}: {key} is of its form", definition.id);
        for index in &definition.indexes {
            let fields = definition.fields(&key, &found).unwrap();
            let wanted = definition.index_key(index, &fields).ok().flatten();
            let stored = keys::item::text(&found, &format!("{}PK", index.index)).map(str::to_owned);
            bed.same(&stored, &wanted.map(|key| key.pk), (&definition.id, &index.index));
        }
    }
}

// ---- The price of writes: the model counts as DynamoDB does ----

pub(crate) async fn a_put_costs_its_kilobytes<S: Store>(bed: Bed<S>) {
    for (bytes, units) in [(512, 1.0), (1_024, 1.0), (1_025, 2.0), (1_536, 2.0), (10_240, 10.0), (409_600, 400.0)] {
        let key = key(&bytes.to_string());
        bed.same(&bed.done(&put(&key, item_of_bytes(&key, bytes))).await, &units, bytes);
        bed.same(&bed.done(&in_ledger(put(&key, item_of_bytes(&key, bytes)))).await, &units, (Table::Ledger, bytes));
    }
    let key = key("1536");
    bed.same(&bed.done(&put(&key, item_of_bytes(&key, 300))).await, &2.0, "a smaller one over it");
    bed.same(&bed.done(&put(&key, item_of_bytes(&key, 300))).await, &1.0, "the same again");
}

pub(crate) async fn an_update_costs_the_larger_image<S: Store>(bed: Bed<S>) {
    let key = key("a");
    bed.same(&bed.done(&set(&key, [("Text", s(&"x".repeat(500)))])).await, &1.0, "a new item");
    bed.same(&bed.done(&set(&key, [("Text", s(&"x".repeat(2_500)))])).await, &3.0, "growing");
    bed.same(&bed.done(&add(&key, "Value", 1)).await, &3.0, "a small change");
    bed.same(&bed.done(&set(&key, [("Text", s("x"))])).await, &3.0, "shrinking");
    bed.same(&bed.done(&set(&key, [("Text", s("x"))])).await, &1.0, "no change");
    bed.same(&bed.done(&update(&key, Item::new(), &["Never"], &[])).await, &1.0, "a removal of nothing");
}

pub(crate) async fn a_delete_costs_what_was_there<S: Store>(bed: Bed<S>) {
    let key = key("a");
    bed.done(&put(&key, item_of_bytes(&key, 2_500))).await;
    bed.same(&bed.done(&delete(&key)).await, &3.0, "an item");
    bed.same(&bed.done(&delete(&key)).await, &1.0, "none");
}

pub(crate) async fn a_transaction_costs_twice<S: Store>(bed: Bed<S>) {
    let (a, b, c) = (key("a"), key("b"), key("c"));
    bed.done(&put(&c, item_of_bytes(&c, 2_500))).await;
    let receipt = guarded(in_ledger(put(&a, item_of_bytes(&a, 1_500))), Guard::absent(Purpose::Receipt));
    let units = bed.all_done(vec![receipt, add(&b, "Value", 1), delete(&c)]).await;
    bed.same_units(&units, &[(Table::Main, 8.0), (Table::Ledger, 4.0)], "a put, an addition and a delete");
    let units = bed.all_done(vec![add(&b, "Value", 1), delete(&c)]).await;
    bed.same_units(&units, &[(Table::Main, 4.0)], "an addition, and a delete of nothing");
}

pub(crate) async fn an_index_costs_what_changes_in_it<S: Store>(bed: Bed<S>) {
    let key = key("a");
    let indexed = |sk: &str, more: usize| {
        let attributes =
            [("GSI1PK", s("G")), ("GSI1SK", s(sk)), ("Name", s(&"n".repeat(1_500))), ("Bio", s(&"b".repeat(more)))];
        put(&key, item(&key, attributes))
    };
    bed.same(&bed.done(&indexed("1", 0)).await, &4.0, "table 2, index 2");
    bed.same(&bed.done(&indexed("1", 1_000)).await, &3.0, "what is not projected: table 3");
    bed.same(&bed.done(&indexed("2", 1_000)).await, &7.0, "a move: table 3, index 2 and 2");
    let units = bed.all_done(vec![indexed("3", 1_000)]).await;
    bed.same_units(&units, &[(Table::Main, 10.0)], "a move in a transaction: table twice 3, index 2 and 2");
    bed.same(&bed.done(&set(&key, [("Name", s("n"))])).await, &5.0, "projected: table 3, index the larger");
    bed.same(&bed.done(&set(&key, [("Value", n("1"))])).await, &3.0, "projected: table 2, index 1");
    bed.same(&bed.done(&set(&key, [("Value", n("1.0"))])).await, &2.0, "the same: table 2");
    bed.same(&bed.done(&update(&key, Item::new(), &["GSI1SK"], &[])).await, &3.0, "leaving: table 2, index 1");
    bed.same(&bed.done(&delete(&key)).await, &2.0, "not in the index: table 2");
}

pub(crate) async fn every_type_is_as_large_as_it_counts<S: Store>(bed: Bed<S>) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let list = AttributeValue::L(vec![s("ab"), AttributeValue::L(vec![]), n("1")]);
    for (position, value) in [
        s("ä€😀"),
        n("7"),
        n("12345678901234567890123456789012345678"),
        n("-12.345"),
        n("1000"),
        n("0.001"),
        n("0"),
        AttributeValue::B(vec![0; 7]),
        AttributeValue::Bool(false),
        AttributeValue::Null(true),
        AttributeValue::Ss(texts(&["a", "bc"])),
        AttributeValue::Ns(texts(&["1", "-2.5", "300"])),
        AttributeValue::Bs(vec![vec![1], vec![1, 2]]),
        AttributeValue::M([("key".to_owned(), list.clone())].into()),
        list,
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        let padded = |bytes: usize| {
            let empty = item_bytes(&item(&key, [("Value", value.clone()), ("Text", s(""))]));
            item(&key, [("Value", value.clone()), ("Text", s(&"x".repeat(bytes - empty)))])
        };
        bed.same(&bed.done(&put(&key, padded(1_024))).await, &1.0, (1_024, &value));
        bed.same(&bed.done(&put(&key, padded(1_025))).await, &2.0, (1_025, &value));
    }
}
