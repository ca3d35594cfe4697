//! `kind = "path"`: an item's position in a tree, spelled out from the root.

use derive::{derivation::Derivation, kinds::path::TreePath};

use super::{KindSyntax, Rule, found, given::given};
use crate::{
    error::ManifestError,
    syntax::{
        KeySyntax, KindDescription, ValueSyntax,
        ValueSyntax::{Pairs, Text},
    },
};

/// Most levels of a tree, plus one.
const DEPTH_END: u32 = 1_025;

pub(super) const KIND: KindSyntax = KindSyntax {
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
        keys: &KEYS,
    },
    read,
};

const KEYS: [KeySyntax; 6] = [
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
        ValueSyntax::TextOrTable(&found::FOUND),
        "the target's own items, in the source's partition of the table",
        "how the items that stand in a parent are found when its path changes",
    ),
];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
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
    let found = found::read(rule, parent, target, &link)?;
    let (target, parent) = (target.name.clone(), parent.name.clone());
    let path = TreePath { target, parent, link, name, attribute, depth_max, found };
    Ok(vec![rule.derivation(rule.name, path)?])
}
