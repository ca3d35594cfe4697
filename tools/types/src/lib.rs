//! Generates typed keys, items and reads for an application: source text in its language, from a schema and a
//! catalogue.
//!
//! What it keeps true: the printed code builds and parses every key exactly as the crate `keys` does, and refuses the
//! same values. Keys and items depend on nothing but the language; reads call the client of AWS's SDK.
//!
//! Each language has these parts: a fixed runtime that interprets the pieces of a template, and one that reads
//! (`runtime/`); the templates and reads as values of that language; and the types of keys and items. A `TypedEntity`
//! and a `TypedRead` describe them for all languages. One renderer per language writes them.

pub mod attributes;
mod description;
mod python;
mod reads;
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
    let (entities, reads) = (description::entities(schema, catalogue), reads::reads(schema));
    let (comment, of_keys, of_reads) = match language {
        Language::TypeScript => ("//", include_str!("../runtime/keys.ts"), include_str!("../runtime/reads.ts")),
        Language::Python => ("#", include_str!("../runtime/keys.py"), include_str!("../runtime/reads.py")),
        Language::Rust => ("//", include_str!("../runtime/keys.rs"), include_str!("../runtime/reads.rs")),
    };
    let runtime = [of_keys, if reads.is_empty() { "" } else { of_reads }].concat();
    let rendered = match language {
        Language::TypeScript => typescript::rendered(&runtime, &entities, &reads),
        Language::Python => python::rendered(&runtime, &entities, &reads),
        Language::Rust => rust::rendered(&runtime, &entities, &reads),
    };
    let head = format!("{comment} Printed by `ripple types`: change the manifest instead, and print it again.");
    [head.as_str(), "", &runtime, &rendered].join("\n")
}

/// A text as a literal of TypeScript and Python, which accept JSON's string literals.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn concat(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}
