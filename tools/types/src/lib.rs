//! Typed keys and items for an application: source text in its language, made from a schema and a catalogue.
//!
//! What it keeps true: the printed text builds and parses every key exactly as the crate `keys` does, with the same
//! refusals, and it depends on nothing but its language.
//! Each language has three parts: a fixed one that interprets the pieces of a template (`runtime/`), the templates as
//! values of that language, and the types of keys and items.
//! A `TypedEntity` describes the last two once; a renderer a language writes it down.

mod attributes;
mod description;
mod python;
mod rust;
mod typescript;

use derive::{catalogue::Catalogue, schema::Schema};

/// A language of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// TypeScript, for a target of ES2022 or later.
    TypeScript,
    /// Python 3.11 or later.
    Python,
    /// Rust 1.82 or later, edition 2021 or later.
    Rust,
}

/// A source file with the keys and items of a table.
#[must_use]
pub fn types(language: Language, schema: &Schema, catalogue: &Catalogue) -> String {
    let entities = description::entities(schema, catalogue);
    let (comment, runtime, rendered) = match language {
        Language::TypeScript => ("//", include_str!("../runtime/keys.ts"), typescript::rendered(&entities)),
        Language::Python => ("#", include_str!("../runtime/keys.py"), python::rendered(&entities)),
        Language::Rust => ("//", include_str!("../runtime/keys.rs"), rust::rendered(&entities)),
    };
    let head = format!("{comment} Printed by `ripple types`: change the manifest instead, and print it again.\n");
    [head.as_str(), runtime, &rendered].join("\n")
}

/// A text as a literal of TypeScript and Python, which read JSON's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// All parts, one behind the other.
fn concat(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}
