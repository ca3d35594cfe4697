use expect_test::{Expect, expect};

use crate::{
    change::Change,
    declaration::Link,
    expression::time::TimeSpan,
    fixture::{
        effects, ground, inserted, item, key_of, modified, removed, schema, short, table::TestTable, totals::window,
    },
    kinds::window::Window,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("window", change));
}

/// 2024-01-15T10, in hours since 1970.
const TEN: u64 = 473_698;

const SENSOR: &str = "SENSOR#s / METADATA Sensor";
const BUCKET: &str = "SENSOR#s / HOUR#2024-01-15T10 Rollup Sum=N:5";

#[test]
fn a_bucket_refreshes_its_target_now_when_it_begins_and_when_it_leaves() {
    check(
        &inserted(BUCKET),
        &expect![[r#"
            last-hours: look SENSOR#s / METADATA (Sensor)
            last-hours: look SENSOR#s / METADATA (Sensor) at hour 473698
            last-hours: look SENSOR#s / METADATA (Sensor) at hour 473701
        "#]],
    );
    let itself = expect![[r#"
        last-hours: look SENSOR#s / METADATA (Sensor)
    "#]];
    check(&removed(BUCKET), &itself);
    check(&modified(BUCKET, "SENSOR#s / HOUR#2024-01-15T10 Rollup Sum=N:6"), &itself);
    check(&modified(BUCKET, &format!("{BUCKET} Max=N:6")), &expect!["nothing\n"]);
    check(&inserted("SENSOR#s / DAY#2024-01-15 Rollup Sum=N:5"), &expect!["nothing\n"]);
    check(
        &inserted("SENSOR#s / HOUR#tea Rollup Sum=N:5"),
        &expect![[r#"
        last-hours: list Bucket is no hour such as 2024-01-15T10
    "#]],
    );
    check(&inserted(SENSOR), &itself);
    check(&modified(SENSOR, &format!("{SENSOR} LastHours=N:1")), &itself);
    check(&modified(SENSOR, &format!("{SENSOR} Name=x")), &expect!["nothing\n"]);
}

/// A table at this hour with a sensor and these buckets.
fn table(hour: u64, buckets: &[&str]) -> TestTable {
    let mut table = TestTable::new();
    let clock = format!("JOBS#CLOCK / CLOCK Hour=N:{hour}");
    let buckets: Vec<String> = buckets.iter().map(|rest| format!("SENSOR#s / {rest}")).collect();
    for text in [clock.as_str(), SENSOR].into_iter().chain(buckets.iter().map(String::as_str)) {
        let item = item(text);
        table.replace(key_of(&item), Some(item));
    }
    table.settle(&[0]);
    table
}

fn shown(table: &TestTable) -> String {
    table.items[&key_of(&item(SENSOR))].get("LastHours").map_or("none".to_owned(), short)
}

#[test]
fn the_buckets_of_the_window_are_added_up_and_no_others() {
    let buckets = [
        "HOUR#2024-01-15T07 Rollup Sum=N:1000",
        "HOUR#2024-01-15T08 Rollup Sum=N:100",
        "HOUR#2024-01-15T09 Rollup Sum=tea",
        "HOUR#2024-01-15T09x Rollup Sum=N:7",
        "HOUR#2024-01-15T10 Rollup Sum=N:0.5",
        "HOUR#2024-01-15T11 Rollup Sum=N:20",
        "DAY#2024-01-15 Rollup Sum=N:9",
        "HOUR#2024-01-15T10#PIN Pin Sum=N:9",
    ];
    for (hour, wanted) in
        [(TEN - 1, "N:1100"), (TEN, "N:100.5"), (TEN + 1, "N:20.5"), (TEN + 3, "N:20"), (TEN + 9, "N:0")]
    {
        let table = table(hour, &buckets);
        assert_eq!((shown(&table).as_str(), table.differing()), (wanted, Vec::<String>::new()), "{hour}");
    }
}

#[test]
fn a_window_moves_with_the_clock_when_its_target_is_refreshed() {
    let mut table = table(TEN, &["HOUR#2024-01-15T10 Rollup Sum=N:5"]);
    let clock = item(&format!("JOBS#CLOCK / CLOCK Hour=N:{}", TEN + 3));
    table.replace(key_of(&clock), Some(clock));
    table.settle(&[0]);
    assert_eq!(shown(&table), "N:5", "the clock alone requests nothing");
    assert_eq!(table.differing().len(), 1);
    let touched = item(&format!("{SENSOR} LastHours=N:6"));
    table.replace(key_of(&touched), Some(touched));
    table.settle(&[0]);
    assert_eq!((shown(&table).as_str(), table.differing()), ("N:0", Vec::new()));
}

#[test]
fn without_a_clock_nothing_is_shown() {
    let mut table = TestTable::new();
    for text in [SENSOR, BUCKET] {
        let item = item(text);
        table.replace(key_of(&item), Some(item));
    }
    table.settle(&[0]);
    assert_eq!((shown(&table).as_str(), table.differing()), ("none", Vec::new()));
}

#[test]
fn buckets_that_are_no_range_in_the_order_of_their_times_are_refused() {
    let schema = schema();
    let target = schema.entity("Sensor").unwrap();
    let refused = |window: Window, sk: &str| {
        let source = ground("Rollup", ("SENSOR#{SensorId}", sk), &["Sum"], &[]);
        window.check_range(&source, target).unwrap_err()
    };
    let by_day = || Window { span: TimeSpan::Day, ..window() };
    let shown = [
        refused(window(), "{Bucket}#{Grain}"),
        refused(window(), "{Grain}#{Bucket:12}"),
        refused(by_day(), "{Place}#{Grain}#{Bucket}"),
        refused(Window { grain: None, ..by_day() }, "{Grain}#{Bucket}"),
        refused(Window { link: Link::of(&[("SensorId", "Bucket")]), ..by_day() }, "{Grain}#{Bucket}"),
    ];
    expect![[r#"
        the sort key of Rollup does not end with Bucket: {Bucket}#{Grain}
        the sort key {Grain}#{Bucket:12} of Rollup changes its time Bucket: write {Bucket} there
        the items of Rollup that lead to one Sensor are not consecutive items of one partition: Grain is not at the beginning of their key
        {Grain}#{Bucket} of Rollup has Grain before Bucket, so the buckets of one Sensor are not in the order of their times
        Bucket of the key of Rollup cannot say both which bucket it is and something else"#]].assert_eq(&shown.join("\n"));
}
