//! The kinds over time: `roll-up` has count, sum, least and greatest value by hour, day, week or month, and `window`
//! the sum over the buckets of the last hours or days.

use std::sync::Arc;

use derive::{
    declaration::Rollup,
    derivation::Derivation,
    effect::BucketForm,
    expression::{Expression, Input, function::Function, time::TimeSpan},
    kinds::window::{BUCKETS_MAX, Window},
};
use keys::entity::Definition;

use super::{
    KindSyntax, Rule, derived_attribute,
    given::{self, KnownTypes, number},
    link::{self, known},
    says, zero_is_absent,
};
use crate::{
    error::ManifestError,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const ROLL_UP: KindSyntax = KindSyntax {
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
        keys: &ROLL_UP_KEYS,
    },
    read: roll_up,
};

/// Keys of `shows`.
const SHOWS: [KeySyntax; 4] = [
    KeySyntax::required("count", Text, "the attribute of the number of values"),
    KeySyntax::required("sum", Text, "the attribute of their sum"),
    KeySyntax::required("min", Text, "the attribute of the least value"),
    KeySyntax::required("max", Text, "the attribute of the greatest value"),
];

const ROLL_UP_KEYS: [KeySyntax; 10] = [
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

fn roll_up(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
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
    let condition = given::condition(rule, source)?;
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

// ---- window ----

pub(super) const WINDOW: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "window",
        keeps: "An attribute of each target shows the sum over the buckets of the last hours or days, the current one among them, \
                and moves with time. The sweep moves it within minutes of the end of an hour or a day in UTC.",
        family: "level-triggered",
        costs: "1 for each target whose sum changes, and for each index that projects it; and for each bucket 2 in the ledger's \
                table, since it is noted when the bucket leaves the window",
        example: r#"
[derivation.plays-of-day]
kind = "count"
from = "Play"
into = "SongDay.plays"
link = { songId = "songId", day = "day(at)" }
creates = true

[derivation.plays-this-week]
kind = "window"
from = "SongDay"
into = "Song.playsThisWeek"
bucket = "day"
last = "7 days"
sum = "plays"
"#,
        keys: &WINDOW_KEYS,
    },
    read: window,
};

const WINDOW_KEYS: [KeySyntax; 8] = [
    KeySyntax::required(
        "from",
        Text,
        "the entity of the buckets: of a roll-up, of a count with `creates`, or of the application. Those of one target must be one \
         range of one partition of the table, as `SONG#{songId}` / `{grain}#{bucket}` is for a song",
    ),
    KeySyntax::required("into", Text, "`Entity.attribute`: the target, and the attribute that shows the sum"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field of the bucket's key that gives it",
    ),
    KeySyntax::required(
        "last",
        Text,
        "how long the window is, such as `\"7 days\"` or `\"24 hours\"`: 1 to 400, of buckets by day or by hour",
    ),
    KeySyntax::required(
        "sum",
        Text,
        "the attribute or [expression](#expressions) of a bucket that is added up, a number",
    ),
    KeySyntax::optional(
        "bucket",
        Text,
        "that of the roll-up into `from`",
        "the field with which the key of `from` ends: exactly an hour such as `2024-01-15T10`, or a day such as `2024-01-15`, in UTC",
    ),
    KeySyntax::optional(
        "grain",
        Text,
        "that of the roll-up into `from`; otherwise the key has none",
        "the field of the key of `from` that says `HOUR` or `DAY`",
    ),
    KeySyntax::optional(
        "zero",
        ValueSyntax::OneOf(&["always", "absent"]),
        "`\"always\"`",
        "what the attribute is when the sum is 0: 0, or absent",
    ),
];

fn window(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity of the buckets that are added up")?;
    let (target, attribute) = rule.shown_attribute("the attribute that shows the sum, as in \"Song.playsThisWeek\"")?;
    let last = rule.section.required("last", "how long the window is, as in last = \"7 days\"")?;
    let (length, span) = length(&last)?;
    let sum = rule.section.required("sum", "the attribute of a bucket that is added up")?.text()?;
    let sum = given::number(source, &sum, rule.types)?;
    let rolled_up = rule.of_kind("roll-up").map(|(_, section)| section).find(|it| says(it, "into", &source.name));
    if let Some(rolled_up) = rolled_up
        && !grains(rolled_up)?.contains(&span)
    {
        let unit = span.name().to_lowercase();
        let what = format!("{} has no buckets by {unit}: add \"{unit}\" to the grains of its roll-up", source.name);
        return Err(last.place.wrong(what));
    }
    if let Some(other) = counted_by(rule, source).filter(|other| *other != span) {
        let (is, last_of) = (other.name().to_lowercase(), span.name().to_lowercase());
        let what = format!("the buckets of {} are by {is}, and last is by {last_of}: make both the same", source.name);
        return Err(last.place.wrong(what));
    }
    let field = |key: &str| {
        let Some(entry) = rule.section.get(key).or_else(|| rolled_up?.get(key)) else { return Ok(None) };
        let named = entry.text()?;
        known(&named, &format!("the key of {} has no field", source.name), &source.key.field_names())?;
        Ok::<_, ManifestError>(Some(named))
    };
    let Some(bucket) = field("bucket")? else {
        let what =
            format!("bucket is missing: the field with which the sort key of {} ends, an hour or a day", source.name);
        return Err(rule.section.place.wrong(what));
    };
    let grain = field("grain")?.map(|named| named.text.to_owned());
    let zero_is_absent = zero_is_absent(&rule.section)?;
    let link = rule.link(target, source)?;
    let window = Window {
        source: source.name.clone(),
        target: target.name.clone(),
        link,
        grain,
        bucket: bucket.text.to_owned(),
        span,
        length,
        sum,
        attribute,
        zero_is_absent,
    };
    window.check_range(source, target).map_err(|what| in_place(rule, source, &bucket, what))?;
    Ok(vec![rule.derivation(rule.name, window)?])
}

/// The time span of the items that a count creates, if an expression gives it.
fn counted_by(rule: &Rule<'_>, source: &Definition) -> Option<TimeSpan> {
    let into = |section: &Section<'_>| {
        let into = section.get("into")?.text().ok()?.text;
        Some(into.split('.').next() == Some(source.name.as_str()))
    };
    let (_, count) = rule.of_kind("count").find(|(_, section)| into(section) == Some(true))?;
    let bucket = rule.section.get("bucket")?.text().ok()?.text;
    let pairs = count.get("link")?.pairs().ok()?;
    let (_, from) = pairs.into_iter().find(|(to, _)| to.text == bucket)?;
    match from.text.parse().ok()? {
        Expression::Call(Function::Span(span), _) => Some(span),
        _ => None,
    }
}

/// The error of a key that is no range, at the bucket's field if the window names it.
fn in_place(rule: &Rule<'_>, source: &Definition, bucket: &Named<'_>, what: String) -> ManifestError {
    let place = if rule.section.get("bucket").is_some() { &bucket.place } else { &rule.section.place };
    let fields = source.key.field_names();
    let has_other = rule.section.get("grain").is_none() && fields.iter().any(|name| name.eq_ignore_ascii_case("grain"));
    place.wrong(if has_other { format!("{what}; grain says which field has HOUR or DAY") } else { what })
}

/// The number of hours or days of a window.
fn length(last: &Entry<'_>) -> Result<(u32, TimeSpan), ManifestError> {
    let named = last.text()?;
    let (number, unit) = named.text.trim().split_once(' ').unwrap_or((named.text, ""));
    let span = match unit.trim() {
        "hour" | "hours" => TimeSpan::Hour,
        "day" | "days" => TimeSpan::Day,
        "week" | "weeks" | "month" | "months" => {
            return Err(named.place.wrong("is in hours or days: write 7 days for a week, or 30 days for a month"));
        }
        _ => return Err(named.place.wrong("is a number of hours or days, as in \"24 hours\" or \"7 days\"")),
    };
    match number.parse::<u32>() {
        Ok(length) if (1..=BUCKETS_MAX).contains(&length) => Ok((length, span)),
        _ => Err(named.place.wrong(format!("is from 1 to {BUCKETS_MAX} hours or days"))),
    }
}
