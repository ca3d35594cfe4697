//! Progress reports of a verification.

use crate::verify::check::ReadPrice;

/// Receives the progress of a verification.
pub trait Progress: Send + Sync {
    /// The verification starts to read a table, for about this price.
    fn begins(&self, price: ReadPrice);

    /// This many more items were read.
    fn read(&self, n_items: usize);

    /// This many more items were compared with their derived values.
    fn looked(&self, n_items: usize);

    /// This many more counts were compared with their counters. A count may be compared several times.
    fn counted(&self, n_counts: usize);

    /// The verification waits until this moment, in milliseconds since the epoch: an instance of a function may run
    /// until then without the derivations to repair.
    fn waits(&self, until_ms: u64);
}
