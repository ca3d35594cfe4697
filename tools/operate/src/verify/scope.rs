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

#[cfg(test)]
mod tests {
    use super::{super::finding, *};

    #[test]
    fn what_is_named_is_verified_and_all_where_nothing_is() {
        let of = |derivation: &str, pk: &str, sk: &str| finding(derivation, &Key::new(pk, sk), None, None);
        let all = Scope::default();
        assert!(all.has_finding(&of("a", "USER#1", "PROFILE")) && all.has_entity("User"));
        let some = Scope {
            derivations: BTreeSet::from(["a".to_owned()]),
            entities: BTreeSet::from(["User".to_owned()]),
            pk_prefix: "USER#".to_owned(),
            sk: Some("PROFILE".to_owned()),
        };
        assert!(some.has_finding(&of("a", "USER#1", "PROFILE")) && some.has_entity("User"));
        let others = [of("b", "USER#1", "PROFILE"), of("a", "POST#1", "PROFILE"), of("a", "USER#1", "OTHER")];
        assert!(!others.iter().any(|other| some.has_finding(other)) && !some.has_entity("Post"));
    }
}
