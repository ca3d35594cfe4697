//! Why a manifest is refused.

use std::{fmt, io};

use toml_edit::TomlError;

/// A mistake in a manifest. It prints as `12: derivation.followers.from: there is no entity "Folow": …`, so that a
/// file's name and a colon before it make a place that editors open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The line, counted from 1.
    pub line: usize,
    /// The key with the tables that it is in, joined by points; empty where the file is no TOML.
    pub key: String,
    /// What is wrong, and what was meant.
    pub what: String,
}

impl ManifestError {
    /// The file is no TOML.
    pub(crate) fn syntax(text: &str, error: &TomlError) -> Self {
        let span = error.span().unwrap_or_default();
        let why = error.message().lines().next().unwrap_or_default();
        let piece = text.get(span.clone()).map(str::trim).filter(|piece| !piece.is_empty() && !piece.contains('\n'));
        let at = piece.map(|piece| format!(", at `{piece}`")).unwrap_or_default();
        Self { line: line(text, span.start), key: String::new(), what: format!("this is no TOML: {why}{at}") }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{}: {}{colon}{}", self.line, self.key, self.what)
    }
}

impl std::error::Error for ManifestError {}

/// A manifest's file that cannot be used.
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
    /// It is read, and says something that cannot be.
    #[error("{file}:{error}")]
    Wrong {
        /// The file.
        file: String,
        /// The mistake; it is in the message, and so is no source.
        error: ManifestError,
    },
}

/// The line of a byte of the text, counted from 1.
pub(crate) fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
