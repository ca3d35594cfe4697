//! Transactions: all actions or none, and the cancellation reasons.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::key::Key;
use store::{Reason, Store, TransactOutcome};

use crate::contract::{
    bed::Bed,
    items::{add, delete, guarded, in_ledger, item, key, n, put, s, set, unchanged},
};

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
