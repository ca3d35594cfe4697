//! `[table]` and `[index.…]`: the attributes of the table's keys and indexes.

use keys::layout::{Index, Layout};

use crate::{
    error::ManifestError,
    limits,
    section::{Entry, Section},
    syntax::{
        KeySyntax,
        ValueSyntax::{OneOf, Text, Texts},
    },
};

/// Keys of `[table]`.
pub(crate) const TABLE: [KeySyntax; 5] = [
    KeySyntax::required("partition-key", Text, "attribute of the partition key, of type S"),
    KeySyntax::required("sort-key", Text, "attribute of the sort key, of type S"),
    KeySyntax::optional(
        "type",
        Text,
        "the form of its key alone identifies an item",
        "attribute that names the entity of an item, of type S; Ripple ignores an item without it. Without this key no key may \
         match two forms, and derived items name their entity in `RippleType`",
    ),
    KeySyntax::optional("time-to-live", Text, "", "attribute of the time to live; mirrors never repeat it"),
    ESCAPE,
];

/// How the keys of a table contain values.
pub(crate) const ESCAPE: KeySyntax = KeySyntax::optional(
    "escape",
    OneOf(&["percent", "none"]),
    "`\"percent\"`",
    "how a form contains a value: with `%23` for `#` and `%25` for `%`, or as it is, for values that never contain a `#`",
);

/// True if the keys of this table contain unescaped values.
pub(crate) fn is_unescaped(table: &Section<'_>) -> Result<bool, ManifestError> {
    let Some(entry) = table.get("escape") else { return Ok(false) };
    let named = entry.text()?;
    match named.text {
        "none" => Ok(true),
        "percent" => Ok(false),
        _ => Err(named.unknown("there is no value", ["percent", "none"])),
    }
}

/// Keys of `[index.NAME]`.
pub(crate) const INDEX: [KeySyntax; 3] = [
    KeySyntax::required("partition-key", Text, "attribute of the index's partition key, of type S"),
    KeySyntax::required(
        "sort-key",
        Text,
        "attribute of its sort key, of type S; Ripple cannot use an index without one",
    ),
    PROJECTION,
];

/// What both forms of an index project.
pub(crate) const PROJECTION: KeySyntax = KeySyntax::optional(
    "projection",
    Texts,
    "all (`ALL`)",
    "attributes that it projects beside the keys; `[]` for the keys alone (`KEYS_ONLY`)",
);

/// Names of the table's attributes and indexes.
pub(crate) fn read(root: &Section<'_>) -> Result<Layout, ManifestError> {
    let table = root
        .required(
            "table",
            "[table] names the attributes of the keys; for a table of another form there is [tables.NAME]",
        )?
        .section()?;
    table.follows(&TABLE)?;
    let pk = attribute(&table.required("partition-key", "the attribute of the partition key")?)?;
    let sk = attribute(&table.required("sort-key", "the attribute of the sort key")?)?;
    let mut layout = Layout {
        entity_type: table.get("type").as_ref().map(attribute).transpose()?,
        time_to_live: table.get("time-to-live").as_ref().map(attribute).transpose()?,
        ..Layout::of(&pk, &sk)
    };
    for (name, section) in root.sections("index")? {
        layout.indexes.push(index(name, &section, [&pk, &sk])?);
        let projected =
            layout.indexes.iter().map(|index| (index.name.as_str(), index.projection.as_ref().map(Vec::len)));
        limits::projections(projected, &section)?;
    }
    distinct(&layout, &table)?;
    Ok(layout)
}

/// The name of a top-level attribute of an item.
pub(crate) fn attribute(entry: &Entry<'_>) -> Result<String, ManifestError> {
    let named = entry.text()?;
    named.top_level()?;
    limits::attribute(named.text, &named.place)?;
    Ok(named.text.to_owned())
}

fn index(name: &str, section: &Section<'_>, of_table: [&str; 2]) -> Result<Index, ManifestError> {
    section.follows(&INDEX)?;
    limits::name("an index", name, &section.place)?;
    let pk = attribute(&section.required("partition-key", "the attribute of the index's partition key")?)?;
    let sort_key = section.required("sort-key", "the attribute of the index's sort key")?;
    let sk = attribute(&sort_key)?;
    if sk == pk {
        return Err(sort_key.place.wrong("is the attribute of the index's partition key: name another"));
    }
    let projection = limits::projection(section, of_table.into_iter().chain([&*pk, &*sk]))?;
    Ok(Index { name: name.to_owned(), pk, sk, projection })
}

/// Checks that each attribute has one use. Only keys may share attributes, such as an index with both keys swapped.
fn distinct(layout: &Layout, table: &Section<'_>) -> Result<(), ManifestError> {
    let twice = |key: &str| {
        let place = table.get(key).map_or_else(|| table.place.clone(), |entry| entry.place);
        Err(place.wrong("names an attribute that is a key, or has another use already: name another"))
    };
    if layout.pk == layout.sk {
        return twice("sort-key");
    }
    if layout.entity_type.as_ref().is_some_and(|name| layout.is_key(name)) {
        return twice("type");
    }
    match &layout.time_to_live {
        Some(name) if layout.is_key(name) || layout.time_to_live == layout.entity_type => twice("time-to-live"),
        _ => Ok(()),
    }
}
