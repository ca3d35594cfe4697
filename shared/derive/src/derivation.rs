//! Derivations: declarations of what is derived from what.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use keys::{item::Item, key::Key};

use crate::{bucket::Bucket, change::Sight, effect::BucketForm, kind::Kind, tally::Tally, write::Wanted};

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

/// Why a kind's effects are right under repeats and reordering, and so which function runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Effects are differences that commute; the ledger counts each change once.
    Additive,
    /// Effects are bells; what to write is read when it is written.
    LevelTriggered,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Additive => "additive",
            Self::LevelTriggered => "level-triggered",
        })
    }
}

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
    pub(crate) fn holds(&self, attribute: &str) -> bool {
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

/// A derived item, or part of one, as the definition says it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// A count of a target.
    Count {
        /// The target.
        target: Key,
        /// How many, and what they come to.
        tally: Tally,
        /// Is it a lower bound only, since the sources may be gone?
        at_least: bool,
    },
    /// A bucket of a roll-up, as far as the ground shows it.
    Bucket {
        /// Its key.
        key: Key,
        /// What the values that are there come to.
        bucket: Bucket,
        /// What it looks like.
        form: Arc<BucketForm>,
    },
    /// A whole item.
    Item {
        /// Its key.
        key: Key,
        /// Its attributes, those of other derivations left out.
        item: Item,
    },
    /// Attributes of an item that exists.
    Attributes {
        /// The item's key.
        key: Key,
        /// The attributes.
        attributes: Vec<Wanted>,
    },
}

/// All items of a table by key, in the definition's hands.
pub type Items = BTreeMap<Key, Item>;

/// Tallies by target and derivation, in the definition's hands.
pub type Counts = BTreeMap<(Key, String), Tally>;
