//! Checks of the names in a declaration against the schema. Each error is a sentence for the person who declared it.

use keys::entity::Definition;

use crate::{condition::document_path::root, schema::Schema};

/// The definition of a declared entity.
pub(crate) fn entity<'a>(schema: &'a Schema, name: &str) -> Result<&'a Definition, String> {
    schema.entity(name).ok_or_else(|| format!("there is no entity {name}"))
}

/// Checks that an entity's items may have these attributes, or those that these are inside of.
pub(crate) fn knows<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        let mut known = definition.attributes.iter().chain(&definition.derived_attributes);
        if !known.any(|attribute| *attribute == root(name)) {
            return Err(format!("{} has no attribute {name}", definition.name));
        }
    }
    Ok(())
}

/// Checks that an entity's items may have numbers under these names: attributes, or fields that are all of a key of type N.
pub(crate) fn knows_numbers<'a>(
    definition: &Definition,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), String> {
    knows(definition, names.into_iter().filter(|name| !definition.key.is_of_number(name)))
}

/// Checks that an entity declares these attributes as derived.
pub(crate) fn declares<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        if !definition.derived_attributes.iter().any(|declared| declared == name) {
            return Err(format!("{} does not declare {name} as derived", definition.name));
        }
    }
    Ok(())
}
