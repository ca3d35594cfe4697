//! The manifest: a `ripple.toml` that declares a table of any shape and its derivations, without Rust.
//!
//! What it keeps true: a manifest gives the same values as typed declarations, a [`Schema`] and a [`Catalogue`], so the
//! engine cannot tell them apart. An invalid or unclear manifest is refused with the line, the key and a suggestion.
//! Nothing in it is ignored: an unknown key is an error.
//!
//! It parses the file once, in this order: the `layout` (`[table]`, `[index.…]`) or the `tables` (`[tables.…]`), the
//! `entities` (`[entity.…]`), the derivations (`[derivation.…]`), and the application's reads
//! (`[access.…]`). Each step looks up names in the results of earlier steps, so that a wrong name is not reported as a
//! missing one. Mistakes that only appear in the whole (a circle, two writers of one attribute) are refused by the
//! catalogue; its error gets the line of the derivation here.
//!
//! ```
//! let (schema, catalogue) = manifest::load(r##"
//!     [table]
//!     partition-key = "pk"
//!     sort-key = "sk"
//!     type = "Type"
//!
//!     [entity.User]
//!     partition-key = "USER#{userId}"
//!     sort-key = "USER#{userId}"
//!     derived-attributes = ["orderCount"]
//!
//!     [entity.Order]
//!     partition-key = "USER#{userId}"
//!     sort-key = "ORDER#{orderedOn}#{orderId}"
//!
//!     [derivation.order-count]
//!     kind = "count"
//!     from = "Order"
//!     into = "User.orderCount"
//! "##)?;
//! assert!(schema.entity("Order").is_some());
//! let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
//! assert_eq!(names, ["order-count", "order-count-display"]);
//! # Ok::<(), manifest::error::ManifestError>(())
//! ```
//!
//! [`syntax`] has every key as data: the parser refuses others, and the reference page and the JSON Schema describe
//! them.

mod access;
mod entities;
pub mod error;
mod kinds;
mod layout;
mod section;
pub mod syntax;
mod tables;

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use derive::{catalogue::Catalogue, schema::Schema};
use toml_edit::Document;

use crate::{
    error::{ManifestError, ManifestFileError},
    section::Section,
};

/// Longest manifest, in bytes: one of 5,000 entities has less than 2 MB.
const BYTES_MAX: u64 = 16_000_000;

/// The keys at the top of a manifest.
const TOP: [&str; 6] = ["table", "index", "tables", "entity", "derivation", "access"];

/// Schema and catalogue of a manifest's text.
///
/// # Errors
///
/// [`ManifestError`] with the line, the key and a suggestion.
pub fn load(text: &str) -> Result<(Schema, Catalogue), ManifestError> {
    let document = Document::parse(text).map_err(|error| ManifestError::syntax(text, &error))?;
    let root = Section::root(text, document.as_table());
    root.only(&TOP)?;
    let schema = match tables::read(&root)? {
        Some(forms) => entities::in_forms(&root, forms)?,
        None => entities::read(&root, layout::read(&root)?)?,
    };
    let (mut schema, catalogue) = kinds::read(&root, schema)?;
    schema.accesses = access::read(&root, &schema, &catalogue)?;
    Ok((schema, catalogue))
}

/// What a valid manifest says without effect, each with its place, the key, and why.
#[must_use]
pub fn notices(text: &str) -> Vec<String> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let derivations = Section::root(text, document.as_table()).sections("derivation").unwrap_or_default();
    let shards = derivations.iter().filter_map(|(_, section)| section.get("shards"));
    let what = "is not needed: a counter that many stream shards feed spreads by itself. Leave it out";
    shards.map(|entry| entry.place.wrong(what).to_string()).collect()
}

/// Schema and catalogue of the manifest in a file.
///
/// # Errors
///
/// [`ManifestFileError`] naming the file, the line, the key and a suggestion.
pub fn read(path: &Path) -> Result<(Schema, Catalogue), ManifestFileError> {
    let file = path.display().to_string();
    match file_text(path, BYTES_MAX) {
        Ok(text) => load(&text).map_err(|error| ManifestFileError::Wrong { file, error }),
        Err(source) => Err(ManifestFileError::Unreadable { file, source }),
    }
}

/// The text of a file of at most `bytes_max` bytes: a device or a pipe may never end.
///
/// # Errors
///
/// Read errors, and an error for a longer file or for bytes that are not UTF-8.
pub fn file_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let n_bytes = File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes > bytes_max) {
        return Err(io::Error::other(format!("it is longer than {} MB", bytes_max / 1_000_000)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

#[cfg(test)]
mod tests;
