//! `kind = "extreme"`: the least or greatest value of an attribute over the items that lead to a target.

use derive::derivation::Derivation;

use super::{KindSyntax, Rule, given, ordered::Ordered};
use crate::{
    error::ManifestError,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
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
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 6] = [
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

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
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
