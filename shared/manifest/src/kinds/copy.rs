//! `kind = "copy"`: attributes of one item, copied into all items that name it.
//!
//! `found` declares how the items with a copy are found when its source changes, see [`found`].

use derive::{derivation::Derivation, expression::Input, kinds::copy::Copy};

use super::{KindSyntax, Rule, condition, derived_attribute, found, given};
use crate::{
    error::ManifestError,
    section::{Entry, Named},
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
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
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 6] = [
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
        ValueSyntax::TextOrTable(&found::FOUND),
        "the target's own items, in the source's partition of the table",
        "how the items that carry a copy are found when their source changes",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that is copied from")?;
    let target = rule.entity("to", "the entity whose items carry the copy")?;
    let link = rule.link(source, target)?;
    let purpose = "what is copied, as in { userName = \"followedName\" }, or [\"avatar\"] where both have one name";
    let attributes = carried(&rule.section.required("attributes", purpose)?, |from, to| {
        Ok((given::value(source, from, rule.types)?, derived_attribute(target, to)?))
    })?;
    let found = found::read(rule, source, target, &link)?;
    let condition = condition::read(rule, source)?;
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Copy { source, target, link, condition, attributes, found })?])
}

/// The pairs of source attribute and target attribute, each looked up by `pair`.
pub(super) fn carried(
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
