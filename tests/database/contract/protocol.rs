//! The engine's transactions, in the forms that it sends.

use derive::{
    guard::{Guard, Purpose},
    write::{Table, Write},
};
use keys::key::Key;
use store::{Reason, Store, TransactOutcome};

use crate::contract::{
    bed::Bed,
    items::{add, delete, guarded, in_ledger, item, item_of_bytes, key, n, put, s, set},
};

fn receipt(id: &str) -> Write {
    let key = Key::new(format!("RECEIPT#{id}"), "RECEIPT");
    guarded(in_ledger(put(&key, item(&key, [("ExpiresAt", n("1705315200"))]))), Guard::absent(Purpose::Receipt))
}

fn moved(from: Option<&str>, to: &str) -> Write {
    let checkpoint = Key::new("CHECKPOINT#shard", "CHECKPOINT");
    let value = from.map(|from| s(&format!("{from:0>40}")));
    let to = [("Position", s(&format!("{to:0>40}"))), ("ExpiresAt", n("1705315200"))];
    guarded(in_ledger(set(&checkpoint, to)), Guard::as_read(Purpose::Checkpoint, [("Position", value)]))
}

fn reasons(outcome: TransactOutcome) -> Vec<Reason> {
    match outcome {
        TransactOutcome::Cancelled { reasons } => reasons,
        done @ TransactOutcome::Done { .. } => panic!("should be cancelled, and is {done:?}"),
    }
}

pub(crate) async fn receipts_say_by_position_which_changes_are_in<S: Store>(bed: Bed<S>) {
    let counter = key("COUNT");
    bed.all_done(vec![receipt("2"), receipt("4"), add(&counter, "Value", 2)]).await;
    let again = (1..=5).map(|id| receipt(&id.to_string())).chain([add(&counter, "Value", 5)]).collect();
    let (none, failed) = (Reason::None, Reason::GuardFailed);
    let wanted = [&none, &failed, &none, &failed, &none, &none].map(Clone::clone).to_vec();
    bed.same(&reasons(bed.transact(again).await), &wanted, "reasons");
    let rest = vec![receipt("1"), receipt("3"), receipt("5"), add(&counter, "Value", 3)];
    let units = bed.all_done(rest).await;
    bed.same_units(&units, &[(Table::Main, 2.0), (Table::Ledger, 6.0)], "units");
    bed.same(&bed.item(&counter).await, &Some(item(&counter, [("Value", n("5"))])), "the counter");
}

pub(crate) async fn a_checkpoint_moves_only_from_where_it_was_read<S: Store>(bed: Bed<S>) {
    let counter = key("COUNT");
    let units = bed.all_done(vec![moved(None, "7"), add(&counter, "Value", 1)]).await;
    bed.same_units(&units, &[(Table::Main, 2.0), (Table::Ledger, 2.0)], "units");
    // The same again, as after a lost response; and one by a caller that read it before it moved.
    for late in [moved(None, "7"), moved(Some("5"), "9")] {
        let outcome = bed.transact(vec![late, add(&counter, "Value", 1)]).await;
        bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None], "fenced off");
    }
    bed.all_done(vec![moved(Some("7"), "10"), add(&counter, "Value", 1)]).await;
    bed.same(&bed.item(&counter).await, &Some(item(&counter, [("Value", n("2"))])), "the counter");
}

pub(crate) async fn a_change_is_parked_with_its_proof_and_once<S: Store>(bed: Bed<S>) {
    // A record in two parts, each close to the size limit of an item.
    let part = |at: usize| {
        let key = Key::new("PARKED#additive", format!("e1#{at:02}"));
        in_ledger(put(&key, item_of_bytes(&key, 352 * 1024)))
    };
    bed.all_done(vec![receipt("e1"), part(0), part(1)]).await;
    let outcome = bed.transact(vec![receipt("e1"), part(0), part(1)]).await;
    bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None, Reason::None], "in already");
}

pub(crate) async fn a_parked_change_is_redriven_once<S: Store>(bed: Bed<S>) {
    let (parked, counter) = (Key::new("PARKED#additive", "e1#00"), key("COUNT"));
    bed.done(&in_ledger(put(&parked, item(&parked, [])))).await;
    let redrive =
        || vec![guarded(in_ledger(delete(&parked)), Guard::present(Purpose::StillParked)), add(&counter, "Value", 1)];
    bed.all_done(redrive()).await;
    let outcome = bed.transact(redrive()).await;
    bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None], "not parked any more");
    bed.same(&bed.item(&counter).await, &Some(item(&counter, [("Value", n("1"))])), "the counter");
}

pub(crate) async fn a_chunk_under_the_checkpoint_has_99_counters<S: Store>(bed: Bed<S>) {
    let counters = (0..99).map(|at| add(&key(&format!("{at:02}")), "Value", 1));
    let units = bed.all_done([moved(None, "1")].into_iter().chain(counters).collect()).await;
    bed.same_units(&units, &[(Table::Main, 198.0), (Table::Ledger, 2.0)], "units");
}
