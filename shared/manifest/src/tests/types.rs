//! Declarations that conflict with the types of attributes, as far as the manifest determines them.

use derive::derived::{Derived, Items};
use expect_test::{Expect, expect};
use serde_dynamo::AttributeValue;

use super::refused_whole;
use crate::load;

/// Sensor readings with a number as their time, and their buckets.
const READINGS: &str = r#"[tables.Reading]
partition-key = "sensor"
sort-key = { name = "at", type = "N" }
[tables.Reading.index.byName]
partition-key = "name"
sort-key = { name = "seen", type = "N" }
[tables.Total]
partition-key = "pk"
sort-key = "sk"
type = "Type"
[entity.Reading]
table = "Reading"
attributes = ["name", "seen", "day", "value", "tags"]
[entity.Sensor]
table = "Total"
partition-key = "SENSOR#{sensor}"
sort-key = "SENSOR"
derived = true
derived-attributes = ["n", "total"]
[entity.ByTag]
table = "Total"
partition-key = "TAG#{tag}"
sort-key = "{sensor}#{at}"
derived = true
[entity.Bucket]
table = "Total"
partition-key = "SENSOR#{sensor}"
sort-key = "{grain}#{bucket}"
derived = true
derived-attributes = ["n", "sum", "min", "max"]
[derivation.buckets]
kind = "roll-up"
from = "Reading"
into = "Bucket"
time = "day"
value = "value"
grain = "grain"
bucket = "bucket"
shows = { count = "n", sum = "sum", min = "min", max = "max" }
[derivation.by-tag]
kind = "mirror"
from = "Reading"
to = "ByTag"
each = "tags"
link = { tag = "tags" }
where = "day <> 'never' AND tags[0] <> 'no'"
[derivation.totals]
kind = "count"
from = "Reading"
into = "Sensor"
creates = true
sum = "value"
shows = { count = "n", sum = "total" }
"#;

#[track_caller]
fn check(piece: &str, instead: &str, wanted: &Expect) {
    assert_eq!(READINGS.matches(piece).count(), 1, "{piece} stands there once");
    refused_whole(&READINGS.replace(piece, instead), wanted);
}

#[test]
fn a_time_that_is_a_number_is_refused() {
    load(READINGS).unwrap();
    check(
        "time = \"day\"",
        "time = \"at\"",
        &expect![
            "35:1: derivation.buckets.time: Reading.at is in the key (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number"
        ],
    );
    check(
        "time = \"day\"",
        "time = \"seen\"",
        &expect![
            "35:1: derivation.buckets.time: Reading.seen is in the key of the index byName (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number"
        ],
    );
    check(
        "time = \"day\"",
        "time = \"value\"",
        &expect![
            "35:1: derivation.buckets.time: Reading.value is summed by totals (N), and a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or seconds(…) for an epoch number"
        ],
    );
}

#[test]
fn members_of_a_text_or_a_number_are_refused() {
    check(
        "each = \"tags\"\nlink = { tag = \"tags\" }",
        "each = \"name\"\nlink = { tag = \"name\" }",
        &expect![
            "44:1: derivation.by-tag.each: Reading.name is in the key of the index byName (S), and each takes a list or a set: name an attribute that is one"
        ],
    );
    check(
        "each = \"tags\"\nlink = { tag = \"tags\" }",
        "each = \"day\"\nlink = { tag = \"day\" }",
        &expect![
            "44:1: derivation.by-tag.each: Reading.day is the time of buckets (S), and each takes a list or a set: name an attribute that is one"
        ],
    );
}

#[test]
fn a_path_into_a_text_or_a_number_is_refused() {
    let tag = "each = \"tags\"\nlink = { tag = \"tags\" }";
    check(
        tag,
        "link = { tag = \"name[0]\" }",
        &expect![[
            r#"44:10: derivation.by-tag.link.tag: Reading.name is in the key of the index byName (S), and "name[0]" is inside of it, where it has no parts: name an attribute that is a map or a list"#
        ]],
    );
    check(
        "value = \"value\"",
        "value = \"seen.value\"",
        &expect![[
            r#"36:1: derivation.buckets.value: Reading.seen is in the key of the index byName (N), and "seen.value" is inside of it, where it has no parts: name an attribute that is a map or a list"#
        ]],
    );
    check(
        "tags[0] <> 'no'",
        "size(day.hour) > 1",
        &expect![[
            r#"46:1: derivation.by-tag.where: Reading.day is the time of buckets (S), and "day.hour" is inside of it, where it has no parts: name an attribute that is a map or a list"#
        ]],
    );
}

#[test]
fn a_number_that_is_all_of_a_key_is_summed() {
    let (schema, catalogue) = load(&READINGS.replace("sum = \"value\"", "sum = \"at\"")).unwrap();
    let table = schema.layout.forms.as_ref().unwrap().named("Reading").unwrap();
    let reading = |at: &str| {
        let stored = [("sensor", AttributeValue::S("s".to_owned())), ("at", AttributeValue::N(at.to_owned()))];
        let item = table.inward(stored.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()).unwrap();
        (schema.layout.key(&item).unwrap(), item)
    };
    let items: Items = [reading("20.5"), reading("-3")].into();
    let totals = catalogue.derivations().find(|derivation| derivation.name == "totals").unwrap();
    let derived = totals.kind.derive("totals", &schema, &items, &derive::derived::Counts::default());
    let [Derived::Count { tally, .. }] = &derived[..] else { panic!("{derived:?}") };
    assert_eq!((tally.count, tally.sum.to_string().as_str()), (2, "17.5"));
}
