//! `kind = "count"`: the number of items that belong to a target, and the sum of one of their attributes.

use derive::{
    declaration::Count,
    derivation::Derivation,
    kinds::{
        counted_item::CountedItem,
        display::{Display, Shows, Zero},
    },
};
use keys::entity::Definition;

use super::{DISPLAY, ITEM, KindSyntax, Rule, condition, derived_attribute, entity, given::number};
use crate::{
    error::ManifestError,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text, Truth},
    },
};

/// Most shards that a manifest could once give a counter.
const SHARDS_MAX: u32 = 100;

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "count",
        keeps: "An attribute of each target shows how many items lead to it, and what an attribute of them comes to. Ripple keeps both in counters of its own beside the target, whose sort keys begin with the target's and `#COUNT#`, so a query of the target's partition returns them too.",
        family: "additive: each change counts once",
        costs: "1 for each counter of a batch under watermarks, 2 to 4 for each change under receipts, and 1 for each item that shows it",
        example: r#"
[derivation.follower-count]
kind = "count"
from = "Follow"
into = "User.followerCount"
link = { userId = "followedId" }
zero = "absent"

[derivation.order-totals]
kind = "count"
from = "Order"
into = "User"
sum = "total"
shows = { count = "orderCount", sum = "lifetimeValue" }

[derivation.orders-by-status]
kind = "count"
from = "Order"
into = "OrderStatus.orders"
creates = true

[derivation.replies]
kind = "count"
from = "Comment"
into = "Comment.replies"
each = "ancestorIds"
link = { commentId = "ancestorIds" }
"#,
        keys: &KEYS,
    },
    read,
};

/// Keys of `shows`.
const SHOWS: [KeySyntax; 4] = [
    KeySyntax::optional("count", Text, "", "the attribute that shows the count"),
    KeySyntax::optional("sum", Text, "", "the attribute that shows the sum"),
    KeySyntax::optional(
        "average",
        Text,
        "",
        "the attribute that shows the sum divided by the count, rounded to 6 digits behind the point, a half to the even \
         digit; absent while nothing is counted. An item without the summed attribute counts \
         as 0, unless a `where` with `attribute_exists` leaves it out",
    ),
    KeySyntax::optional(
        "exists",
        Text,
        "",
        "the attribute that is `true` while anything is counted, and absent otherwise",
    ),
];

const KEYS: [KeySyntax; 12] = [
    KeySyntax::required("from", Text, "the entity whose items are counted"),
    KeySyntax::required(
        "into",
        Text,
        "`Entity.attribute`: the target of the count, and the attribute that shows it; `Entity` alone with `shows`, or for a count that is not shown",
    ),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field, attribute or [expression](#expressions) of the counted item that \
         gives it",
    ),
    KeySyntax::optional(
        "each",
        Text,
        "one target",
        "an attribute of the counted item that is a list or a set: the item counts once for each different member, and `link` \
         says which field of the target's key the member is, as for [a comment at every level](own-table.md#counting-at-every-level)",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "counts only items that meet this [condition](own-table.md#conditions); short for one text: `{ status = \"paid\" }`. \
         `<>` holds for an item without the attribute too",
    ),
    KeySyntax::optional(
        "sum",
        Text,
        "",
        "the attribute or [expression](#expressions) that is summed beside the count, exact in decimals of 38 digits, such as \
         `quantity * price`; an item without it adds nothing. It may be a derived number, such as another count",
    ),
    KeySyntax::optional(
        "shows",
        ValueSyntax::Table(&SHOWS),
        "",
        "which attribute of the target shows what, where `into` names none",
    ),
    KeySyntax::optional(
        "shards",
        ValueSyntax::WholeNumber(1, SHARDS_MAX),
        "",
        "accepted and ignored: a counter that many stream shards feed [spreads](ledgers.md#counters-that-spread) by itself",
    ),
    KeySyntax::optional(
        "history",
        Truth,
        "`false`",
        "`true`: only [arrivals](glossary.md#history-count) count, because the items expire",
    ),
    KeySyntax::optional(
        "expired",
        ValueSyntax::OneOf(&["leaves", "stays"]),
        "`\"leaves\"`",
        "`\"stays\"`: an item that DynamoDB removes by its time to live stays counted, and one that a client removes does not; \
         see [what expires](own-table.md#what-expires)",
    ),
    KeySyntax::optional(
        "zero",
        ValueSyntax::OneOf(&["write", "always", "absent"]),
        "`\"write\"`",
        "what the attribute is when the count is zero. `\"write\"`: a 0 where anything was counted before, and no attribute on an item \
         for which nothing ever was. `\"always\"`: a 0 from the item's birth on, as a ranking needs it. `\"absent\"`: no \
         attribute; see [zero](tables.md#zero)",
    ),
    KeySyntax::optional(
        "creates",
        Truth,
        "`false`",
        "`true`: Ripple creates the target when the first item leads to it and deletes it after the last; its entity says \
         `derived = true`. So there is an item for [each value](own-table.md#counting-different-values). Several counts may \
         create the items of one entity: an item exists while any of them counts",
    ),
];

/// The parts of a count that can be displayed, in the order of its displays.
const SHOWN: [(&str, Shows); 4] =
    [("count", Shows::Count), ("sum", Shows::Sum), ("average", Shows::Average), ("exists", Shows::Exists)];

/// An attribute that displays a part of a count.
struct ShownPart {
    part: &'static str,
    shows: Shows,
    attribute: String,
}

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items are counted")?;
    let into = rule.section.required("into", "where the count is shown, as in \"User.followerCount\"")?;
    let named = into.text()?;
    let (target, count_shown) = match named.text.split_once('.') {
        Some((target, shown)) => (target, Some(Named { text: shown, place: named.place.clone() })),
        None => (named.text, None),
    };
    let target = entity(rule.schema, &Named { text: target, place: named.place.clone() }).map_err(|mut error| {
        if count_shown.is_none() {
            error.what.push_str("; the target and its attribute are written as in \"User.followerCount\"");
        }
        error
    })?;
    let sum = rule.section.get("sum").map(|entry| number(source, &entry.text()?, rule.types)).transpose()?;
    let shown = match count_shown {
        Some(shown) => {
            let attribute = derived_attribute(target, &shown)?;
            vec![ShownPart { part: "count", shows: Shows::Count, attribute }]
        }
        None => shown(rule, target, sum.is_some())?,
    };
    if let Some(shows) = rule.section.get("shows").filter(|_| named.text.contains('.')) {
        return Err(shows
            .place
            .wrong(format!("shows and into both name an attribute: write into = \"{}\"", target.name)));
    }
    if let Some(entry) = rule.section.get("sum").filter(|_| named.text.contains('.')) {
        let what = format!(
            "into = \"{}\" shows the number of items, and nothing shows the sum: write into = \"{}\" and shows = {{ sum = \"…\" }}",
            named.text, target.name
        );
        return Err(entry.place.wrong(what));
    }
    let zero = zero(rule, !shown.is_empty())?;
    rule.section.get("shards").map(|entry| entry.whole_number(1..SHARDS_MAX + 1)).transpose()?;
    let link = rule.link(target, source)?;
    let count = Count {
        source: source.name.clone(),
        condition: condition::read(rule, source)?,
        sum,
        target: target.name.clone(),
        each: rule.each((source, target), &link)?,
        link,
        history: rule.section.get("history").map_or(Ok(false), |entry| entry.truth())?,
        expired_stays: expired_stays(rule)?,
    };
    let mut derivations = vec![rule.derivation(rule.name, count)?];
    if creates(rule, target)? {
        derivations.extend(created(rule, target)?);
    }
    let is_one = shown.len() == 1;
    for ShownPart { part, shows, attribute } in shown {
        let (count, target) = (rule.stored(rule.name).to_owned(), target.name.clone());
        let name = if is_one { rule.name.to_owned() } else { format!("{}-{part}", rule.name) };
        let display = Display { count, target, shows, attribute, zero };
        derivations.push(rule.derivation(&format!("{name}{DISPLAY}"), display)?);
    }
    Ok(derivations)
}

/// The content of `shows`: each part of the count with its attribute.
fn shown(rule: &Rule<'_>, target: &Definition, has_sum: bool) -> Result<Vec<ShownPart>, ManifestError> {
    let Some(entry) = rule.section.get("shows") else { return Ok(Vec::new()) };
    let section = entry.section()?;
    section.follows(&SHOWS)?;
    let attribute = |entry: &Entry<'_>| derived_attribute(target, &entry.text()?);
    let mut shown = Vec::new();
    for (part, shows) in SHOWN {
        let Some(entry) = section.get(part) else { continue };
        if matches!(shows, Shows::Sum | Shows::Average) && !has_sum {
            return Err(entry.place.wrong("there is no sum: name the attribute to add up, as in sum = \"total\""));
        }
        shown.push(ShownPart { part, shows, attribute: attribute(&entry)? });
    }
    Ok(shown)
}

/// True if the count creates its targets.
fn creates(rule: &Rule<'_>, target: &Definition) -> Result<bool, ManifestError> {
    let Some(entry) = rule.section.get("creates") else { return Ok(false) };
    if entry.truth()? && !target.derived {
        let what = format!(
            "Ripple creates only items that it also deletes: set derived = true in [entity.{}], or leave creates out",
            target.name
        );
        return Err(entry.place.wrong(what));
    }
    entry.truth()
}

/// The items that the counts of a target create: they are declared with the first of these counts.
fn created(rule: &Rule<'_>, target: &Definition) -> Result<Option<Derivation>, ManifestError> {
    let is_of_target = |section: &Section<'_>| {
        let creates = section.get("creates").is_some_and(|entry| entry.truth().unwrap_or_default());
        let into = section.get("into").and_then(|entry| entry.text().ok());
        creates && into.is_some_and(|into| into.text.split('.').next() == Some(&target.name))
    };
    let all = rule.of_kind(KIND.description.name).filter(|(_, section)| is_of_target(section));
    let names: Vec<&str> = all.map(|(name, _)| *name).collect();
    if names.first() != Some(&rule.name) {
        return Ok(None);
    }
    let counts = names.into_iter().map(|name| rule.stored(name).to_owned()).collect();
    let item = CountedItem { counts, target: target.name.clone() };
    rule.derivation(&format!("{}{ITEM}", rule.name), item).map(Some)
}

/// True if an item that its time to live removes stays counted.
fn expired_stays(rule: &Rule<'_>) -> Result<bool, ManifestError> {
    let Some(entry) = rule.section.get("expired") else { return Ok(false) };
    let named = entry.text()?;
    if !["leaves", "stays"].contains(&named.text) {
        return Err(named.unknown("there is no value", ["leaves", "stays"]));
    }
    if rule.section.get("history").is_some_and(|entry| entry.truth().unwrap_or_default()) {
        return Err(named
            .place
            .wrong("a count with history = true counts arrivals only, so it never takes back: leave one out"));
    }
    Ok(named.text == "stays")
}

/// How the display shows zero.
fn zero(rule: &Rule<'_>, is_shown: bool) -> Result<Zero, ManifestError> {
    let Some(entry) = rule.section.get("zero") else { return Ok(Zero::default()) };
    if !is_shown {
        let what = "zero says how a count of zero is shown, and this count is not shown: name an attribute, as in into = \
                    \"User.followerCount\", or leave zero out";
        return Err(entry.place.wrong(what));
    }
    let named = entry.text()?;
    match named.text {
        "absent" => Ok(Zero::Absent),
        "write" => Ok(Zero::Write),
        "always" => Ok(Zero::Always),
        _ => Err(named.unknown("there is no value", ["write", "always", "absent"])),
    }
}
