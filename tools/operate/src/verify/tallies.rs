//! What each item adds, what that comes to by target, and what the counters hold: kept outside memory by who verifies a
//! large table.
//!
//! *Keeps true*: an item counts as what was last said of it, and a counter holds what was last said of it. A record says
//! more than a scan, whichever comes first: a scan that reads an item before its record came, or after, changes nothing of
//! what the record said.

use std::io;

use derive::{derived::Items, tally::Tally};
use engine::counters::Target;
use keys::{item::Item, key::Key};
use serde::{Deserialize, Serialize};

use super::Finding;

/// What an item adds to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The target: of a roll-up the bucket.
    pub target: Target,
    /// What it adds; of a roll-up the count alone.
    pub tally: Tally,
}

/// A target that is not decided yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// The target.
    pub target: Target,
    /// What its sources come to.
    pub tally: Tally,
    /// When a record last changed that, in milliseconds since the epoch; 0 where none did.
    pub touched_at_ms: u64,
    /// What was found when it was last compared.
    pub compared: Option<Finding>,
}

/// How far a segment is, and what was in it up to there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Partition and sort key of the last item; `None` at the beginning.
    pub after: Option<(String, String)>,
    /// Is it at its end?
    pub is_end: bool,
    /// Items so far.
    pub n_items: usize,
    /// Those of them without a type, or of one that nobody declared.
    pub n_ignored: usize,
    /// Those of them that are verified: of the scope, or counted or counting there.
    pub n_selected: usize,
}

/// Keeps what a verification has read.
///
/// Errors are those of whatever keeps it.
#[expect(clippy::missing_errors_doc, reason = "all are the same, and stand above")]
pub trait Tallies: Send {
    /// A scan read an item that adds this.
    fn scanned(&mut self, item: &Key, adds: &[Contribution]) -> io::Result<()>;

    /// A record says that an item adds this from now on, and nothing else.
    fn report(&mut self, item: &Key, adds: &[Contribution], now_ms: u64) -> io::Result<()>;

    /// Ends the list of targets: one that is first named from now on counts as decided, so that the verification ends on a
    /// table that is written to all the time.
    fn close(&mut self);

    /// A scan read an item that counts may be about.
    fn target_scanned(&mut self, item: &Key) -> io::Result<()>;

    /// A record says that an item that counts may be about is there from now on, or is gone.
    fn target_reported(&mut self, item: &Key, is_there: bool) -> io::Result<()>;

    /// The counts of a derivation about items that are not there: how many, and the first of the items.
    fn about_nothing(&mut self, derivation: &str, n_examples: usize) -> io::Result<(usize, Vec<Key>)>;

    /// A target has a counter.
    fn has_counter(&mut self, target: &Target) -> io::Result<()>;

    /// A scan read a counter, or a bucket of a roll-up, that holds this.
    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()>;

    /// A record says that a counter, or a bucket, holds this from now on; `None` where it is gone.
    fn counter_reported(&mut self, key: &Key, item: Option<&Item>) -> io::Result<()>;

    /// The counters and buckets with this partition key whose sort keys begin so, as they were last seen.
    fn counters(&mut self, pk: &str, sk_prefix: &str) -> io::Result<Items>;

    /// The first targets behind one that are not decided yet, in order.
    fn undecided(&mut self, after: Option<&Target>, n_max: usize) -> io::Result<Vec<Undecided>>;

    /// A target was compared, and differed so.
    fn compared(&mut self, target: &Target, finding: Option<&Finding>) -> io::Result<()>;

    /// A target is decided.
    fn decided(&mut self, target: &Target) -> io::Result<()>;

    /// How far a segment is.
    fn reached(&mut self, segment: u32) -> io::Result<Reached>;

    /// A segment is so far, and all that was found up to there is decided.
    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()>;
}
