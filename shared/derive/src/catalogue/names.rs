//! The two names of a derivation: the one under which it is stored, and the one that people call it.
//!
//! They differ once a derivation is renamed. Whatever is stored or read from the store goes by the stored name alone,
//! because something may be left there under a name that another derivation has for people by now.

use crate::{catalogue::Catalogue, position::DerivationAt};

impl Catalogue {
    /// The name under which the derivation at a position is stored.
    #[must_use]
    pub fn name(&self, at: DerivationAt) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.name.as_str())
    }

    /// What people call the derivation at a position.
    #[must_use]
    pub fn label(&self, at: DerivationAt) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.label())
    }

    /// The position of the derivation that is stored under this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<DerivationAt> {
        self.derivations().position(|derivation| derivation.name == name).map(DerivationAt)
    }

    /// The position of the derivation that a person calls so.
    #[must_use]
    pub fn called(&self, name: &str) -> Option<DerivationAt> {
        self.derivations().position(|derivation| derivation.is_called(name)).map(DerivationAt)
    }

    /// What people call what is stored under this name; the name itself if it is of nothing declared.
    #[must_use]
    pub fn label_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.position(name).map_or(name, |at| self.label(at))
    }

    /// Puts what people call a derivation in the place of its stored name.
    pub fn relabel(&self, name: &mut String) {
        if let Some(at) = self.position(name) {
            self.label(at).clone_into(name);
        }
    }
}
