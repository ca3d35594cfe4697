//! How a run fails.

use std::fmt;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One word. When a run is made smaller, a failure of the same category counts as the same failure.
    pub(crate) category: &'static str,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(category: &'static str, text: impl Into<String>) -> Self {
        Self { category, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.text)
    }
}
