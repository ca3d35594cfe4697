//! `kind = "index-key"`: an item's place in an index that a derived number orders.

use derive::{derivation::Derivation, kinds::index_key::DerivedIndexKey};

use super::{KindSyntax, Rule, derived_attribute, found::index_of};
use crate::{
    error::ManifestError,
    syntax::{KeySyntax, KindDescription, ValueSyntax::Text},
};

pub(super) const KIND: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "index-key",
        keeps: "An item is in an index, ordered by a derived number, while that number is above zero.",
        family: "level-triggered",
        costs: "1 for the item, with the number, and 2 in the index for each change of the number",
        example: r#"
[entity.Product.index.byUnitsSold]
partition-key = "CATEGORY#{categoryId}"
sort-key = "SOLD#{MAX-unitsSold:12}#{productId}"
derived = true

[derivation.best-sellers]
kind = "index-key"
into = "Product"
index = "byUnitsSold"
number = "unitsSold"
"#,
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 3] = [
    KeySyntax::required("into", Text, "the entity of the items"),
    KeySyntax::required("index", Text, "the index; the entity says `derived = true` in `[entity.NAME.index.INDEX]`"),
    KeySyntax::required("number", Text, "the derived attribute that orders the index"),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let target = rule.entity("into", "the entity of the items that are in the index")?;
    let index = rule.section.required("index", "the index whose keys are derived")?.text()?;
    let index = index_of(rule.schema, target, &index, "has no key with derived = true in the index", |it| it.derived)?;
    let number = rule.section.required("number", "the derived number that orders the index")?.text()?;
    let number = derived_attribute(target, &number)?;
    let (target, index) = (target.name.clone(), index);
    Ok(vec![rule.derivation(rule.name, DerivedIndexKey { target, index, number })?])
}
