//! `kind = "index-key"`: an item's key in an index that is ordered by a derived number.

use derive::{derivation::Derivation, kinds::index_key::DerivedIndexKey};
use keys::{
    entity::Definition,
    number::QUOTIENT_PLACES,
    template::{Piece, form::Form},
};

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
    let named = rule.section.required("number", "the derived number that orders the index")?.text()?;
    let number = derived_attribute(target, &named)?;
    if rule.types.is_quotient(&target.name, &number) && !takes_quotients(target, &index, &number) {
        return Err(named.place.wrong(format!(
            "{number} is a quotient, with up to {QUOTIENT_PLACES} digits behind the point, and the key has room for fewer: \
             write {{{number}:12.{QUOTIENT_PLACES}}} there, or {{MAX-{number}:12.{QUOTIENT_PLACES}}}"
        )));
    }
    let (target, index) = (target.name.clone(), index);
    Ok(vec![rule.derivation(rule.name, DerivedIndexKey { target, index, number })?])
}

/// True if the key in the index has room for the digits of a quotient.
fn takes_quotients(target: &Definition, index: &str, number: &str) -> bool {
    let key = target.indexes.iter().find(|key| key.index == index).map(|key| &key.key);
    let pieces = key.into_iter().flat_map(|key| key.pk.pieces().iter().chain(key.sk.pieces()));
    pieces.into_iter().all(|piece| match piece {
        Piece::Field { name, form: Form::Padded(width) | Form::Inverted(width) } if name == number => {
            i64::from(width.places) >= QUOTIENT_PLACES
        }
        _ => true,
    })
}
