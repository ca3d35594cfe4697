//! Drafts a manifest from a table and a part of its items. `ripple init` prints it.
//!
//! What it keeps true: a draft passes `ripple check`. Every part is added only if the manifest is valid with it;
//! otherwise the part is a comment, with the reason. A draft contains names of attributes, kinds of items and constant
//! parts of keys, but no values of items. It declares no derivation: those that the sample suggests are comments with the
//! evidence, for a person to decide.
//!
//! The steps, each in a module:
//!
//! 1. `words` finds the constant parts of keys, and `type_attribute` the attribute that names the kind of an item.
//! 2. `entities` groups the items, and gives each kind the form of its keys. `forms` divides the keys, `names` names
//!    their fields.
//! 3. `links` finds which kinds name which, and `proposals` compares their attributes and numbers.
//! 4. `render` writes the text, and checks each part of it.
//!
//! [`files`] reads descriptions of tables from files instead.

mod entities;
pub mod files;
mod forms;
mod links;
mod names;
mod proposals;
mod render;
pub mod shape;
mod text;
mod type_attribute;
mod words;

use shape::{KeyReading, SampledTable};

use crate::entities::TableKinds;

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
    let forms: Vec<TableKinds<'_>> = tables.iter().map(|table| entities::find(table, KeyReading::Forms)).collect();
    let (is_one, kinds) = match (tables, forms.as_slice()) {
        ([table], [kinds]) if table.shape.has_two_texts() && !is_plain(kinds) => (true, forms),
        _ => (false, tables.iter().map(in_tables).collect()),
    };
    render::render(origin, tables, kinds, is_one)
}

/// True if no kind of items has keys with constant text. Such a table is declared by `[tables.NAME]`, which keeps
/// Ripple's own items out of it.
fn is_plain(kinds: &TableKinds<'_>) -> bool {
    !kinds.found.is_empty() && kinds.found.iter().all(entities::Found::is_raw)
}

/// The kinds of items for `[tables.NAME]`: all of them have forms, or none.
fn in_tables(table: &SampledTable) -> TableKinds<'_> {
    let plain = entities::find(table, KeyReading::Plain);
    let kinds =
        if plain.found.iter().all(entities::Found::is_raw) { plain } else { entities::find(table, KeyReading::Forms) };
    // Without an attribute that names their kind, all items of a table are of one entity.
    if kinds.type_attribute.is_none() && kinds.found.len() + kinds.notes.len() > 1 {
        return entities::find(table, KeyReading::AsTheyAre);
    }
    kinds
}

#[cfg(test)]
mod tests;
