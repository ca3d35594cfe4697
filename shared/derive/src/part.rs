//! Parts of items: what a derivation reads and writes.

use std::collections::BTreeSet;

use crate::change::Sight;

/// A part of an entity's items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The entity.
    pub entity: String,
    /// Which part.
    pub of: PartOf,
}

/// Which part of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartOf {
    /// That it exists.
    Existence,
    /// One attribute.
    Attribute(String),
    /// All attributes but these.
    AllBut(BTreeSet<String>),
}

impl PartOf {
    /// Is this attribute in it?
    #[must_use]
    pub fn holds(&self, attribute: &str) -> bool {
        match self {
            Self::Existence => false,
            Self::Attribute(name) => name == attribute,
            Self::AllBut(but) => !but.contains(attribute),
        }
    }
}

impl Part {
    /// An attribute of an entity's items.
    #[must_use]
    pub fn attribute(entity: &str, name: &str) -> Self {
        Self { entity: entity.to_owned(), of: PartOf::Attribute(name.to_owned()) }
    }

    /// The existence of an entity's items.
    #[must_use]
    pub fn existence(entity: &str) -> Self {
        Self { entity: entity.to_owned(), of: PartOf::Existence }
    }

    /// Do these two parts have something in common?
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.entity == other.entity
            && match (&self.of, &other.of) {
                (PartOf::Attribute(name), PartOf::AllBut(but)) | (PartOf::AllBut(but), PartOf::Attribute(name)) => {
                    !but.contains(name)
                }
                (PartOf::AllBut(_), PartOf::AllBut(_)) => true,
                (a, b) => a == b,
            }
    }

    /// Does a change differ in this part?
    #[must_use]
    pub fn differs(&self, sight: &Sight<'_>) -> bool {
        let (old, new) = sight.entity(&self.entity);
        if old.is_some() != new.is_some() {
            return true;
        }
        if old.is_none() {
            return false;
        }
        match &self.of {
            PartOf::Existence => false,
            PartOf::Attribute(name) => sight.differs_in(name),
            PartOf::AllBut(but) => sight.differing().iter().any(|name| !but.contains(*name)),
        }
    }
}

/// What a derivation takes part in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// What its values depend on.
    pub reads: Vec<Part>,
    /// What it writes.
    pub writes: Vec<Part>,
}
