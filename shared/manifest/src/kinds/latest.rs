//! `kind = "latest"`: attributes of the last or first item that leads to a target, copied into the target.

use derive::{derivation::Derivation, kinds::latest::SourceList};
use keys::entity::Definition;

use super::{KindSyntax, Rule, copy::carried, derived_attribute, given, ordered::Ordered};
use crate::{
    error::ManifestError,
    section::Named,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
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
        keys: &KEYS,
    },
    read,
};

/// Most entries of a list: its target is written whenever one of them changes.
const LENGTH_MAX: u32 = 100;

const KEYS: [KeySyntax; 9] = [
    KeySyntax::required("from", Text, "the entity that the attributes come from"),
    KeySyntax::optional("to", Text, "`into`", "the entity whose items carry it"),
    KeySyntax::optional(
        "into",
        Text,
        "`to`",
        "`Entity.attribute`, with `n`: the target, and its attribute that holds a list of maps, the latest item first; \
         absent while no item leads to the target",
    ),
    KeySyntax::optional("n", ValueSyntax::WholeNumber(1, LENGTH_MAX), "one item", "most entries of the list"),
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

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that the attributes come from")?;
    let (target, list) = target(rule)?;
    let link = rule.link(target, source)?;
    let purpose = "what is carried, as in { placedAt = \"lastOrderAt\" }, or [\"text\"] where both have one name";
    let attributes = carried(&rule.section.required("attributes", purpose)?, |from, to| {
        let to = if list.is_some() { to.text.to_owned() } else { derived_attribute(target, to)? };
        Ok((given::value(source, from, rule.types)?, to))
    })?;
    let is_greatest = match rule.section.get("which").map(|entry| entry.text()).transpose()? {
        None | Some(Named { text: "last", .. }) => true,
        Some(Named { text: "first", .. }) => false,
        Some(named) => return Err(named.unknown("there is no value", ["last", "first"])),
    };
    let by = rule.section.get("by").map(|entry| given::value(source, &entry.text()?, rule.types)).transpose()?;
    Ordered { source, target, link, by, is_greatest, attributes, list }.derivations(rule)
}

/// The target, and its list of several items, if declared.
fn target<'a>(rule: &Rule<'a>) -> Result<(&'a Definition, Option<SourceList>), ManifestError> {
    let (to, into, n) = (rule.section.get("to"), rule.section.get("into"), rule.section.get("n"));
    match (to, into, n) {
        (Some(_), None, None) => Ok((rule.entity("to", "the entity whose items carry it")?, None)),
        (None, Some(_), Some(n)) => {
            let (target, attribute) =
                rule.shown_attribute("the attribute that holds the list, as in \"User.recentOrders\"")?;
            Ok((target, Some(SourceList { attribute, length: n.whole_number(1..LENGTH_MAX + 1)? })))
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
