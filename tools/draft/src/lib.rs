//! Drafts a manifest from a table and a part of its items. `ripple init` prints it.
//!
//! What it keeps true: a draft passes `ripple check`. Every part is added only if the manifest is valid with it;
//! otherwise the part is a comment, with the reason. A draft contains names of attributes, kinds of items and constant
//! parts of keys, but no values of items. It declares no derivation: those that the sample suggests are comments with
//! the evidence, for a person to decide.
//!
//! The steps, each in a module:
//!
//! 1. `words` finds the constant parts of keys, and the attribute that names the kind of an item.
//! 2. `entities` groups the items, and gives each kind the form of its keys. `names` names their fields.
//! 3. `proposals` finds which kinds name which, and compares their attributes and numbers.
//! 4. `render` writes the text, and checks each part of it.
//!
//! [`files`] reads descriptions of tables from files instead. If a file declares the kinds of items too, these take the
//! place of steps 1 to 3.

mod entities;
pub mod files;
mod names;
mod proposals;
mod render;
pub mod shape;
mod words;

use keys::tables::KeyAttribute;

use crate::{
    entities::{TableKinds, all_as_they_are},
    shape::{IndexShape, KeyReading, SampledTable, TableShape},
};

/// A drafted manifest.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// Names of its entities.
    pub entities: Vec<String>,
    /// Names of the proposed derivations.
    pub proposals: Vec<String>,
}

/// Drafts a manifest of tables. `origin` says where the description is from, such as `the table shop`.
#[must_use]
pub fn draft(origin: &str, tables: &[SampledTable]) -> Draft {
    let one = match tables {
        [table] if table.shape.has_two_texts() => {
            let kinds =
                entities::declared_kinds(table, true).unwrap_or_else(|| entities::find(table, KeyReading::Forms));
            let has_forms = table.declared.is_none() || !kinds.found.is_empty();
            Some(kinds).filter(|kinds| has_forms && !is_plain(kinds) && !has_plain_index(&table.shape, kinds))
        }
        _ => None,
    };
    let is_one = one.is_some();
    let kinds = one.map_or_else(|| tables.iter().map(in_tables).collect(), |kinds| vec![kinds]);
    render::render(origin, tables, kinds, is_one)
}

/// True if no kind of items has keys with constant text. Such a table is declared by `[tables.NAME]`, which keeps
/// Ripple's own items out of it.
fn is_plain(kinds: &TableKinds<'_>) -> bool {
    !kinds.found.is_empty() && kinds.found.iter().all(entities::Found::is_raw)
}

/// True if the key of an index is an attribute as it is. `[table]` has no such index, since it takes each attribute of a
/// key for a text of a form.
fn has_plain_index(shape: &TableShape, kinds: &TableKinds<'_>) -> bool {
    let is_plain = |index: &IndexShape, found: &entities::Found<'_>| {
        let Ok(Some(forms)) = found.in_index((shape, kinds.type_attribute.as_deref()), index) else { return false };
        let is_other = |keys: &[KeyAttribute]| keys.iter().any(|key| !shape.is_own_key(&key.name));
        let is_as_it_is = |keys: &[KeyAttribute], form: &str| is_other(keys) && form == all_as_they_are(keys);
        is_as_it_is(&index.pk, &forms.pk) || forms.sk.is_some_and(|form| is_as_it_is(&index.sk, &form))
    };
    shape.indexes.iter().any(|index| kinds.found.iter().any(|found| is_plain(index, found)))
}

/// The kinds of items for `[tables.NAME]`: all of them have forms, or none.
fn in_tables(table: &SampledTable) -> TableKinds<'_> {
    if let Some(declared) = entities::declared_kinds(table, false) {
        return declared;
    }
    let plain = entities::find(table, KeyReading::Plain);
    let kinds =
        if plain.found.iter().all(entities::Found::is_raw) { plain } else { entities::find(table, KeyReading::Forms) };
    // Without an attribute that names their kind, the forms of their keys tell the items apart, or all are of one entity.
    let has_several = kinds.found.len() + kinds.notes.len() > 1;
    let are_formed = kinds.notes.is_empty() && !kinds.found.iter().any(entities::Found::is_raw);
    if kinds.type_attribute.is_none() && has_several && !are_formed {
        return entities::find(table, KeyReading::AsTheyAre);
    }
    kinds
}

#[cfg(test)]
mod tests;
