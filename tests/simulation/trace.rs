//! What happened in a run, line by line, for a person. It is kept only on request: a failing seed runs again for it.

use std::{fmt, sync::Mutex};

/// The lines so far, if they are kept.
#[derive(Debug)]
pub(crate) struct Trace(Mutex<Option<Vec<String>>>);

impl Trace {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self(Mutex::new(is_kept.then(Vec::new)))
    }

    /// Notes what happened.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = self.0.lock().unwrap().as_mut() {
            let number = lines.len() + 1;
            lines.push(format!("{number:>5} {}", line()));
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone().unwrap_or_default()
    }
}

// ---- How a run fails ----

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
