//! The contributions of each item, their totals by target, and the counters. A verification of a large table stores
//! them outside memory.
//!
//! *Keeps true*: the last report of an item or a counter is what counts. A record overrides a scan, whichever comes
//! first: a scan that reads an item before or after its record arrives does not change what the record reported.

use std::io;

use derive::{derived::Items, tally::Tally};
use engine::counters::Target;
use keys::{item::Item, key::Key};
use serde::{Deserialize, Serialize};

use super::Finding;

/// What an item adds to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The target: for a roll-up, the bucket.
    pub target: Target,
    /// What it adds; for a roll-up, the count alone.
    pub tally: Tally,
}

/// A target that is not decided yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// The target.
    pub target: Target,
    /// The total of its sources.
    pub tally: Tally,
    /// When a record last changed the total, in milliseconds since the epoch; 0 if none did.
    pub touched_at_ms: u64,
    /// The finding of its last comparison.
    pub compared: Option<Finding>,
}

/// Progress of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Partition and sort key of the last item; `None` at the beginning.
    pub after: Option<(String, String)>,
    /// True at the end of the segment.
    pub is_end: bool,
    /// Items so far.
    pub n_items: usize,
    /// Items without a type, or of an undeclared one.
    pub n_ignored: usize,
    /// Items that are verified: those in the scope, and sources and counters of counts in the scope.
    pub n_selected: usize,
}

/// Stores what a verification has read.
///
/// Errors are those of the storage.
#[expect(clippy::missing_errors_doc, reason = "all are the same, and stand above")]
pub trait Tallies: Send {
    /// A scan read an item that adds this.
    fn scanned(&mut self, item: &Key, adds: &[Contribution]) -> io::Result<()>;

    /// A record reported that an item adds this from now on, and nothing else.
    fn report(&mut self, item: &Key, adds: &[Contribution], now_ms: u64) -> io::Result<()>;

    /// Closes the list of targets: a target that first appears from now on counts as decided, so that the verification
    /// ends on a table with constant writes.
    fn close(&mut self);

    /// A scan read an item that counts may be about.
    fn target_scanned(&mut self, item: &Key) -> io::Result<()>;

    /// A record reported that an item that counts may be about exists from now on, or is gone.
    fn target_reported(&mut self, item: &Key, is_there: bool) -> io::Result<()>;

    /// A derivation's counts about items that do not exist: how many, and the first of the items.
    fn about_nothing(&mut self, derivation: &str, n_examples: usize) -> io::Result<(usize, Vec<Key>)>;

    /// A target has a counter.
    fn has_counter(&mut self, target: &Target) -> io::Result<()>;

    /// A scan read a counter, or a bucket of a roll-up, with this content.
    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()>;

    /// A record reported the new content of a counter or bucket; `None` if it is gone.
    fn counter_reported(&mut self, key: &Key, item: Option<&Item>) -> io::Result<()>;

    /// The counters and buckets with this partition key and sort key prefix, as they were last seen.
    fn counters(&mut self, pk: &str, sk_prefix: &str) -> io::Result<Items>;

    /// The first undecided targets after one, in order.
    fn undecided(&mut self, after: Option<&Target>, n_max: usize) -> io::Result<Vec<Undecided>>;

    /// A target was compared, with this finding.
    fn compared(&mut self, target: &Target, finding: Option<&Finding>) -> io::Result<()>;

    /// A target is decided.
    fn decided(&mut self, target: &Target) -> io::Result<()>;

    /// Progress of a segment.
    fn reached(&mut self, segment: u32) -> io::Result<Reached>;

    /// A segment has made this progress, and everything found up to there is decided.
    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()>;
}
