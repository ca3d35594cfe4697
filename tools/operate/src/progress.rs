//! What is said while it goes on.

use crate::verify::report::Belief;

/// Hears how far a verification is.
pub trait Progress: Send + Sync {
    /// It begins to read a table of about so many items.
    fn begins(&self, n_items: u64);

    /// So many items more were read.
    fn read(&self, n_items: usize);

    /// It waits until this moment, in milliseconds since the epoch: before, an instance of a function may be at work that
    /// lacks what is to be repaired.
    fn waits(&self, until_ms: u64);

    /// Why a finding is believed, in words: they are kept and shown with it.
    fn believed(&self, belief: Belief) -> String;
}
