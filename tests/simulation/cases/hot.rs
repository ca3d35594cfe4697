//! Counters that are hot: the records of their updates request the refresh of the display.

use derive::guard::Purpose;
use engine::ledger::LedgerKind;
use serde_json::Value;

use crate::cases::bed::Bed;

/// A record of a user who joins the group.
async fn joins(bed: &mut Bed, user: &str) -> Vec<Value> {
    bed.memberships([(user.to_owned(), "g0".to_owned())]).await
}

/// Four batches within the interval: the first one's count is displayed at once, and the last one's by its record.
#[tokio::test]
async fn a_hot_counter_is_displayed_by_its_record() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    bed.hot_for_ms = 1_000;
    let group = bed.put("Group", &[("GroupId", "g0")], &[]).await;
    bed.settle().await;
    let environment = bed.environment();
    let mut displayed = Vec::new();
    for at in 0..4 {
        // Without the records of the counter.
        drop(bed.records());
        let records = joins(&mut bed, &format!("u{at}")).await;
        bed.start_in(&environment, &records).finish().unwrap().unwrap();
        displayed.push(bed.shown(&group, "MemberCount"));
        bed.clock.advance(100);
    }
    assert_eq!(displayed, ["1", "1", "1", "1"]);
    bed.settle().await;
    assert_eq!((bed.shown(&group, "MemberCount"), bed.findings()), ("4".to_owned(), Vec::new()));
    bed.clock.advance(1_000);
    let records = joins(&mut bed, "v").await;
    bed.start_in(&environment, &records).finish().unwrap().unwrap();
    assert_eq!(bed.shown(&group, "MemberCount"), "5", "it is not hot any more");
}

/// An invocation counts, and ends before it writes the display. Its batch is redelivered while the counter is hot. Returns
/// the count that is displayed at the end.
pub(crate) async fn ends_before_it_shows(mut bed: Bed) -> i64 {
    bed.hot_for_ms = 60_000;
    let group = bed.put("Group", &[("GroupId", "g0")], &[]).await;
    bed.settle().await;
    let (environment, records) = (bed.environment(), joins(&mut bed, "u0").await);
    let mut dies = bed.start_in(&environment, &records);
    bed.stops_before(&mut dies, Purpose::Shown);
    drop(dies);
    bed.start_in(&environment, &records).finish().unwrap().unwrap();
    bed.settle().await;
    bed.shown(&group, "MemberCount").parse().unwrap_or(0)
}
