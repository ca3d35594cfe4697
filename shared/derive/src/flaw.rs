//! Flaws: items that can be read, and of which nothing can be derived all the same.

use keys::key::Key;

/// An item of the ground of which a derivation derives nothing, though it can be read: a person should change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The item.
    pub key: Key,
    /// The attribute at fault.
    pub attribute: String,
    /// What is wrong with it.
    pub why: String,
}
