//! `kind = "extreme"`: the least or greatest value of an attribute over the items that lead to a target.
//!
//! The sort key of these items begins with the value, after the fields that lead to the target. So the extreme is that
//! of the first or last of them, and stays correct after deletions.

use derive::{
    declaration::Link, derivation::Derivation, expression::Input, kinds::latest::Latest, query::Order, range,
};
use keys::entity::Definition;

use super::{KindSyntax, Rule};
use crate::{
    error::ManifestError,
    section::Entry,
    syntax::{
        KeySyntax, KindDescription,
        ValueSyntax::{Pairs, Text},
    },
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "extreme",
        keeps: "An attribute of each target shows the least or the greatest value of those of the items that lead to it.",
        family: "level-triggered",
        costs: "1 for each target whose extreme changes, and for each index that projects it",
        example: r#"
[derivation.first-order]
kind = "extreme"
from = "Order"
into = "User.firstOrderAt"
min = "placedAt"
"#,
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 5] = [
    KeySyntax::required("from", Text, "the entity whose items have the values"),
    KeySyntax::required("into", Text, "`Entity.attribute`: the target, and the attribute that shows the extreme"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the target's key and the field of the source's key that gives it",
    ),
    KeySyntax::optional(
        "min",
        Text,
        "",
        "the field whose least value is shown, if `max` is not given; the sort key of `from` begins with it, behind the fields that lead to the \
         target: `OFFER#{price:8}#{offerId}`, or `{MAX-price:8}` if the greatest stands first",
    ),
    KeySyntax::optional(
        "max",
        Text,
        "",
        "the field whose greatest value is shown, if `min` is not given; the same holds for the sort key",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity whose items have the values")?;
    let (target, attribute) = rule.shown_attribute("the attribute that shows it, as in \"Product.lowestPrice\"")?;
    let link = rule.link(target, source)?;
    let (entry, is_max) = match (rule.section.get("min"), rule.section.get("max")) {
        (Some(entry), None) => (entry, false),
        (None, Some(entry)) => (entry, true),
        (None, None) => {
            return Err(rule.section.place.wrong("min or max is missing: the field whose extreme is shown"));
        }
        (Some(_), Some(both)) => {
            return Err(both.place.wrong("is one of two: an extreme is a min or a max, and each is a derivation"));
        }
    };
    let is_descending = is_descending(source, &link, &entry)?;
    let order = if is_max == is_descending { Order::Ascending } else { Order::Descending };
    let attributes = vec![(Input::of(entry.text()?.text), attribute)];
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![rule.derivation(rule.name, Latest { source, target, link, order, attributes, list: None })?])
}

/// True if the field's greatest value comes first in the sort key. It must be the first field that the link does not
/// use.
fn is_descending(source: &Definition, link: &Link, entry: &Entry<'_>) -> Result<bool, ManifestError> {
    let named = entry.text()?;
    let sort = &source.key.sk;
    let first = range::first_behind(sort, |name| link.from_fields().any(|linked| linked == name));
    if first != Some(named.text) {
        let what = format!(
            "the values of {} are not in the order of the sort key of {}, which is {sort}: behind the fields that lead to \
             the target it begins with the value, as in OFFER#{{{}:8}}#{{offerId}}",
            named.text, source.name, named.text
        );
        return Err(named.place.wrong(what));
    }
    Ok(range::is_descending(sort, named.text))
}
