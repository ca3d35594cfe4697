//! The declaration of a [cascade](crate::kinds::cascade).

use crate::declaration::{found_by::FoundBy, link::Link};

/// The declaration of a cascade.
#[derive(Clone, Debug)]
pub struct Cascade {
    /// Entity on which the others hang.
    pub owner: String,
    /// Entities whose removal starts it, each with the way to the owner's key: the owner, and what it is a mirror of.
    pub starts: Vec<(String, Link)>,
    /// What hangs on the owner, in the order in which it goes.
    pub hanging: Vec<Hanging>,
}

/// Items that hang on an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// Their entity.
    pub entity: String,
    /// How they are found.
    pub found: Way,
    /// What becomes of them.
    pub fate: Fate,
}

/// How the items that hang on an owner are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a query that the owner's key makes.
    Found(FoundBy),
    /// They are the owner's counters of this derivation.
    Counters(String),
    /// Their key is made of what the removed item held, in lower case and without blanks around it.
    Named(Link),
}

/// What becomes of an item that hung on an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is deleted.
    Deleted,
    /// It is deleted as long as this attribute holds this field of the owner's key.
    DeletedWhere {
        /// The attribute.
        attribute: String,
        /// The field.
        field: String,
    },
    /// It stays, with this attribute set to this text.
    Set {
        /// The attribute.
        attribute: String,
        /// The text.
        text: String,
    },
}
