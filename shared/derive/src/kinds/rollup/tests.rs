use expect_test::{Expect, expect};

use crate::{
    catalogue::Catalogue,
    change::Change,
    declaration::Rollup,
    expression::time::TimeSpan,
    fixture::{self, derived, effects, effects_in, ground, inserted, modified, named, removed},
    kinds::rollup::cut,
    schema::Schema,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("roll-up", change));
}

const READING: &str = "SENSOR#s%23#2024-01-15 / 2024-01-15T10:30:00.000Z Reading";

#[test]
fn an_insert_goes_into_the_hour_and_the_day() {
    check(
        &inserted(&format!("{READING} Value=N:21.50")),
        &expect![[r#"
        readings: N:21.5 into SENSOR#s%23 / HOUR#2024-01-15T10
        readings: N:21.5 into SENSOR#s%23 / DAY#2024-01-15
    "#]],
    );
}

#[test]
fn a_later_change_or_removal_is_applied_nowhere() {
    let [warm, cold] = ["21.5", "-3"].map(|value| format!("{READING} Value=N:{value}"));
    check(
        &modified(&warm, &cold),
        &expect![[r#"
        readings: late
    "#]],
    );
    check(
        &modified(&warm, READING),
        &expect![[r#"
        readings: late
    "#]],
    );
    check(
        &modified(&warm, &format!("{READING} Value=hot")),
        &expect![[r#"
        readings: late
        readings: list Value is S, and N is wanted
    "#]],
    );
    check(
        &removed(&warm),
        &expect![[r#"
        readings: late
    "#]],
    );
}

#[test]
fn a_reading_whose_time_changes_arrives_in_the_buckets_where_it_was_not() {
    let mut rollup = derived("Rollup", ("SENSOR#{SensorId}", "{Grain}#{Bucket}"), &[]);
    rollup.derived_attributes = ["Count", "Sum", "Min", "Max"].map(str::to_owned).to_vec();
    let reading = ground("Reading", ("READING#{ReadingId}", "METADATA"), &["SensorId", "At", "Value"], &[]);
    let schema = Schema::new(fixture::schema().layout, [reading, rollup]);
    let catalogue = Catalogue::new(&schema, vec![named("readings", fixture::totals::rollup())]).unwrap();
    let at = |at: &str| format!("READING#r / METADATA Reading SensorId=s Value=N:1 At={at}");
    let change = modified(&at("2024-01-15T10:30:00Z"), &at("2024-01-15T11:30:00Z"));
    expect![[r#"
        readings: N:1 into SENSOR#s / HOUR#2024-01-15T11
        readings: late
    "#]]
    .assert_eq(&effects_in(&schema, &catalogue, "roll-up", &change));
}

#[test]
fn what_is_no_change_of_the_value_is_none_at_all() {
    let warm = format!("{READING} Value=N:21.5");
    check(
        &modified(&warm, &format!("{READING} Value=N:2.15E1 Note=x")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &inserted(READING),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &removed(READING),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn an_unreadable_value_or_time_counts_as_absent_until_it_is_mended() {
    let hot = format!("{READING} Value=hot");
    check(
        &inserted(&hot),
        &expect![[r#"
        readings: list Value is S, and N is wanted
    "#]],
    );
    check(
        &modified(&hot, &format!("{READING} Value=N:30")),
        &expect![[r#"
        readings: N:30 into SENSOR#s%23 / HOUR#2024-01-15T10
        readings: N:30 into SENSOR#s%23 / DAY#2024-01-15
        readings: take off the list
    "#]],
    );
    check(
        &inserted("SENSOR#s#today / today Reading Value=N:1"),
        &expect![[r#"
        readings: list At is no time in ISO 8601 and UTC
    "#]],
    );
    check(
        &inserted("SENSOR#s#2024-01-15 / 2024-01-15 Reading Value=N:1"),
        &expect![[r#"
        readings: list At is no time in ISO 8601 and UTC
    "#]],
    );
}

#[test]
fn a_time_is_cut_only_where_it_is_one() {
    let spans = |time: &'static str| [TimeSpan::Week, TimeSpan::Month].map(|grain| cut(grain, time));
    assert_eq!(spans("2024-12-30T10:30:00.000Z"), [Some("2025-W01".into()), Some("2024-12".into())]);
    assert_eq!(spans("2024-01-15"), [Some("2024-W03".into()), Some("2024-01".into())]);
    for time in ["2024-02-30T10:00:00Z", "2024-01-15T10:30:00+02:00", "2024-01", "soon"] {
        assert_eq!(spans(time), [None, None], "{time}");
    }
    let cut = |time: &'static str| [TimeSpan::Hour, TimeSpan::Day].map(|grain| cut(grain, time));
    assert_eq!(cut("2024-01-15T10:30:00.000Z"), [Some("2024-01-15T10".into()), Some("2024-01-15".into())]);
    assert_eq!(cut("2024-01-15T10"), [Some("2024-01-15T10".into()), Some("2024-01-15".into())]);
    assert_eq!(cut("2024-01-15"), [None, Some("2024-01-15".into())]);
    assert_eq!(cut("2024-01-15T24:00"), [None, Some("2024-01-15".into())]);
    for time in ["2024-01-15T23:30:00.000Z", "2024-01-15T23:30:00+00:00", "2024-01-15T23:30-0000", "2024-01-15T23:30-1"]
    {
        assert_eq!(cut(time), [Some("2024-01-15T23".into()), Some("2024-01-15".into())], "{time}");
    }
    // In UTC these are in other hours, and some are on another day.
    for time in
        ["2024-01-15T23:30:00+02:00", "2024-01-15T23:30:00.000-05:30", "2024-01-15T23:30+0200", "2024-01-15T23-08"]
    {
        assert_eq!(cut(time), [None, None], "{time}");
    }
    for time in ["", "2024-13-15T10:00", "2024-01-32T10:00", "2024-01-155", "2024/01/15T10:00", "2024-01-1é"] {
        assert_eq!(cut(time), [None, None], "{time}");
    }
}

/// It would go into the bucket of its text, two hours from its own.
#[test]
fn a_reading_whose_time_has_an_offset_is_listed_and_goes_into_no_bucket() {
    check(
        &inserted("SENSOR#s#2024-01-15 / 2024-01-15T23:30:00+02:00 Reading Value=N:1"),
        &expect![[r#"
        readings: list At is no time in ISO 8601 and UTC
    "#]],
    );
}

#[test]
fn a_reading_arrives_when_it_comes_to_meet_the_condition() {
    let schema = fixture::schema();
    let valid = "Broken <> 'yes'".parse().unwrap();
    let rollup = Rollup { condition: valid, ..fixture::totals::rollup() };
    let mut reading = schema.entity("Reading").unwrap().clone();
    reading.attributes.push("Broken".to_owned());
    let schema = Schema::new(schema.layout.clone(), [reading, schema.entity("Rollup").unwrap().clone()]);
    let catalogue = Catalogue::new(&schema, vec![named("readings", rollup)]).unwrap();
    let [right, broken] = ["", " Broken=yes"].map(|broken| format!("{READING} Value=N:5{broken}"));
    let buckets =
        "readings: N:5 into SENSOR#s%23 / HOUR#2024-01-15T10\nreadings: N:5 into SENSOR#s%23 / DAY#2024-01-15\n";
    for (change, wanted) in [
        (inserted(&right), buckets),
        (inserted(&broken), "nothing\n"),
        (modified(&broken, &right), buckets),
        (modified(&right, &broken), "readings: late\n"),
    ] {
        assert_eq!(effects_in(&schema, &catalogue, "roll-up", &change), wanted, "{change:?}");
    }
}
