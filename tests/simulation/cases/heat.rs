//! What was hot is recorded, and nothing hangs on the record.

use std::collections::BTreeSet;

use derive::{derivation::Family, write::Table};
use engine::heat::{EFFECTS_MIN, Heated, heated};
use keys::counter::CounterKey;
use serde_json::Value;
use store::faulty::{Call, Fault, Side};

use crate::cases::bed::Bed;

/// The record of the members of groups, as `group: effects in transactions, conflicts, throttles`.
async fn recorded(bed: &Bed) -> Vec<String> {
    let now_ms = engine::clock::Clock::now_ms(&bed.clock);
    let record = heated(bed.memory(), ["member-count"], (now_ms - 60_000, now_ms)).await.unwrap();
    let told = |Heated { hot, measured, .. }: &Heated| {
        let (effects, transactions) = (measured.n_effects, measured.n_transactions);
        let (conflicts, throttles) = (measured.n_conflicts, measured.n_throttles);
        format!("{}: {effects} in {transactions}, {conflicts}, {throttles}", hot.target.pk)
    };
    record.iter().map(told).collect()
}

/// So many sendings of a transaction find the counter of this group busy.
fn busy(bed: &Bed, group: &'static str, mut n_left: usize, fault: fn(usize) -> Fault) {
    bed.fails(move |call| {
        let Call::Transact(transaction) = call else { return None };
        let counts = |pk: &str, sk: &str| {
            CounterKey::parse(&keys::key::Key::new(pk, sk)).is_some_and(|counter| counter.target.pk == group)
        };
        let at = transaction.writes().iter().position(|write| counts(&write.key.pk, &write.key.sk))?;
        n_left = n_left.checked_sub(1)?;
        Some((Side::Before, fault(at)))
    });
}

async fn joined(bed: &mut Bed, group: &str, members: std::ops::Range<u64>) -> Vec<Value> {
    bed.memberships(members.map(|user| (format!("{group}-{user}"), group.to_owned()))).await
}

#[tokio::test]
async fn a_counter_that_met_others_leaves_a_measure_and_a_quiet_one_none() {
    let mut bed = Bed::new().running(Family::Additive);
    let mut records = joined(&mut bed, "hot", 0..3).await;
    records.extend(joined(&mut bed, "quiet", 0..3).await);
    busy(&bed, "GROUP#hot", 2, Fault::Conflict);
    let handled = bed.handle(&records).await;
    assert_eq!((handled.account.heat.n_conflicts(), handled.account.heat.n_throttles()), (2, 0));
    assert_eq!(handled.account.heat.busy().as_deref(), Some("member-count 2"));
    assert_eq!(recorded(&bed).await, ["GROUP#hot: 3 in 1, 2, 0"]);

    busy(&bed, "GROUP#quiet", 1, |at| Fault::Throttle(BTreeSet::from([at])));
    let more = joined(&mut bed, "quiet", 3..4).await;
    assert_eq!(bed.handle(&more).await.account.heat.n_throttles(), 1);
    busy(&bed, "GROUP#hot", 1, Fault::Conflict);
    let more = joined(&mut bed, "hot", 3..8).await;
    bed.handle(&more).await;
    assert_eq!(recorded(&bed).await, ["GROUP#hot: 8 in 2, 3, 0", "GROUP#quiet: 1 in 1, 0, 1"], "measures add up");
}

#[tokio::test]
async fn a_counter_of_many_changes_leaves_a_measure_though_it_met_nobody() {
    let mut bed = Bed::new().running(Family::Additive);
    let few = joined(&mut bed, "few", 1..EFFECTS_MIN).await;
    bed.handle(&few).await;
    assert_eq!(recorded(&bed).await, [""; 0]);
    let many = joined(&mut bed, "many", 0..EFFECTS_MIN).await;
    bed.handle(&many).await;
    assert_eq!(recorded(&bed).await, ["GROUP#many: 500 in 6, 0, 0"]);
}

#[tokio::test]
async fn a_measure_that_cannot_be_written_holds_nothing_up() {
    let mut bed = Bed::new().running(Family::Additive);
    let records = joined(&mut bed, "hot", 0..3).await;
    let mut n_left = 1;
    bed.fails(move |call| match call {
        Call::Write(write) if write.table == Table::Ledger => Some((Side::Before, Fault::Unanswered)),
        Call::Transact(_) if n_left > 0 => {
            n_left -= 1;
            Some((Side::Before, Fault::Conflict(3)))
        }
        _ => None,
    });
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.counted("member-count")), (None, 3));
    assert_eq!(recorded(&bed).await, [""; 0]);
    let measures = |call: &&String| call.contains("HEAT#");
    assert_eq!(bed.calls().iter().filter(measures).count(), 1, "it is sent once");
}
