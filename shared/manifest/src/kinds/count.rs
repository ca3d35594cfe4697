//! The kinds that count items: `count`, which also sums one of their attributes, and `unread`, the items of one range
//! that are behind an attribute of their target.

use derive::{
    declaration::{Count, Link},
    derivation::Derivation,
    kinds::{
        counted_item::CountedItem,
        display::{Display, Shows, Zero},
        unread::Unread,
    },
};
use keys::entity::Definition;

use super::{
    DISPLAY, ITEM, KindSyntax, Rule, attribute, derived_attribute, entity,
    given::{self, number},
    link::{self, fields, known},
    zero_is_absent,
};
use crate::{
    error::ManifestError,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pair, Pairs, Text, Truth},
    },
};

/// Most shards that a manifest could once give a counter.
const SHARDS_MAX: u32 = 100;

pub(super) const COUNT: KindSyntax = KindSyntax {
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
        keys: &COUNT_KEYS,
    },
    read: count,
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

const COUNT_KEYS: [KeySyntax; 12] = [
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

fn count(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
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
        condition: given::condition(rule, source)?,
        sum,
        target: target.name.clone(),
        each: rule.each((source, target), &link)?,
        link,
        history: rule.section.is_true("history")?,
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
    let creates = rule.section.is_true("creates")?;
    if creates && !target.derived {
        let what = format!(
            "Ripple creates only items that it also deletes: set derived = true in [entity.{}], or leave creates out",
            target.name
        );
        return Err(rule.section.place_of("creates").wrong(what));
    }
    Ok(creates)
}

/// The items that the counts of a target create: they are declared with the first of these counts.
fn created(rule: &Rule<'_>, target: &Definition) -> Result<Option<Derivation>, ManifestError> {
    let is_of_target = |section: &Section<'_>| {
        let creates = section.is_true("creates").unwrap_or_default();
        let into = section.get("into").and_then(|entry| entry.text().ok());
        creates && into.is_some_and(|into| into.text.split('.').next() == Some(&target.name))
    };
    let all = rule.of_kind(COUNT.description.name).filter(|(_, section)| is_of_target(section));
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
    let stays = rule.section.choice("expired", ["leaves", "stays"])? == "stays";
    if let Some(entry) = rule.section.get("expired").filter(|_| rule.section.is_true("history").unwrap_or_default()) {
        let what = "a count with history = true counts arrivals only, so it never takes back: leave one out";
        return Err(entry.place.wrong(what));
    }
    Ok(stays)
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

// ---- unread ----

pub(super) const UNREAD: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "unread",
        keeps: "Counts the items of a target's range that are later than an attribute of the target, up to a limit. An item \
                that comes or goes costs a query for each target of its range, which reads those later items, \
                consistently: 25 read units for 100 items of 1 KB. So it is for rooms of up to some hundred members; in a \
                larger room, query when a member opens it.",
        family: "level-triggered",
        costs: "1 for each target whose number changes, and for each index that projects it: at each message 1 for each \
                member below the limit, and 1 when a member reads",
        example: r#"
[derivation.unread]
kind = "unread"
from = "Message"
into = "Member.unread"
link = { roomId = "roomId" }
after = { sentAt = "lastReadAt" }
limit = 100
"#,
        keys: &UNREAD_KEYS,
    },
    read: unread,
};

/// The greatest limit: each refresh of a target reads so many items.
const LIMIT_MAX: u32 = 1_000;

const UNREAD_KEYS: [KeySyntax; 7] = [
    KeySyntax::required(
        "from",
        Text,
        "the entity whose items are counted; those of one target must be one range of one partition of the table, as `ROOM#{roomId}` / \
         `MSG#{sentAt}#{messageId}` is for a room. To count only some, [mirror them](own-table.md#unread), and name the mirrors",
    ),
    KeySyntax::required("into", Text, "`Entity.attribute`: the target, and the attribute that shows the number"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the counted items' key, before that of `after`, and the field, attribute or [expression](#expressions) of \
         the target that gives it",
    ),
    KeySyntax::required(
        "after",
        Pair,
        "`{ sentAt = \"lastReadAt\" }`: the field with which the sort key of `from` continues behind the fields of the link, and the \
         attribute of the target that counted items are behind: their sort keys are greater than every one with this value. A \
         text, or a number for a field such as `{seq:12}`. A target without the attribute has all items behind it",
    ),
    KeySyntax::required(
        "limit",
        ValueSyntax::WholeNumber(1, LIMIT_MAX),
        "the greatest number: with 100, a target that shows 100 has that many items behind the attribute, or more",
    ),
    KeySyntax::optional(
        "zero",
        ValueSyntax::OneOf(&["always", "absent"]),
        "`\"always\"`",
        "what the attribute is when nothing is behind: 0, or absent, as for an index of those with unread items. A target whose \
         link leads nowhere has no attribute either way",
    ),
    KeySyntax::optional(
        "found",
        ValueSyntax::TextOrTable(&link::FOUND),
        "the target's own items, in the partition of the counted item",
        "how the targets are found when an item comes or goes, as for a [copy](#kind--copy)",
    ),
];

fn unread(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items are counted")?;
    let (target, shown) = rule.shown_attribute("the attribute that shows the number, as in \"Member.unread\"")?;
    let purpose =
        "the field of the sort key and the attribute that counted items are behind, as in { sentAt = \"lastReadAt\" }";
    let entry = rule.section.required("after", purpose)?;
    let [(field, after)] = entry.pairs()?.try_into().map_err(|_| {
        entry
            .place
            .wrong("give one field of the sort key with one attribute of the target, as in { sentAt = \"lastReadAt\" }")
    })?;
    let sort = &source.key.sk;
    known(&field, &format!("the sort key of {} has no field", source.name), &sort.field_names())?;
    let after_text = attribute(target, &after)?;
    if !sort.holds_number(field.text) {
        rule.types.refuse(&target.name, &after, &format!("{} in the key of {}", field.text, source.name))?;
    }
    let link = leading_link(rule, source, target, &field)?;
    let purpose = "the greatest number, as in limit = 100";
    let limit = rule.section.required("limit", purpose)?.whole_number(1..LIMIT_MAX + 1)?;
    let zero_is_absent = zero_is_absent(&rule.section)?;
    let found = link::found(rule, source, target, &link)?;
    let unread = Unread {
        source: source.name.clone(),
        target: target.name.clone(),
        link,
        field: field.text.to_owned(),
        after: after_text,
        attribute: shown,
        limit,
        zero_is_absent,
        found,
    };
    unread.check_range(source).map_err(|what| field.place.wrong(what))?;
    Ok(vec![rule.derivation(rule.name, unread)?])
}

/// The link, which gives the fields of the partition key, and those of the sort key before the one of `after`.
fn leading_link(
    rule: &Rule<'_>,
    source: &Definition,
    target: &Definition,
    field: &Named<'_>,
) -> Result<Link, ManifestError> {
    let mut leading = source.key.pk.field_names();
    leading.extend(source.key.sk.field_names().into_iter().take_while(|name| *name != field.text));
    let but: Vec<&str> = source.key.field_names().into_iter().filter(|name| !leading.contains(name)).collect();
    let given = rule.section.get("link").map(|entry| entry.pairs()).transpose()?.unwrap_or_default();
    if let Some((behind, _)) = given.iter().find(|(to, _)| but.contains(&to.text)) {
        let what = format!(
            "is not before {} in the key of {}, so the items with one {} are no range: leave it out",
            field.text, source.name, behind.text
        );
        return Err(behind.place.wrong(what));
    }
    let is_given = |name: &str| given.iter().any(|(to, _)| to.text == name) || fields(target).contains(&name);
    if let Some(before) = leading.iter().find(|name| !source.key.pk.holds(name) && !is_given(name)) {
        let what = format!(
            "the sort key of {} has {before} before {}, and {} does not give it: name {before} here, or pair it in link",
            source.name, field.text, target.name
        );
        return Err(field.place.wrong(what));
    }
    rule.link_but(source, target, &but)
}
