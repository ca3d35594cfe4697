//! `kind = "window"`: the sum over the buckets of the last hours or days.

use derive::{
    derivation::Derivation,
    expression::{Expression, function::Function, time::TimeSpan},
    kinds::window::{BUCKETS_MAX, Window},
};
use keys::entity::Definition;

use super::{KindSyntax, Rule, given, link::known, roll_up, says, zero_is_absent};
use crate::{
    error::ManifestError,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
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
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 8] = [
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

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity of the buckets that are added up")?;
    let (target, attribute) = rule.shown_attribute("the attribute that shows the sum, as in \"Song.playsThisWeek\"")?;
    let last = rule.section.required("last", "how long the window is, as in last = \"7 days\"")?;
    let (length, span) = length(&last)?;
    let sum = rule.section.required("sum", "the attribute of a bucket that is added up")?.text()?;
    let sum = given::number(source, &sum, rule.types)?;
    let rolled_up = rule.of_kind("roll-up").map(|(_, section)| section).find(|it| says(it, "into", &source.name));
    if let Some(rolled_up) = rolled_up
        && !roll_up::grains(rolled_up)?.contains(&span)
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
