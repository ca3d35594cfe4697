//! The kinds that derive an attribute or a key of an item: `calculated`, `path` and `index-key`.

use derive::{
    derivation::Derivation,
    kinds::{calculated::Calculated, index_key::DerivedIndexKey, path::TreePath},
};
use keys::{
    entity::Definition,
    number::QUOTIENT_PLACES,
    template::{Piece, form::Form},
};

use super::{
    KindSyntax, Rule, derived_attribute,
    given::{self, given},
    link::{self, index_of},
};
use crate::{
    error::ManifestError,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

// ---- calculated: what an expression gives from the item itself ----

pub(super) const CALCULATED: KindSyntax = KindSyntax {
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
        keys: &CALCULATED_KEYS,
    },
    read: calculated,
};

const CALCULATED_KEYS: [KeySyntax; 2] = [
    KeySyntax::required("into", Text, "`Entity.attribute`: the items, and the derived attribute that has the value"),
    KeySyntax::required(
        "value",
        Text,
        "the [expression](#expressions) over fields and attributes of the item, derived ones too; where it is missing, as a \
         quotient by 0 is, the attribute is absent",
    ),
];

fn calculated(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let (target, attribute) =
        rule.shown_attribute("the attribute that has the value, as in \"Project.percentDone\"")?;
    let value = rule.section.required("value", "what it is, as in \"100 * doneCount / taskCount\"")?.text()?;
    let value = given::value(target, &value, rule.types)?;
    Ok(vec![rule.derivation(rule.name, Calculated { target: target.name.clone(), attribute, value })?])
}

// ---- path: an item's position in a tree, spelled out from the root ----

/// Most levels of a tree, plus one.
const DEPTH_END: u32 = 1_025;

pub(super) const PATH: KindSyntax = KindSyntax {
    description: KindDescription {
        name: "path",
        keeps: "An attribute spells out where an item stands in a tree, from the top. An item of the parents' own entity that names no parent is a root.",
        family: "level-triggered",
        costs: "1 for each item whose path changes; a change at the top goes down level by level",
        example: r#"
[derivation.folder-path]
kind = "path"
into = "Folder.path"
parent = "Folder"
link = { folderId = "parentId" }
name = "name"
depth = 64
found = { index = "byParent", by = { parentId = "folderId" } }
"#,
        keys: &PATH_KEYS,
    },
    read: path,
};

const PATH_KEYS: [KeySyntax; 6] = [
    KeySyntax::required("into", Text, "`Entity.attribute`: the attribute that holds the path"),
    KeySyntax::required("parent", Text, "the entity of the items that they stand in"),
    KeySyntax::optional(
        "link",
        Pairs,
        "fields of the same names",
        "pairs of a field of the parent's key and the field, attribute or [expression](#expressions) of the item that gives it",
    ),
    KeySyntax::required("name", Text, "the field or attribute that is an item's part of the path"),
    KeySyntax::required(
        "depth",
        ValueSyntax::WholeNumber(1, DEPTH_END - 1),
        "how many parts a path has at most; a deeper item has none",
    ),
    KeySyntax::optional(
        "found",
        ValueSyntax::TextOrTable(&link::FOUND),
        "the target's own items, in the source's partition of the table",
        "how the items that stand in a parent are found when its path changes",
    ),
];

fn path(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let (target, attribute) = rule.shown_attribute("the attribute that holds the path, as in \"Folder.path\"")?;
    let parent = rule.entity("parent", "the entity of the items that they stand in")?;
    let name = rule.section.required("name", "the attribute or field that is an item's part of the path")?.text()?;
    // A field of the key is always text, whatever the key's type.
    if !target.key.holds(name.text) {
        rule.types.text(target, &name, "a part of a path is text (S): name an attribute of text")?;
    }
    let name = given(target, &name, rule.types)?;
    let depth = rule.section.required("depth", "how many parts a path has at most, as in 64")?;
    let depth_max = usize::try_from(depth.whole_number(1..DEPTH_END)?).unwrap_or(usize::MAX);
    let link = rule.link(parent, target)?;
    let found = link::found(rule, parent, target, &link)?;
    let (target, parent) = (target.name.clone(), parent.name.clone());
    let path = TreePath { target, parent, link, name, attribute, depth_max, found };
    Ok(vec![rule.derivation(rule.name, path)?])
}

// ---- index-key: an item's key in an index that is ordered by a derived number ----

pub(super) const INDEX_KEY: KindSyntax = KindSyntax {
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
        keys: &INDEX_KEY_KEYS,
    },
    read: index_key,
};

const INDEX_KEY_KEYS: [KeySyntax; 3] = [
    KeySyntax::required("into", Text, "the entity of the items"),
    KeySyntax::required("index", Text, "the index; the entity says `derived = true` in `[entity.NAME.index.INDEX]`"),
    KeySyntax::required("number", Text, "the derived attribute that orders the index"),
];

fn index_key(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
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
