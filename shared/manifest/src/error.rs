//! Why a manifest is refused.

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
