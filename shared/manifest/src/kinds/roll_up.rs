//! `kind = "roll-up"`: count, sum, least and greatest value by hour, day, week or month.

use std::sync::Arc;

use derive::{
    declaration::Rollup,
    derivation::Derivation,
    effect::BucketForm,
    expression::{Input, time::TimeSpan},
};
use keys::entity::Definition;

use super::{
    KindSyntax, Rule, condition, derived_attribute,
    given::{self, number},
    known::KnownTypes,
    link,
};
use crate::{
    error::ManifestError,
    section::{Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "roll-up",
        keeps: "A bucket for each hour and each day, or for each week or month, has count, sum, least and greatest value of what came in it.",
        family: "additive: each change counts once, and arrivals only",
        costs: "under watermarks 1 for each bucket that a batch touches; a value touches one bucket of each grain",
        example: r#"
[derivation.readings]
kind = "roll-up"
from = "Reading"
into = "ReadingTotals"
time = "at"
value = "value"
grain = "grain"
bucket = "bucket"
shows = { count = "count", sum = "sum", min = "min", max = "max" }
"#,
        keys: &KEYS,
    },
    read,
};

/// Keys of `shows`.
const SHOWS: [KeySyntax; 4] = [
    KeySyntax::required("count", Text, "the attribute of the number of values"),
    KeySyntax::required("sum", Text, "the attribute of their sum"),
    KeySyntax::required("min", Text, "the attribute of the least value"),
    KeySyntax::required("max", Text, "the attribute of the greatest value"),
];

const KEYS: [KeySyntax; 10] = [
    KeySyntax::required("from", Text, "the entity whose values are rolled up"),
    KeySyntax::required("into", Text, "the entity of the buckets, which says `derived = true`"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of another field of the bucket's key and the field, attribute or [expression](#expressions) of the source that gives it",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "takes only values of items that meet this [condition](own-table.md#conditions)",
    ),
    KeySyntax::required(
        "time",
        Text,
        "the field, attribute or [expression](#expressions) that gives the time, such as `2024-01-15T10:30:00.000Z`; \
         `millis(at)` or `seconds(at)` for an epoch number",
    ),
    KeySyntax::required("value", Text, "the attribute or [expression](#expressions) that gives the value, a number"),
    KeySyntax::optional(
        "grains",
        ValueSyntax::Texts,
        "`[\"hour\", \"day\"]`",
        "the time spans of the buckets, one or several of `\"hour\"`, `\"day\"`, `\"week\"` (of ISO 8601, as `2024-W03`) and \
         `\"month\"`; all in UTC",
    ),
    KeySyntax::required("grain", Text, "the field of the bucket's key that says `HOUR`, `DAY`, `WEEK` or `MONTH`"),
    KeySyntax::required("bucket", Text, "the field of the bucket's key that holds the beginning of the time"),
    KeySyntax::required("shows", ValueSyntax::Table(&SHOWS), "which attribute of the bucket has what"),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose values are rolled up")?;
    let target = rule.entity("into", "the entity of the buckets, one for each time span")?;
    let time = rule.section.required("time", "the field or attribute that holds the time")?.text()?;
    rule.types.text(
        source,
        &time,
        "a time is text (S), such as 2024-01-15T10:30:00.000Z: name an attribute of text, or write millis(…) or \
         seconds(…) for an epoch number",
    )?;
    let time = time_of(source, &time, rule.types)?;
    let value = rule.section.required("value", "the attribute that holds the value")?.text()?;
    let value = number(source, &value, rule.types)?;
    let field = |key: &str, purpose: &str| {
        let named = rule.section.required(key, purpose)?.text()?;
        link::known(&named, &format!("the key of {} has no field", target.name), &target.key.field_names())?;
        Ok::<_, ManifestError>(named.text.to_owned())
    };
    let grains = grains(&rule.section)?;
    let grain = field("grain", "the field of the bucket's key that says HOUR, DAY, WEEK or MONTH")?;
    let bucket = field("bucket", "the field of the bucket's key that holds the beginning of the time")?;
    let link = rule.link_but(target, source, &[&grain, &bucket])?;
    let form = Arc::new(form(rule, target)?);
    let condition = condition::read(rule, source)?;
    let source = source.name.clone();
    Ok(vec![rule.derivation(rule.name, Rollup { source, condition, time, value, grains, link, grain, bucket, form })?])
}

/// The time spans of the buckets.
pub(super) fn grains(section: &Section<'_>) -> Result<Vec<TimeSpan>, ManifestError> {
    let Some(entry) = section.get("grains") else { return Ok(vec![TimeSpan::Hour, TimeSpan::Day]) };
    let named = entry.texts()?;
    if named.is_empty() {
        return Err(entry.place.wrong("names no time span: name one, as in [\"day\"]"));
    }
    let all = [TimeSpan::Hour, TimeSpan::Day, TimeSpan::Week, TimeSpan::Month];
    let is_named = |span: TimeSpan, named: &Named<'_>| span.name().to_lowercase() == named.text;
    if let Some(unknown) = named.iter().find(|named| !all.into_iter().any(|span| is_named(span, named))) {
        return Err(unknown.unknown("there is no time span", ["hour", "day", "week", "month"]));
    }
    Ok(all.into_iter().filter(|span| named.iter().any(|named| is_named(*span, named))).collect())
}

/// The time, which is a text.
fn time_of(source: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    let time = given::value(source, named, types)?;
    match time.expression().type_of() {
        Some(of) if of != "S" => {
            let what = format!(
                "is {of}, and a time is text (S), such as 2024-01-15T10:30:00.000Z: write millis({time}) or \
                 seconds({time}) for an epoch number"
            );
            Err(named.place.wrong(what))
        }
        _ => Ok(time),
    }
}

fn form(rule: &Rule<'_>, target: &Definition) -> Result<BucketForm, ManifestError> {
    let purpose = "the bucket's attributes, as in { count = \"count\", sum = \"sum\", min = \"min\", max = \"max\" }";
    let shows = rule.section.required("shows", purpose)?.section()?;
    shows.follows(&SHOWS)?;
    let shown = |key: &str| derived_attribute(target, &shows.required(key, purpose)?.text()?);
    let [count, sum, min, max] = ["count", "sum", "min", "max"].map(shown);
    Ok(BucketForm { entity: target.name.clone(), count: count?, sum: sum?, min: min?, max: max? })
}
