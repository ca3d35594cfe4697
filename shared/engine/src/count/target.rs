//! What a count is about.

use keys::key::Key;

/// A count that a refused change was about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Name of the derivation.
    pub derivation: String,
    /// The item that the count is about; of a roll-up the bucket.
    pub item: Key,
}
