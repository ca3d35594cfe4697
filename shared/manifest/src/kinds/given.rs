//! What a derivation reads from an item: a field of its key, an attribute, a value inside one by its path, or what an
//! expression calculates from these.

use derive::expression::{DocumentPath, Expression, Input};
use keys::entity::Definition;

use super::{
    known::{self as types, KnownTypes},
    link::{fields, known},
};
use crate::{error::ManifestError, meant::meant, section::Named};

/// A field of the key, an attribute, or the path of a value inside one, such as `address.city`; nothing calculated.
pub(super) fn given(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<String, ManifestError> {
    let there_is_no = format!("{} has no field or attribute", entity.name);
    inside(entity, named, types)?.map_or_else(|| whole(named, &there_is_no, &fields(entity)), Ok)
}

/// A value: a field of the key, an attribute, the path of a value inside one, or an expression.
pub(super) fn input(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    match calculated(entity, named)? {
        None => Ok(Input::of(&given(entity, named, types)?)),
        Some(expression) => {
            known_in(entity, &expression, named, types)?;
            Ok(Input::from(expression))
        }
    }
}

/// A value that every item has to give: it is no literal.
pub(super) fn value(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    let input = input(entity, named, types)?;
    if input.names().next().is_none() {
        let what = "reads no attribute: a text stands in single quotes, and a name in none";
        return Err(named.place.wrong(what));
    }
    Ok(input)
}

/// A number: a field of a number, an attribute, the path of a value inside one, or an expression.
pub(super) fn number(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    let input = value(entity, named, types)?;
    let of = match input.name() {
        Some(name) => entity.key.holds(name).then(|| types::of_field(entity, name)),
        None => input.expression().type_of(),
    };
    match of.filter(|of| *of != "N") {
        Some(of) => {
            let hint = if of == "S" { format!(": write number({input})") } else { String::new() };
            Err(named.place.wrong(format!("{input} is {of}, and a number (N) is wanted{hint}")))
        }
        None => Ok(input),
    }
}

/// The expression of a text that is neither a name nor a path.
fn calculated(entity: &Definition, named: &Named<'_>) -> Result<Option<Expression>, ManifestError> {
    // A name with another letter is more likely than a calculation.
    let is_name = fields(entity).contains(&named.text) || meant(named.text, fields(entity)).ends_with('?');
    let has_sign = named.text.contains(['(', '*', '+', '-', '|', '/', '\'', ' ']);
    if is_name || !has_sign || named.text.parse::<DocumentPath>().is_ok() {
        return Ok(None);
    }
    let parsed = named.text.parse::<Expression>();
    parsed.map(Some).map_err(|error| named.place.wrong(format!("is no name and no expression: {error}")))
}

/// Refuses what an expression reads and the entity lacks, and values that its functions do not take.
pub(super) fn known_in(
    entity: &Definition,
    expression: &Expression,
    named: &Named<'_>,
    types: &KnownTypes<'_>,
) -> Result<(), ManifestError> {
    for path in expression.paths() {
        known_path(entity, path, named, types)?;
    }
    for (path, of, call) in expression.taken() {
        types.takes(entity, path, (of, call), named)?;
    }
    Ok(())
}

/// Refuses a path into something that the entity lacks, or that has no parts.
pub(super) fn known_path(
    entity: &Definition,
    path: &DocumentPath,
    named: &Named<'_>,
    types: &KnownTypes<'_>,
) -> Result<(), ManifestError> {
    let (text, name) = (path.name(), path.attribute.as_str());
    let place = Named { text: if path.steps.is_empty() { name } else { &text }, place: named.place.clone() };
    if !path.steps.is_empty() {
        return inside(entity, &place, types).map(drop);
    }
    whole(&place, &format!("{} has no field or attribute", entity.name), &fields(entity)).map(drop).map_err(
        |mut error| {
            if !error.what.ends_with('?') {
                error.what.push_str(if named.text.contains('-') {
                    "; a text stands in single quotes, and a name with - in it in double quotes"
                } else {
                    "; a text stands in single quotes"
                });
            }
            error
        },
    )
}

fn whole(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<String, ManifestError> {
    known(named, there_is_no, names).map_err(|mut error| {
        if !error.what.ends_with('?') {
            error.what.push_str("; one that your items have is declared in attributes");
        }
        error
    })?;
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
