//! Derivations: declarations of what is derived from what.

use std::sync::Arc;

use crate::kind::Kind;

/// One declared rule.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// Its row in the table's design, such as `D-03`.
    pub id: String,
    /// The name under which it is stored: in the keys of counters, in the registry, in jobs and lists. It is stable.
    pub name: String,
    /// What people call it once it is renamed: in messages, metrics, reports and options.
    pub renamed: Option<String>,
    /// What it does.
    pub kind: Arc<dyn Kind>,
}

impl Derivation {
    /// A derivation of a kind.
    pub fn new(id: &str, name: &str, kind: impl Kind + 'static) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), renamed: None, kind: Arc::new(kind) }
    }

    /// What people call it.
    #[must_use]
    pub fn label(&self) -> &str {
        self.renamed.as_ref().unwrap_or(&self.name)
    }

    /// Does this name mean it, in an option? So does its stored name, since the option may be older than the renaming.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.label() == name || self.name == name
    }
}
