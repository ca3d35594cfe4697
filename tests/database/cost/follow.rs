//! The price of one follow between existing users, with everything that follows from it, one record in each batch.

use engine::ledger::LedgerKind;
use expect_test::{Expect, expect};

use crate::cost::{ANN, BOB, Bed};

async fn check(ledger: LedgerKind, wanted: Expect) {
    let mut bed = Bed::new(ledger);
    // The second user follows first, so that the item of the stream shard is made.
    for item in [ANN, BOB, "USER#bob / FOLLOWS#ann : Follow"] {
        bed.put(item);
    }
    bed.settle(1).await;
    (bed.n_invocations, bed.n_reads) = (0, 0);
    bed.put("USER#ann / FOLLOWS#bob : Follow");
    let (units, n_records) = bed.settle(1).await;
    let units = units.values().fold(0.0, |sum, units| sum + units);
    let (n_invocations, n_reads) = (bed.n_invocations, bed.n_reads);
    let found = format!(
        "{ledger}: {units} write units, {} stream records of ours, {n_reads} reads, {n_invocations} invocations with calls\n",
        n_records - 1
    );
    print!("{found}");
    wanted.assert_eq(&found);
}

/// `propagate` shows each count when the record of its counter arrives.
#[tokio::test]
async fn a_follow_under_receipts_is_shown_by_looking() {
    check(
        LedgerKind::Receipts,
        expect![[r#"
        receipts: 10 write units, 6 stream records of ours, 15 reads, 8 invocations with calls
    "#]],
    )
    .await;
}

/// `aggregate` shows each count when it has counted.
#[tokio::test]
async fn a_follow_under_watermarks_is_shown_by_the_function_that_counts() {
    check(
        LedgerKind::Watermarks,
        expect![[r#"
        watermarks: 6 write units, 6 stream records of ours, 13 reads, 6 invocations with calls
    "#]],
    )
    .await;
}
