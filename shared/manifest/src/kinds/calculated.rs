//! `kind = "calculated"`: an attribute of an item that an expression gives from the item itself.

use derive::{derivation::Derivation, kinds::calculated::Calculated};

use super::{KindSyntax, Rule, given};
use crate::{
    error::ManifestError,
    syntax::{KeySyntax, KindDescription, ValueSyntax::Text},
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "calculated",
        keeps: "An attribute of each item has the value of an expression over the item itself: a percentage of two of its counts, \
                the average of a roll-up's bucket, or what an index or a path is ordered by.",
        family: "level-triggered",
        costs: "1 for each item whose value changes, and for each index that projects it; none if the same write corrects what \
                it reads",
        example: r#"
[derivation.percent-done]
kind = "calculated"
into = "Project.percentDone"
value = "100 * if_not_exists(doneCount, 0) / taskCount"

[derivation.average]
kind = "calculated"
into = "ReadingTotals.average"
value = "sum / count"
"#,
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 2] = [
    KeySyntax::required("into", Text, "`Entity.attribute`: the items, and the derived attribute that has the value"),
    KeySyntax::required(
        "value",
        Text,
        "the [expression](#expressions) over fields and attributes of the item, derived ones too; where it is missing, as a \
         quotient by 0 is, the attribute is absent",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let (target, attribute) =
        rule.shown_attribute("the attribute that has the value, as in \"Project.percentDone\"")?;
    let value = rule.section.required("value", "what it is, as in \"100 * doneCount / taskCount\"")?.text()?;
    let value = given::value(target, &value, rule.types)?;
    Ok(vec![rule.derivation(rule.name, Calculated { target: target.name.clone(), attribute, value })?])
}
