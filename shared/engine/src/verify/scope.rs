//! What of a table is verified.

use std::collections::BTreeSet;

use keys::key::Key;

use super::Finding;

/// What is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Derivations, by name; all where none is named.
    pub derivations: BTreeSet<String>,
    /// Entities of derived items, or of a count's targets; all where none is named.
    pub entities: BTreeSet<String>,
    /// How the partition key of a derived item begins.
    pub pk_prefix: String,
    /// Sort key of a derived item; any where none is given.
    pub sk: Option<String>,
}

impl Scope {
    pub(super) fn has_derivation(&self, name: &str) -> bool {
        self.derivations.is_empty() || self.derivations.contains(name)
    }

    pub(super) fn has_entity(&self, name: &str) -> bool {
        self.entities.is_empty() || self.entities.contains(name)
    }

    pub(super) fn has_item(&self, key: &Key) -> bool {
        key.pk.starts_with(&self.pk_prefix) && self.sk.as_ref().is_none_or(|sk| key.sk == *sk)
    }

    /// Is this found in what is verified?
    pub(super) fn has_finding(&self, finding: &Finding) -> bool {
        self.has_derivation(&finding.derivation) && self.has_item(&Key::new(&finding.pk, &finding.sk))
    }
}
