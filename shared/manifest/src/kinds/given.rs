//! What a derivation reads of an item: a field of its key, an attribute, or a value inside of one by its path.

use keys::entity::Definition;

use super::link::{fields, known};
use crate::{error::ManifestError, meant::meant, section::Named};

/// A field of the key, an attribute, or the path of a value inside of one, such as `address.city`.
pub(super) fn given(entity: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    let there_is_no = format!("{} has no field or attribute", entity.name);
    inside(entity, named)?.map_or_else(|| whole(named, &there_is_no, &fields(entity)), Ok)
}

/// The same without the fields of the key.
pub(super) fn held(entity: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    if entity.key.holds(named.text) {
        let what = format!("{} is a field of the key of {}, and here stands an attribute", named.text, entity.name);
        return Err(named.place.wrong(what));
    }
    let there_is_no = format!("{} has no attribute", entity.name);
    inside(entity, named)?.map_or_else(|| whole(named, &there_is_no, &attributes(entity)), Ok)
}

fn whole(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<String, ManifestError> {
    known(named, there_is_no, names)?;
    Ok(named.text.to_owned())
}

/// The path, if it is one, of a value inside of an attribute.
fn inside(entity: &Definition, named: &Named<'_>) -> Result<Option<String>, ManifestError> {
    let Some(path) = named.path()? else { return Ok(None) };
    let (text, root, name) = (named.text, &path.attribute, &entity.name);
    let attributes = attributes(entity);
    if attributes.contains(&root.as_str()) {
        return Ok(Some(path.to_string()));
    }
    Err(named.place.wrong(if entity.key.holds(root) {
        format!("\"{text}\" is inside of {root}, which is a field of the key of {name}, and that has no parts")
    } else {
        format!(
            "\"{text}\" is inside of an attribute \"{root}\", and {name} has none of this name{}",
            meant(root, attributes)
        )
    }))
}

fn attributes(entity: &Definition) -> Vec<&str> {
    entity.attributes.iter().chain(&entity.derived_attributes).map(String::as_str).collect()
}
