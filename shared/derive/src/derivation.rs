//! Derivations: declarations of what is derived from what.

use std::sync::Arc;

use crate::kind::Kind;

/// One declared rule.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// Its row in the table's design, such as `D-03`.
    pub id: String,
    /// Its name, which stands in counter keys and metrics: stored, so it is stable.
    pub name: String,
    /// What it does.
    pub kind: Arc<dyn Kind>,
}

impl Derivation {
    /// A derivation of a kind.
    pub fn new(id: &str, name: &str, kind: impl Kind + 'static) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), kind: Arc::new(kind) }
    }
}
