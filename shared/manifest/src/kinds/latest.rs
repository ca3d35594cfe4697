//! `kind = "latest"`: attributes of the last or first item that leads to a target, copied into the target.

use derive::{
    derivation::Derivation,
    kinds::latest::{Latest, SourceList},
    query::Order,
};
use keys::entity::Definition;

use super::{KindSyntax, Rule, copy::carried, derived_attribute, given};
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
        keeps: "Each target carries attributes of the last item that leads to it, in the order of the sort key, or a list of the last few.",
        family: "level-triggered",
        costs: "1 for each target that comes to carry something else, and for each index that projects it",
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
"#,
        keys: &KEYS,
    },
    read,
};

/// Most entries of a list: its target is written whenever one of them changes.
const LENGTH_MAX: u32 = 100;

const KEYS: [KeySyntax; 7] = [
    KeySyntax::required(
        "from",
        Text,
        "the entity that the attributes come from; its items that lead to one target must be one range of one partition of \
         the table, as `USER#{userId}` / `ORDER#{placedAt}` is for a user",
    ),
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
        "pairs of a field of the target's key and the field of the source's key that gives it",
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
        "the item with the greatest sort key, or with the least",
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
    let order = match rule.section.get("which").map(|entry| entry.text()).transpose()? {
        None | Some(Named { text: "last", .. }) => Order::Descending,
        Some(Named { text: "first", .. }) => Order::Ascending,
        Some(named) => return Err(named.unknown("which is \"last\" or \"first\", not", ["last", "first"])),
    };
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Latest { source, target, link, order, attributes, list })?])
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
        (Some(_), Some(into), _) => Err(into
            .place
            .wrong("says where a list of several items is, and to says who carries one: leave one of them out")),
        (None, Some(into), None) => {
            Err(into.place.wrong("is a list of several items: give its greatest length, as in n = 5"))
        }
        (to, None, Some(n)) => {
            let entity = to.and_then(|to| Some(to.text().ok()?.text.to_owned())).unwrap_or_else(|| "User".to_owned());
            let what = format!(
                "items are carried in a list: instead of to, say which attribute holds it, as in into = \"{entity}.recent\""
            );
            Err(n.place.wrong(what))
        }
        (None, None, None) => Err(rule.section.place.wrong("to is missing: the entity whose items carry it")),
    }
}
