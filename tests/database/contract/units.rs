//! The price of writes: the model counts as DynamoDB does.

use derive::{
    guard::{Guard, Purpose},
    write::Table,
};
use keys::{item::Item, size::item_bytes};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::contract::{
    bed::Bed,
    items::{add, delete, guarded, in_ledger, item, item_of_bytes, key, n, put, s, set, update},
};

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
