//! Counters that spread, and counters that are hot.

use derive::{family::Family, guard::Purpose, write::Table};
use engine::{
    ledger::{
        LedgerKind,
        watermarks::{KEPT_MS, is_mark},
    },
    sweep::Bounds,
};
use keys::{
    counter::{CounterKey, SPREAD},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;
use serde_json::Value;

use crate::{
    cases::{
        Bed, SHARD,
        watermarks::{self, alone, counter, parked_beside_another_release, redriven, releases},
    },
    items::{is_zero, n},
};

/// A record of a user who joins the group.
async fn joins(bed: &mut Bed, user: &str) -> Vec<Value> {
    bed.memberships([(user.to_owned(), "g0".to_owned())]).await
}

/// The numbers of the items of a counter.
fn items_of(bed: &Bed, home: &Key) -> Vec<u32> {
    let home = CounterKey::parse(home).unwrap();
    let counters = bed.memory().snapshot(Table::Main).into_keys().filter_map(|key| CounterKey::parse(&key));
    counters.filter(|it| CounterKey { satellite: 0, ..it.clone() } == home).map(|it| it.satellite).collect()
}

fn n_marks(item: &Item) -> usize {
    item.keys().filter(|name| is_mark(name)).count()
}

#[tokio::test]
async fn a_counter_that_many_stream_shards_feed_spreads_once_and_every_record_counts_once() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks).spreading(3, 2);
    let group = bed.put_settled("Group", &[("GroupId", "g0")], &[]).await;
    let mut batches = Vec::new();
    for at in 0..12 {
        let (shard, records) = (format!("shardId-{at}"), joins(&mut bed, &format!("u{at}")).await);
        bed.handle_of(&shard, &records).await;
        bed.settle().await;
        assert_eq!(bed.shown(&group, "MemberCount"), (at + 1).to_string());
        batches.push((shard, records));
        // Every batch comes again: those of home, of satellites, and of the shard that made it spread.
        for (shard, records) in &batches {
            bed.handle_of(shard, records).await;
        }
        assert_eq!(bed.counted("member-count"), at + 1);
    }
    let home = bed.item(&counter(0)).unwrap();
    assert_eq!((home.get(SPREAD), n_marks(&home), items_of(&bed, &counter(0))), (Some(&n("2")), 3, vec![0, 1, 2]));
    // Another release has other limits, and the counter keeps its number.
    bed.spread.n_satellites = 9;
    bed.handle_of("shardId-11", &batches[11].1).await;
    let more = joins(&mut bed, "v").await;
    bed.handle_of("shardId-more", &more).await;
    bed.settle().await;
    assert_eq!(
        (bed.counted("member-count"), items_of(&bed, &counter(0)), bed.findings()),
        (13, vec![0, 1, 2], Vec::new())
    );
}

#[tokio::test]
async fn old_watermarks_do_not_make_a_counter_spread() {
    let mut bed = watermarks::bed().spreading(3, 2);
    for at in 0..4 {
        let records = joins(&mut bed, &format!("u{at}")).await;
        bed.handle_of(&format!("shardId-{at}"), &records).await;
        bed.clock.advance(KEPT_MS / 3 * 2);
    }
    assert_eq!((bed.item(&counter(0)).unwrap().get(SPREAD), bed.counted("member-count")), (None, 4));
}

/// Nothing counts on a home that has spread but for who has a watermark there, so its parked changes do not either.
#[tokio::test]
async fn a_change_that_a_satellite_refuses_is_parked_there_and_redriven_there() {
    let mut bed = watermarks::bed().spreading(1, 1);
    let first = joins(&mut bed, "u0").await;
    bed.handle_of("shardId-0", &first).await;
    let second = joins(&mut bed, "u1").await;
    bed.handle_of("shardId-1", &second).await;
    let satellite = CounterKey { satellite: 1, ..CounterKey::parse(&counter(0)).unwrap() }.key().unwrap();
    bed.set(&satellite, "Value", "by hand").await;
    let third = joins(&mut bed, "u2").await;
    bed.handle_of("shardId-1", &third).await;
    assert_eq!(bed.parked().len(), 1);
    bed.handle_of("shardId-1", &third).await;
    bed.set(&satellite, "Value", "N:1").await;
    bed.redrive_all().await;
    bed.handle_of("shardId-1", &third).await;
    assert_eq!((bed.counted("member-count"), bed.parked().len(), items_of(&bed, &counter(0))), (3, 0, vec![0, 1]));
}

/// As a table is stored whose manifest said `shards`: several items, and for each stream shard the number of them.
#[tokio::test]
async fn a_counter_that_had_shards_keeps_its_items_and_new_stream_shards_count_at_home() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    let group = bed.put_settled("Group", &[("GroupId", "g0")], &[]).await;
    // Each stream shard counts on one of four items, as before.
    let mut batches = Vec::new();
    for at in 0..6 {
        let (shard, records) = (format!("shardId-{at}"), joins(&mut bed, &format!("u{at}")).await);
        bed.had_shards(&shard, "member-count", 4);
        bed.handle_of(&shard, &records).await;
        batches.push((shard, records));
    }
    let before = items_of(&bed, &counter(0));
    assert!(before.len() > 2, "{before:?}");
    bed.settle().await;
    for (shard, records) in &batches {
        bed.handle_of(shard, records).await;
    }
    assert_eq!((bed.counted("member-count"), bed.shown(&group, "MemberCount")), (6, "6".to_owned()));
    for at in 6..9 {
        let records = joins(&mut bed, &format!("u{at}")).await;
        bed.handle_of(&format!("shardId-{at}"), &records).await;
        bed.settle().await;
        assert_eq!(bed.shown(&group, "MemberCount"), (at + 1).to_string());
    }
    assert_eq!(bed.item(&counter(0)).unwrap().get(SPREAD), Some(&n("64")), "nobody displays home alone again");
    assert_eq!((bed.counted("member-count"), bed.findings()), (9, Vec::new()));
}

/// The counts of a busy counter go to another item under receipts, which prove a change wherever it counts.
#[tokio::test]
async fn a_busy_counter_gets_other_items_under_receipts() {
    let mut bed = Bed::new().conflicting();
    let (one, two) = (joins(&mut bed, "u0").await, joins(&mut bed, "u1").await);
    let mut first = bed.start(&bed.event(&one));
    bed.stops_before(&mut first, Purpose::Receipt);
    let mut second = bed.start(&bed.event(&two));
    bed.stops_before(&mut second, Purpose::Receipt);
    first.finish().unwrap().unwrap();
    second.finish().unwrap().unwrap();
    bed.settle().await;
    assert_eq!((bed.counted("member-count"), bed.findings()), (2, Vec::new()));
}

// ---- Scripts: each ends wrong without its step or guard ----

/// Two functions of different releases make a counter spread over different numbers of satellites.
pub(crate) async fn with_another_number(bed: Bed) -> String {
    let mut bed = bed.under(LedgerKind::Watermarks).running(Family::Additive).spreading(2, 1);
    let mut records = Vec::new();
    for at in 0..4 {
        records.push(joins(&mut bed, &format!("u{at}")).await);
    }
    bed.handle_of("shardId-0", &records[0]).await;
    let mut one = bed.start(&bed.event(&records[1]).replace(SHARD, "shardId-1"));
    bed.stops_before(&mut one, Purpose::Spread);
    bed.spread.n_satellites = 50;
    for at in [2, 3] {
        bed.handle_of(&format!("shardId-{at}"), &records[at]).await;
    }
    one.finish().unwrap().unwrap();
    bed.handle_of("shardId-3", &records[3]).await;
    format!("{} of 4 members are counted", bed.counted("member-count"))
}

/// A home refuses a change. It is mended and spreads before the change is parked, and a satellite counts the change when it
/// comes again: how often is it counted?
pub(crate) async fn parked_after_its_home_spread(bed: Bed) -> i64 {
    let mut bed = bed.spreading(2, 4);
    let first = joins(&mut bed, "u0").await;
    bed.handle_of("shardId-0", &first).await;
    bed.set(&counter(0), "Value", "by hand").await;
    drop(bed.records());
    let records = joins(&mut bed, "ann").await;
    let mut parking = bed.start(&bed.event(&records));
    // The update that is refused, and the transaction that parks.
    bed.stops_before(&mut parking, Purpose::Watermark);
    bed.stops_before(&mut parking, Purpose::Watermark);
    bed.set(&counter(0), "Value", "N:1").await;
    drop(bed.records());
    let second = joins(&mut bed, "u1").await;
    bed.handle_of("shardId-1", &second).await;
    bed.handle(&records).await;
    parking.finish().unwrap().unwrap();
    bed.redrive_all().await;
    bed.counted("member-count") - 2
}

/// An invocation makes a counter spread, and ends before it writes the display: which count is displayed when its batch has
/// come again?
pub(crate) async fn ends_before_it_shows(bed: Bed) -> i64 {
    let mut bed = bed.spreading(2, 4);
    let group = bed.put("Group", &[("GroupId", "g0")], &[]).await;
    let records = joins(&mut bed, "u0").await;
    bed.handle_of("shardId-0", &records).await;
    bed.settle().await;
    let records = joins(&mut bed, "u1").await;
    let mut dies = bed.start(&bed.event(&records));
    bed.stops_before(&mut dies, Purpose::Shown);
    drop(dies);
    bed.handle_settled(&records).await;
    bed.shown(&group, "MemberCount").parse().unwrap_or(0)
}

/// Home counts nothing and its watermarks are too old to be needed, while a satellite counts one. Its record comes again:
/// how often is it counted?
pub(crate) async fn comes_again_after_its_home_went(bed: Bed) -> i64 {
    let mut bed = bed.spreading(1, 1);
    let records = joins(&mut bed, "u0").await;
    bed.handle_of("shardId-0", &records).await;
    let membership = bed.schema.layout.key(&joined("u0")).unwrap();
    bed.delete(&membership).await;
    let records = bed.records();
    bed.handle_of("shardId-0", &records).await;
    bed.clock.advance(KEPT_MS + 3 * 60_000);
    let records = joins(&mut bed, "u1").await;
    bed.handle_of("shardId-1", &records).await;
    for _ in 0..3 {
        let bounds = Bounds { n_items_max: usize::MAX, deadline_ms: bed.deadline_ms() };
        bed.sweeper().sweep_slice(bounds, |_| true).await.unwrap();
    }
    let home = bed.item(&counter(0));
    assert!(home.is_none_or(|home| is_zero(&home) && n_marks(&home) == 0));
    bed.handle_of("shardId-1", &records).await;
    bed.counted("member-count")
}

fn joined(user: &str) -> Item {
    let text = |text: String| AttributeValue::S(text);
    [("PK", format!("USER#{user}")), ("SK", "GROUP#g0".to_owned())]
        .map(|(name, it)| (name.to_owned(), text(it)))
        .into_iter()
        .collect()
}

/// As [`redriven_beside_another_release`](super::watermarks::redriven_beside_another_release), with the record's counter in
/// a satellite.
pub(crate) async fn redriven_although_a_satellite_counts_it(mut bed: Bed) -> i64 {
    alone(&mut bed, &releases()[0]).await;
    bed.spread.marks_max = 1;
    let other = joins(&mut bed, "u0").await;
    bed.handle_of("shardId-0", &other).await;
    drop(bed.records());
    let records = parked_beside_another_release(&mut bed).await;
    assert_eq!(items_of(&bed, &counter(0)).len(), 2, "{SHARD} counts in a satellite");
    redriven(&mut bed, &records[0]).await;
    bed.counted("member-count") - 3
}

// ---- Counters that are hot: the records of their updates request the refresh of the display ----

/// Four batches within the interval: the first one's count is displayed at once, and the last one's by its record.
#[tokio::test]
async fn a_hot_counter_is_displayed_by_its_record() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    bed.hot_for_ms = 1_000;
    let group = bed.put_settled("Group", &[("GroupId", "g0")], &[]).await;
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
pub(crate) async fn ends_while_hot(mut bed: Bed) -> i64 {
    bed.hot_for_ms = 60_000;
    let group = bed.put_settled("Group", &[("GroupId", "g0")], &[]).await;
    let (environment, records) = (bed.environment(), joins(&mut bed, "u0").await);
    let mut dies = bed.start_in(&environment, &records);
    bed.stops_before(&mut dies, Purpose::Shown);
    drop(dies);
    bed.start_in(&environment, &records).finish().unwrap().unwrap();
    bed.settle().await;
    bed.shown(&group, "MemberCount").parse().unwrap_or(0)
}
