//! `[table]` and `[index.…]`: the attributes of the table's keys and indexes; and DynamoDB's limits on the names and
//! the indexes of tables, so that a manifest that cannot be deployed is refused.

use std::ops::RangeInclusive;

use keys::layout::{Index, Layout};

use crate::{
    error::ManifestError,
    section::{Entry, Section, TomlPlace},
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
    Ok(table.choice("escape", ["percent", "none"])? == "none")
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
        projections(projected, &section)?;
    }
    distinct(&layout, &table)?;
    Ok(layout)
}

/// The name of a top-level attribute of an item.
pub(crate) fn attribute(entry: &Entry<'_>) -> Result<String, ManifestError> {
    let named = entry.text()?;
    named.top_level()?;
    attribute_name(named.text, &named.place)?;
    Ok(named.text.to_owned())
}

fn index(name: &str, section: &Section<'_>, of_table: [&str; 2]) -> Result<Index, ManifestError> {
    section.follows(&INDEX)?;
    plain_name("an index", name, &section.place)?;
    let pk = attribute(&section.required("partition-key", "the attribute of the index's partition key")?)?;
    let sort_key = section.required("sort-key", "the attribute of the index's sort key")?;
    let sk = attribute(&sort_key)?;
    if sk == pk {
        return Err(sort_key.place.wrong("is the attribute of the index's partition key: name another"));
    }
    let projection = projection(section, of_table.into_iter().chain([&*pk, &*sk]))?;
    Ok(Index { name: name.to_owned(), pk, sk, projection })
}

/// Checks that each attribute has one use. Only keys may share attributes, such as an index with both keys swapped.
fn distinct(layout: &Layout, table: &Section<'_>) -> Result<(), ManifestError> {
    let twice = |key: &str| {
        let place = table.place_of(key);
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

// ---- DynamoDB's limits ----
//
// Sources: DynamoDB API reference, `CreateTable`, `GlobalSecondaryIndex` and `Projection`; developer guide, "Quotas in
// Amazon DynamoDB".

/// Length of the name of a table or an index, in characters.
const NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// Longest name of an attribute of a key or a projection, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 255;

/// Most attributes that one index projects beside its keys, unless it projects all.
const INDEX_PROJECTED_MAX: usize = 20;

/// Most attributes that all indexes of a table project beside their keys. One that two indexes project counts twice.
const TABLE_PROJECTED_MAX: usize = 100;

/// Checks the name of a table or an index.
pub(crate) fn plain_name(what: &str, name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if name.chars().all(is_allowed) && NAME_CHARS.contains(&name.len()) {
        return Ok(());
    }
    Err(place.wrong(format!("the name of {what} has 3 to 255 letters, digits, _, . and - only: give it another one")))
}

/// Checks the name of an attribute of a key or a projection.
pub(crate) fn attribute_name(name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
    if name.len() <= ATTRIBUTE_BYTES_MAX {
        return Ok(());
    }
    let n_bytes = name.len();
    Err(place.wrong(format!("the name of an attribute here has at most 255 bytes, and this one has {n_bytes}")))
}

/// The attributes that an index projects beside its keys; `None` for all. `keys` are those of the table and of the index.
pub(crate) fn projection<'k>(
    section: &Section<'_>,
    keys: impl IntoIterator<Item = &'k str>,
) -> Result<Option<Vec<String>>, ManifestError> {
    let Some(entry) = section.get("projection") else { return Ok(None) };
    let (names, keys) = (entry.texts()?, keys.into_iter().collect::<Vec<_>>());
    for named in &names {
        let what = match named.text {
            "ALL" | "*" => "is no attribute: an index without `projection` projects all",
            "KEYS_ONLY" => "is no attribute: write projection = [] for the keys alone",
            "INCLUDE" => "is no attribute: name those that the index projects",
            name if keys.contains(&name) => "is an attribute of a key, which the index projects anyway: leave it out",
            name => {
                named.top_level()?;
                attribute_name(name, &named.place)?;
                continue;
            }
        };
        return Err(named.place.wrong(format!("{} {what}", named.text)));
    }
    Ok(Some(names.into_iter().map(|named| named.text.to_owned()).collect()))
}

/// Checks how many attributes each index of a table projects, and all of them together; `None` projects all.
pub(crate) fn projections<'a>(
    indexes: impl Iterator<Item = (&'a str, Option<usize>)>,
    section: &Section<'_>,
) -> Result<(), ManifestError> {
    let mut n_all = 0;
    for (index, n_projected) in indexes {
        let n_projected = n_projected.unwrap_or(0);
        if n_projected > INDEX_PROJECTED_MAX {
            return Err(section.place.wrong(format!(
                "the index {index} projects {n_projected} attributes, and DynamoDB allows {INDEX_PROJECTED_MAX}: name \
                 fewer; an index without `projection` projects all"
            )));
        }
        n_all += n_projected;
    }
    if n_all <= TABLE_PROJECTED_MAX {
        return Ok(());
    }
    Err(section.place.wrong(format!(
        "the indexes project {n_all} attributes together, and DynamoDB allows {TABLE_PROJECTED_MAX} in a table: name \
         fewer; an index without `projection` projects all, and counts none"
    )))
}
