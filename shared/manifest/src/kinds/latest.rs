//! `kind = "latest"`: attributes of the last or first item that leads to a target, carried by the target.

use derive::{derivation::Derivation, kinds::latest::Latest, query::Order};
use keys::entity::Definition;

use super::{KindSyntax, Rule, copy::carried, derived_attribute, link::known};
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
        keeps: "Each target carries attributes of the last item that leads to it, in the order of the sort key.",
        family: "level-triggered",
        costs: "1 for each target that comes to carry something else, and for each index that projects it",
        example: r#"
[derivation.last-order]
kind = "latest"
from = "Order"
to = "User"
attributes = { placedAt = "lastOrderAt" }
"#,
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 5] = [
    KeySyntax::required(
        "from",
        Text,
        "the entity that the attributes come from; its items that lead to one target must be one range of one partition of \
         the table, as `USER#{userId}` / `ORDER#{placedAt}` is for a user",
    ),
    KeySyntax::required("to", Text, "the entity whose items carry it"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field of the source's key that gives it",
    ),
    KeySyntax::required(
        "attributes",
        ValueSyntax::PairsOrTexts,
        "`{ placedAt = \"lastOrderAt\" }`: attribute of the source, or field of its key, and attribute of the target; a list, \
         `[\"text\"]`, if both have the same name",
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
    let target = rule.entity("to", "the entity whose items carry it")?;
    let link = rule.link(target, source)?;
    let purpose = "what is carried, as in { placedAt = \"lastOrderAt\" }, or [\"text\"] where both have one name";
    let attributes = carried(&rule.section.required("attributes", purpose)?, |from, to| {
        Ok((given(source, from)?, derived_attribute(target, to)?))
    })?;
    let order = match rule.section.get("which").map(|entry| entry.text()).transpose()? {
        None | Some(Named { text: "last", .. }) => Order::Descending,
        Some(Named { text: "first", .. }) => Order::Ascending,
        Some(named) => return Err(named.unknown("which is \"last\" or \"first\", not", ["last", "first"])),
    };
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Latest { source, target, link, order, attributes })?])
}

/// An attribute of the source, or a field of its key.
fn given(source: &Definition, from: &Named<'_>) -> Result<String, ManifestError> {
    from.top_level()?;
    known(from, &format!("{} has no field or attribute", source.name), &super::link::fields(source))?;
    Ok(from.text.to_owned())
}
