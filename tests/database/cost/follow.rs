//! The price of one follow between existing users, with everything that follows from it, one record in each batch.

use engine::ledger::LedgerKind;
use expect_test::expect;

use crate::cost::{ANN, BOB, Bed};

async fn price(ledger: LedgerKind) -> String {
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
    let (n_ours, n_reads, n_invocations) = (n_records - 1, bed.n_reads, bed.n_invocations);
    format!(
        "{ledger}: {units} write units, {n_ours} stream records of ours, {n_reads} reads, {n_invocations} invocations with calls\n"
    )
}

/// Under receipts `propagate` shows each count when the record of its counter arrives; under watermarks `aggregate` shows
/// the count of a counter of one item when it has counted.
#[tokio::test]
async fn a_follow_costs_less_where_the_function_that_counts_shows_it() {
    let found = price(LedgerKind::Receipts).await + &price(LedgerKind::Watermarks).await;
    print!("{found}");
    expect![[r#"
        receipts: 10 write units, 6 stream records of ours, 15 reads, 8 invocations with calls
        watermarks: 6 write units, 6 stream records of ours, 10 reads, 4 invocations with calls
    "#]]
    .assert_eq(&found);
}
