//! The kinds that carry attributes of one item to another: `copy`, `mirror`, `latest` and `extreme`.

use derive::{
    claims::CLAIMS,
    condition::Condition,
    declaration::{Link, Mirror},
    derivation::Derivation,
    expression::{DocumentPath, Expression, Input, PathStep},
    kinds::{
        copy::Copy,
        entries::Entries,
        latest::{Latest, SourceList},
    },
    query::{Order, first_behind, is_descending},
};
use keys::{
    entity::Definition,
    entry::{CARRIED, ENTRIES},
};

use super::{KindSyntax, Rule, attributes, derived_attribute, given, link};
use crate::{
    error::{ManifestError, meant},
    section::{Entry, Named},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text, Texts},
    },
};

// ---- copy: attributes of one item, in all items that name it ----

pub(super) const COPY: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "copy",
        keeps: "Items that name a source carry attributes of it.",
        family: "level-triggered",
        costs: "1 for each item that carries the copy and for each index that projects it",
        example: r#"
[derivation.followed-name]
kind = "copy"
from = "User"
to = "Follow"
link = { userId = "followedId" }
attributes = { userName = "followedName" }
found = "FollowedBy"
"#,
        keys: &COPY_KEYS,
    },
    read: copy,
};

const COPY_KEYS: [KeySyntax; 6] = [
    KeySyntax::required("from", Text, "the entity that is copied from"),
    KeySyntax::required("to", Text, "the entity whose items carry the copy"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the source's key and the field, attribute or [expression](#expressions) of the carrying item that gives it",
    ),
    KeySyntax::required(
        "attributes",
        ValueSyntax::PairsOrTexts,
        "`{ userName = \"buyerName\" }`: attribute or [expression](#expressions) of the source, such as `\"lower(userName)\"`, and \
         attribute of the target; a list, `[\"avatar\"]`, if both have the same name",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "copies only from items that meet this [condition](own-table.md#conditions); those that name another one lack the \
         attributes",
    ),
    KeySyntax::optional(
        "found",
        ValueSyntax::TextOrTable(&link::FOUND),
        "the target's own items, in the source's partition of the table",
        "how the items that carry a copy are found when their source changes",
    ),
];

fn copy(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that is copied from")?;
    let target = rule.entity("to", "the entity whose items carry the copy")?;
    let link = rule.link(source, target)?;
    let purpose = "what is copied, as in { userName = \"followedName\" }, or [\"avatar\"] where both have one name";
    let attributes = carried(&rule.section.required("attributes", purpose)?, |from, to| {
        Ok((given::value(source, from, rule.types)?, derived_attribute(target, to)?))
    })?;
    let found = link::found(rule, source, target, &link)?;
    let condition = given::condition(rule, source)?;
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Copy { source, target, link, condition, attributes, found })?])
}

/// The pairs of source attribute and target attribute, each looked up by `pair`.
fn carried(
    entry: &Entry<'_>,
    pair: impl Fn(&Named<'_>, &Named<'_>) -> Result<(Input, String), ManifestError>,
) -> Result<Vec<(Input, String)>, ManifestError> {
    let pairs: Vec<(Named<'_>, Named<'_>)> = if entry.is_list() {
        entry.texts()?.into_iter().map(|named| (named.clone(), named)).collect()
    } else {
        entry.pairs()?
    };
    if pairs.is_empty() {
        return Err(entry.place.wrong("names nothing to copy: add an attribute"));
    }
    for (at, (from, to)) in pairs.iter().enumerate() {
        if let Some((other, _)) = pairs.iter().take(at).find(|(_, before)| before.text == to.text) {
            let what = format!(
                "{} and {} both give \"{}\", and only one can: name another attribute for one of them",
                other.text, from.text, to.text
            );
            return Err(to.place.wrong(what));
        }
    }
    pairs.iter().map(|(from, to)| pair(from, to)).collect()
}

// ---- mirror: a second item for a source under another key ----

pub(super) const MIRROR: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "mirror",
        keeps: "Stores a copy of an item under another key.",
        family: "level-triggered",
        costs: "1 for each change of the item, and 1 for each index of the mirror that changes with it",
        example: r#"
[derivation.followed-by]
kind = "mirror"
from = "Follow"
to = "FollowedBy"
except = ["note"]

[derivation.memberships]
kind = "mirror"
from = "Channel"
to = "Membership"
each = "memberIds"
link = { userId = "memberIds" }
where = "attribute_not_exists(archivedAt)"
"#,
        keys: &MIRROR_KEYS,
    },
    read: mirror,
};

const MIRROR_KEYS: [KeySyntax; 6] = [
    KeySyntax::required("from", Text, "the entity that is mirrored"),
    KeySyntax::required("to", Text, "the entity of the mirrors, which says `derived = true`"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the mirror's key and the field, attribute or [expression](#expressions) of the source that gives it",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "mirrors only items that meet this [condition](own-table.md#conditions)",
    ),
    KeySyntax::optional(
        "each",
        Text,
        "one mirror",
        "an attribute of the source that is a list or a set: there is a mirror for each of its members, and `link` says \
         which field of the mirror's key the member is. The mirrors do not repeat the list",
    ),
    KeySyntax::optional(
        "except",
        Texts,
        "none",
        "attributes to leave out, also undeclared ones; a mirror repeats all others of its source, also those that no entity declares, but for keys, the type, the time to live and derived attributes: a name that is copied onto the source is copied onto the mirror by a copy of its own",
    ),
];

fn mirror(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that is mirrored")?;
    let to = rule.section.required("to", "the entity of the mirrors")?;
    let target = super::entity(rule.schema, &to.text()?)?;
    if !target.derived {
        let what =
            format!("{0} is the application's: a mirror's entity says derived = true in [entity.{0}]", target.name);
        return Err(to.place.wrong(what));
    }
    let link = rule.link(target, source)?;
    let given = |field: &&str| link.filled_by(field).is_some();
    if let Some(field) = source.key.field_names().into_iter().find(|field| !given(field))
        && !target.derived_attributes.iter().any(|name| name == CLAIMS)
    {
        let what = format!(
            "the key of {0} does not contain {field} of its {1}: put it into that key, if each {1} has a {0} of its own; if \
             several may share one, add \"{CLAIMS}\", a list of them, to the derived-attributes of {0}",
            target.name, source.name
        );
        return Err(to.place.wrong(what));
    }
    let except = rule.section.texts("except")?;
    let except = except.iter().map(|named| left_out(source, named)).collect::<Result<_, _>>()?;
    let condition = given::condition(rule, source)?;
    let each = rule.each((source, target), &link)?;
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Mirror { source, target, link, condition, each, except })?])
}

/// An attribute that mirrors leave out, which the entity need not declare. One that is spelled almost like a declared
/// attribute is a mistake.
fn left_out(source: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    named.top_level()?;
    let declared = attributes(source);
    if !declared.contains(&named.text) && meant(named.text, declared.iter().copied()).ends_with('?') {
        return Err(named.unknown(&format!("{} has no attribute", source.name), declared));
    }
    Ok(named.text.to_owned())
}

// ---- latest: attributes of the last or first item that leads to a target ----

pub(super) const LATEST: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "latest",
        keeps: "Each target carries attributes of the last item that leads to it, in the order of the sort key or of a value, or a list of the last few.",
        family: "level-triggered",
        costs: "1 for each target that comes to carry something else, and for each index that projects it; with [entries](own-table.md#the-latest-of-some) 1 more for each change of an item that leads to one, and 2 if its value changes",
        example: r#"
[derivation.last-order]
kind = "latest"
from = "Order"
to = "User"
attributes = { placedAt = "lastOrderAt" }

[derivation.recent-orders]
kind = "latest"
from = "Order"
into = "User.recentOrders"
n = 5
attributes = ["placedAt", "total"]

[derivation.largest-paid-order]
kind = "latest"
from = "Order"
to = "User"
by = "total"
where = "status = 'paid'"
attributes = { total = "largestTotal", orderId = "largestOrder" }
"#,
        keys: &LATEST_KEYS,
    },
    read: latest,
};

/// Most entries of a list: its target is written whenever one of them changes.
const LIST_MAX: u32 = 100;

const LATEST_KEYS: [KeySyntax; 9] = [
    KeySyntax::required("from", Text, "the entity that the attributes come from"),
    KeySyntax::optional("to", Text, "`into`", "the entity whose items carry it"),
    KeySyntax::optional(
        "into",
        Text,
        "`to`",
        "`Entity.attribute`, with `n`: the target, and its attribute that holds a list of maps, the latest item first; \
         absent while no item leads to the target",
    ),
    KeySyntax::optional("n", ValueSyntax::WholeNumber(1, LIST_MAX), "one item", "most entries of the list"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field, attribute or [expression](#expressions) of the source that gives it",
    ),
    KeySyntax::optional(
        "by",
        Text,
        "the order of the sort key, if the items that lead to a target are one range of the table, as `USER#{userId}` / `ORDER#{placedAt}` is for a user; otherwise required",
        "the field, attribute or [expression](#expressions) whose number or text orders the items; one without it takes no part",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "takes only items that meet this [condition](own-table.md#conditions)",
    ),
    KeySyntax::required(
        "attributes",
        ValueSyntax::PairsOrTexts,
        "`{ placedAt = \"lastOrderAt\" }`: attribute of the source, or field of its key, and attribute of the target, or name in an entry \
         of the list; a list, `[\"text\"]`, if both have the same name",
    ),
    KeySyntax::optional(
        "which",
        ValueSyntax::OneOf(&["last", "first"]),
        "`\"last\"`",
        "the item with the greatest value or sort key, or with the least",
    ),
];

fn latest(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that the attributes come from")?;
    let (target, list) = target_of_latest(rule)?;
    let link = rule.link(target, source)?;
    let purpose = "what is carried, as in { placedAt = \"lastOrderAt\" }, or [\"text\"] where both have one name";
    let attributes = carried(&rule.section.required("attributes", purpose)?, |from, to| {
        let to = if list.is_some() { to.text.to_owned() } else { derived_attribute(target, to)? };
        Ok((given::value(source, from, rule.types)?, to))
    })?;
    let is_greatest = rule.section.choice("which", ["last", "first"])? == "last";
    let by = rule.section.get("by").map(|entry| given::value(source, &entry.text()?, rule.types)).transpose()?;
    Ordered { source, target, link, by, is_greatest, attributes, list }.derivations(rule)
}

/// The target, and its list of several items, if declared.
fn target_of_latest<'a>(rule: &Rule<'a>) -> Result<(&'a Definition, Option<SourceList>), ManifestError> {
    let (to, into, n) = (rule.section.get("to"), rule.section.get("into"), rule.section.get("n"));
    match (to, into, n) {
        (Some(_), None, None) => Ok((rule.entity("to", "the entity whose items carry it")?, None)),
        (None, Some(_), Some(n)) => {
            let (target, attribute) =
                rule.shown_attribute("the attribute that holds the list, as in \"User.recentOrders\"")?;
            Ok((target, Some(SourceList { attribute, length: n.whole_number(1..LIST_MAX + 1)? })))
        }
        (Some(_), Some(into), _) => {
            Err(into.place.wrong("give into for a list on the target, or to for attributes of one item, not both"))
        }
        (None, Some(into), None) => Err(into.place.wrong("names a list: give its greatest length, as in n = 5")),
        (to, None, Some(n)) => {
            let entity = to.and_then(|to| Some(to.text().ok()?.text.to_owned())).unwrap_or_else(|| "User".to_owned());
            let what = format!(
                "n is the length of a list: name the list's attribute instead of to, as in into = \"{entity}.recent\""
            );
            Err(n.place.wrong(what))
        }
        (None, None, None) => Err(rule.section.place.wrong("to is missing: the entity whose items carry it")),
    }
}

// ---- extreme: the least or greatest value of an attribute over the items that lead to a target ----

pub(super) const EXTREME: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "extreme",
        keeps: "An attribute of each target shows the least or the greatest value of those of the items that lead to it.",
        family: "level-triggered",
        costs: "1 for each target whose extreme changes, and for each index that projects it; and 1 for each change of an item that leads to one, or 2 if its value changes, except where the sort keys of a target's items are already in the order of the value, as in `OFFER#{price:8}#{offerId}`, and there is no `where`",
        example: r#"
[derivation.first-order]
kind = "extreme"
from = "Order"
into = "User.firstOrderAt"
min = "placedAt"

[derivation.cheapest]
kind = "extreme"
from = "Offer"
into = "Product.lowestPrice"
min = "price"
where = "active = true"
"#,
        keys: &EXTREME_KEYS,
    },
    read: extreme,
};

const EXTREME_KEYS: [KeySyntax; 6] = [
    KeySyntax::required("from", Text, "the entity whose items have the values"),
    KeySyntax::required("into", Text, "`Entity.attribute`: the target, and the attribute that shows the extreme"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field, attribute or [expression](#expressions) of the source that gives it",
    ),
    KeySyntax::optional(
        "where",
        ValueSyntax::Condition,
        "all",
        "takes only values of items that meet this [condition](own-table.md#conditions)",
    ),
    KeySyntax::optional(
        "min",
        Text,
        "",
        "the field, attribute or [expression](#expressions) whose least number or text is shown, if `max` is not given; an item without it takes no part",
    ),
    KeySyntax::optional("max", Text, "", "the same for the greatest, if `min` is not given"),
];

fn extreme(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items have the values")?;
    let (target, attribute) = rule.shown_attribute("the attribute that shows it, as in \"Product.lowestPrice\"")?;
    let link = rule.link(target, source)?;
    let (entry, is_greatest) = match (rule.section.get("min"), rule.section.get("max")) {
        (Some(entry), None) => (entry, false),
        (None, Some(entry)) => (entry, true),
        (None, None) => {
            return Err(rule.section.place.wrong("min or max is missing: the value whose extreme is shown"));
        }
        (Some(_), Some(both)) => {
            return Err(both.place.wrong("give min or max, not both: declare two derivations"));
        }
    };
    let by = given::value(source, &entry.text()?, rule.types)?;
    let attributes = vec![(by.clone(), attribute)];
    Ordered { source, target, link, by: Some(by), is_greatest, attributes, list: None }.derivations(rule)
}

// ---- what latest and extreme have in common ----
//
// Items that are one range of the table in the wanted order are read where they are. All others have entries beside the
// target.

/// The items that lead to each target, and what is taken of the first ones in an order.
struct Ordered<'a> {
    source: &'a Definition,
    target: &'a Definition,
    link: Link,
    /// The value that orders the items; `None` for the order of their sort keys.
    by: Option<Input>,
    /// True if the greatest value is first.
    is_greatest: bool,
    /// Pairs of (what of an item is taken; its name in the target).
    attributes: Vec<(Input, String)>,
    list: Option<SourceList>,
}

impl Ordered<'_> {
    /// The derivation that reads the items where they are; or else that of their entries, and the one that reads these.
    fn derivations(self, rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
        let condition = given::condition(rule, self.source)?;
        let range = Latest::check_range(self.source, self.target, &self.link, None);
        let sort = &self.source.key.sk;
        let first = first_behind(sort, |name| self.link.from_fields().any(|linked| linked == name));
        let is_inverted = first.is_some_and(|name| is_descending(sort, name));
        let is_in_order = self.by.as_ref().is_none_or(|by| first.is_some() && by.name() == first);
        if condition == Condition::Always && is_in_order && range.is_ok() {
            let is_last = self.is_greatest != (is_inverted && self.by.is_some());
            return Ok(vec![rule.derivation(rule.name, self.latest(is_last))?]);
        }
        let by = match (&self.by, first, range) {
            (Some(by), ..) => by.clone(),
            (None, Some(first), Ok(())) => Input::of(first),
            (None, _, range) => {
                let why = range.err().unwrap_or_else(|| format!("nothing orders the items of {}", self.source.name));
                return Err(rule
                    .section
                    .place
                    .wrong(format!("name what orders the items, as in by = \"createdAt\": {why}")));
            }
        };
        let carried = |to: &str| {
            let steps = vec![PathStep::Name(to.to_owned())];
            Input::from(Expression::Path(DocumentPath { attribute: CARRIED.to_owned(), steps }))
        };
        let entity = format!("{}{ENTRIES}", rule.stored(rule.name));
        let entries = Entries {
            source: self.source.name.clone(),
            condition,
            beside: self.target.name.clone(),
            link: self.link.clone(),
            carried: self.attributes.clone(),
            entity: entity.clone(),
            by,
        };
        let is_last = self.is_greatest != (is_inverted && self.by.is_none());
        let latest = Latest {
            source: entity,
            link: None,
            attributes: self.attributes.iter().map(|(_, to)| (carried(to), to.clone())).collect(),
            ..self.latest(is_last)
        };
        let name = format!("{}{ENTRIES}", rule.name);
        Ok(vec![rule.derivation(&name, entries)?, rule.derivation(rule.name, latest)?])
    }

    /// The derivation that takes the last items of the source's own range, or the first.
    fn latest(self, is_last: bool) -> Latest {
        Latest {
            source: self.source.name.clone(),
            target: self.target.name.clone(),
            link: Some(self.link),
            order: if is_last { Order::Descending } else { Order::Ascending },
            attributes: self.attributes,
            list: self.list,
        }
    }
}
