//! Conflicts and throttles are counted for the log and the metrics, and not stored.

use std::collections::BTreeSet;

use derive::family::Family;
use keys::counter::CounterKey;
use serde_json::Value;
use store::faulty::{Call, Fault, Side};

use crate::cases::bed::Bed;

/// The counter of this group is busy for this many attempts of a transaction.
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
async fn conflicts_and_throttles_are_counted_for_the_derivation_whose_counter_was_busy() {
    let mut bed = Bed::new().running(Family::Additive);
    let mut records = joined(&mut bed, "hot", 0..3).await;
    records.extend(joined(&mut bed, "quiet", 0..3).await);
    busy(&bed, "GROUP#hot", 2, Fault::Conflict);
    let handled = bed.handle(&records).await;
    let contention = &handled.account.contention;
    assert_eq!((contention.n_conflicts(), contention.n_throttles()), (2, 0));
    assert_eq!(contention.busy().as_deref(), Some("member-count 2"));

    busy(&bed, "GROUP#quiet", 1, |at| Fault::Throttle(BTreeSet::from([at])));
    let more = joined(&mut bed, "quiet", 3..4).await;
    assert_eq!(bed.handle(&more).await.account.contention.n_throttles(), 1);
    assert_eq!(bed.counted("member-count"), 7);
}
