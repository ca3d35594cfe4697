//! Parts of items: what a derivation reads and writes.

use std::collections::BTreeSet;

use crate::{
    change::Sight,
    expression::document_path::{is_path, root},
};

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
    /// A value inside an attribute.
    Inside {
        /// The attribute.
        attribute: String,
        /// The value, by its path.
        path: String,
    },
    /// All attributes except these.
    AllBut(BTreeSet<String>),
}

impl PartOf {
    /// The attribute, or the attribute that contains it.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Attribute(name) | Self::Inside { attribute: name, .. } => Some(name),
            Self::Existence | Self::AllBut(_) => None,
        }
    }

    /// True if this part contains the attribute, or is inside it.
    #[must_use]
    pub fn holds(&self, attribute: &str) -> bool {
        match self {
            Self::Existence => false,
            Self::Attribute(name) | Self::Inside { attribute: name, .. } => name == attribute,
            Self::AllBut(but) => !but.contains(attribute),
        }
    }
}

impl Part {
    /// An attribute of an entity's items, or a value inside one.
    #[must_use]
    pub fn attribute(entity: &str, name: &str) -> Self {
        let of = if is_path(name) {
            PartOf::Inside { attribute: root(name).into_owned(), path: name.to_owned() }
        } else {
            PartOf::Attribute(name.to_owned())
        };
        Self { entity: entity.to_owned(), of }
    }

    /// The existence of an entity's items.
    #[must_use]
    pub fn existence(entity: &str) -> Self {
        Self { entity: entity.to_owned(), of: PartOf::Existence }
    }

    /// True if these two parts overlap.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.entity == other.entity
            && match (&self.of, &other.of) {
                (PartOf::Existence, PartOf::Existence) | (PartOf::AllBut(_), PartOf::AllBut(_)) => true,
                (a, b) => {
                    a.attribute().is_some_and(|name| b.holds(name)) || b.attribute().is_some_and(|name| a.holds(name))
                }
            }
    }

    /// True if a change differs in this part.
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
            PartOf::Attribute(name) | PartOf::Inside { path: name, .. } => sight.differs_in(name),
            PartOf::AllBut(but) => sight.differing().iter().any(|name| !but.contains(*name)),
        }
    }
}

/// What a derivation reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// What its values depend on.
    pub reads: Vec<Part>,
    /// What it writes.
    pub writes: Vec<Part>,
}
