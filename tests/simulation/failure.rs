//! How a run fails.

use std::fmt;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One word: two failures of one category are taken for the same, when a run is made smaller.
    pub(crate) category: &'static str,
    /// What was seen.
    pub(crate) text: String,
}

impl Failure {
    /// A failure.
    pub(crate) fn new(category: &'static str, text: impl Into<String>) -> Self {
        Self { category, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.text)
    }
}
