//! Why a manifest is refused, and suggestions for a name that does not exist.

use std::{fmt, io};

use toml_edit::TomlError;

/// A mistake in a manifest. It prints as `12:1: derivation.followers.from: there is no entity "Folow": …`. With a file
/// name and a colon before it, editors open the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, in characters, counted from 1.
    pub column: usize,
    /// The key with its tables, joined by points; empty if the file is not TOML.
    pub key: String,
    /// The problem, and a suggestion.
    pub what: String,
}

impl ManifestError {
    /// The file is not TOML.
    pub(crate) fn syntax(text: &str, error: &TomlError) -> Self {
        let span = error.span().unwrap_or_default();
        let why = error.message().lines().next().unwrap_or_default();
        let piece = text.get(span.clone()).map(str::trim).filter(|piece| !piece.is_empty() && !piece.contains('\n'));
        let at = piece.map(|piece| format!(", at `{piece}`")).unwrap_or_default();
        Self::at(text, span.start, String::new(), format!("this is not TOML: {why}{at}"))
    }

    /// A mistake at a byte of the text.
    pub(crate) fn at(text: &str, at: usize, key: String, what: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let begun = before.rsplit('\n').next().unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: begun.chars().count() + 1, key, what }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{}:{}: {}{colon}{}", self.line, self.column, self.key, self.what)
    }
}

impl std::error::Error for ManifestError {}

/// Why a manifest's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestFileError {
    /// It cannot be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// It was read, and its content is invalid.
    #[error("{file}:{error}")]
    Wrong {
        /// The file.
        file: String,
        /// The mistake; it is part of the message, so it is not a source.
        error: ManifestError,
    },
}

// ---- what may be meant ----

/// Most names that are listed if none of them is similar.
const LISTED_MAX: usize = 16;

/// The end of a sentence about an unknown name: a suggestion, or else the valid names.
#[must_use]
pub fn meant<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(near) = nearest(name, &names) {
        return format!(": did you mean \"{near}\"?");
    }
    match names.as_slice() {
        [] => ": there is none".to_owned(),
        [one] => format!(": there is {one}"),
        few if few.len() <= LISTED_MAX => format!(": there are {}", few.join(", ")),
        _ => String::new(),
    }
}

/// The end of such a sentence for a person at a terminal, with the command that lists the names.
#[must_use]
pub fn meant_or_listed<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let meant = meant(name, names);
    if meant.is_empty() { "; `ripple design` lists all".to_owned() } else { meant }
}

/// The nearest name within one or two typing errors; the first one if several are equally near.
fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    let near = names.iter().map(|other| (distance(other), *other));
    let edits_max = (name.chars().count() / 3).clamp(1, 2);
    near.filter(|(edits, _)| *edits <= edits_max).min_by_key(|(edits, _)| *edits).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_seen_and_another_word_is_not() {
        let names = ["Follow", "FollowedBy", "User"];
        assert_eq!(meant("Folow", names), ": did you mean \"Follow\"?");
        assert_eq!(meant("followedby", names), ": did you mean \"FollowedBy\"?");
        assert_eq!(meant("Usre", names), ": did you mean \"User\"?");
        assert_eq!(meant("Order", names), ": there are Follow, FollowedBy, User");
        assert_eq!(meant("Order", ["User"]), ": there is User");
        assert_eq!(meant("Order", []), ": there is none");
    }
}
