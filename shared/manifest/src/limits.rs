//! DynamoDB's limits on the names and the indexes of tables, so that a manifest that cannot be deployed is refused.
//!
//! Sources: DynamoDB API reference, `CreateTable`, `GlobalSecondaryIndex` and `Projection`; developer guide, "Quotas in
//! Amazon DynamoDB".

use std::ops::RangeInclusive;

use crate::{
    error::ManifestError,
    section::{Section, TomlPlace},
};

/// Length of the name of a table or an index, in characters.
const NAME_CHARS: RangeInclusive<usize> = 3..=255;

/// Longest name of an attribute of a key or a projection, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 255;

/// Most attributes that one index projects beside its keys, unless it projects all.
const INDEX_PROJECTED_MAX: usize = 20;

/// Most attributes that all indexes of a table project beside their keys. One that two indexes project counts twice.
const TABLE_PROJECTED_MAX: usize = 100;

/// Checks the name of a table or an index.
pub(crate) fn name(what: &str, name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if name.chars().all(is_allowed) && NAME_CHARS.contains(&name.len()) {
        return Ok(());
    }
    Err(place.wrong(format!("the name of {what} has 3 to 255 letters, digits, _, . and - only: give it another one")))
}

/// Checks the name of an attribute of a key or a projection.
pub(crate) fn attribute(name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
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
                attribute(name, &named.place)?;
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
