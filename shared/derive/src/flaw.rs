//! Flaws: invalid data. The items can be read, but no value can be derived from them.

use keys::key::Key;

/// An application item that can be read, but from which a derivation derives nothing: a person should change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The item.
    pub key: Key,
    /// The attribute at fault.
    pub attribute: String,
    /// What is wrong with it.
    pub why: String,
}
