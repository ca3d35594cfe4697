//! Progress reports of a verification.

use crate::verify::report::Belief;

/// Receives the progress of a verification.
pub trait Progress: Send + Sync {
    /// The verification starts to read a table of about this many items.
    fn begins(&self, n_items: u64);

    /// This many more items were read.
    fn read(&self, n_items: usize);

    /// The verification waits until this moment, in milliseconds since the epoch. An instance of a function without the
    /// derivations to repair may run until then.
    fn waits(&self, until_ms: u64);

    /// Gives the words for the reason of a finding, which is stored and shown with it.
    fn believed(&self, belief: Belief) -> String;
}
