//! What a derivation reads from an item: a field of its key, an attribute, or a value inside one by its path.

use keys::entity::Definition;

use super::{
    known::KnownTypes,
    link::{fields, known},
};
use crate::{error::ManifestError, meant::meant, section::Named};

/// A field of the key, an attribute, or the path of a value inside one, such as `address.city`.
pub(super) fn given(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<String, ManifestError> {
    let there_is_no = format!("{} has no field or attribute", entity.name);
    inside(entity, named, types)?.map_or_else(|| whole(named, &there_is_no, &fields(entity)), Ok)
}

/// An attribute, or the path of a value inside one; not a field of the key.
pub(super) fn held(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<String, ManifestError> {
    if entity.key.holds(named.text) {
        let what = format!("{} is a field of the key of {}, and here stands an attribute", named.text, entity.name);
        return Err(named.place.wrong(what));
    }
    let there_is_no = format!("{} has no attribute", entity.name);
    inside(entity, named, types)?.map_or_else(|| whole(named, &there_is_no, &attributes(entity)), Ok)
}

/// A number: an attribute, the path of a value, or a field that makes up a whole key of type N.
pub(super) fn number(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<String, ManifestError> {
    if entity.key.is_of_number(named.text) { Ok(named.text.to_owned()) } else { held(entity, named, types) }
}

fn whole(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<String, ManifestError> {
    known(named, there_is_no, names)?;
    Ok(named.text.to_owned())
}

/// The path of a value inside an attribute, if it is a path.
fn inside(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Option<String>, ManifestError> {
    let Some(path) = named.path()? else { return Ok(None) };
    let (text, root, name) = (named.text, &path.attribute, &entity.name);
    let attributes = attributes(entity);
    if attributes.contains(&root.as_str()) {
        let taken =
            format!("\"{text}\" is inside of it, where it has no parts: name an attribute that is a map or a list");
        types.with_parts(entity, named, root, &taken)?;
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
