//! Verify: checks that every derived value matches its definition, while writes continue.
//!
//! [`Verification`](run::Verification) reads the table once, in segments, and its memory does not grow with the table.
//! It reuses what the [`scan`] has read, as far as that is a valid proof.
//!
//! *Level-triggered*: each item is treated as if it had just been inserted. The items that this insert would refresh
//! are compared by the refresh's own step, without its writes. *Counts*: each item's contributions are stored outside
//! memory ([`Tallies`]), and the total of a target's sources is compared with its counters.
//!
//! **No false finding.** A difference may be a change that the functions have not handled yet. So it is checked again
//! once the functions have handled everything written before a moment ([`Following`]). It is a finding only if nothing
//! that decided it was written between that moment and the end of the second check. The table's own stream shows both:
//! changes before the moment have been handled, and later ones are seen. A value that keeps changing, or lacks
//! information, is *undecided*; one that a parked change or a job will still change is *waiting*.
//!
//! *Example*: Bob is renamed, and one of his comments still has the old name. The second check runs when the functions
//! have passed the first. If the comment still has the old name, and neither Bob nor the comment was written since, it
//! is a finding. If Bob was renamed again, it is checked again.
//!
//! [`definition`] compares a small table at rest with the definition itself.

mod candidates;
pub mod check;
pub(crate) mod counts;
pub mod definition;
mod followed;
pub mod judge;
pub mod marks;
pub mod run;
pub mod scan;
pub(crate) mod spool;

use std::{collections::BTreeSet, io, sync::Arc};

use derive::{derived::Items, schema::Schema, tally::Tally, whole::occupied};
use engine::{account::Target, backoff::GaveUp, record::Lane, redrive::waiting::PendingWork};
use futures::future::BoxFuture;
use keys::{item::Item, key::Key};
use serde::{Deserialize, Serialize};

use crate::{verify::check::ReadPrice, words::time};

/// A difference between the stored and the derived value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the derivation.
    pub derivation: String,
    /// Partition key of the derived item.
    pub pk: String,
    /// Sort key of the derived item.
    pub sk: String,
    /// The attributes that differ, as they are stored; `None` if the item does not exist.
    pub stored: Option<Item>,
    /// The same attributes as the definition gives them; `None` if the item should not exist.
    pub derived: Option<Item>,
    /// What a person should do, if no repair can correct it. For invalid data of the application, `stored` is the
    /// attribute at fault, and nothing is derived. For a count, the reason why nothing may be added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// An item that a derivation cannot interpret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableItem {
    /// Name of the derivation; `*` for all.
    pub derivation: String,
    /// Partition key of the item.
    pub pk: String,
    /// Sort key of the item.
    pub sk: String,
    /// What is wrong with it.
    pub why: String,
}

/// Counts of a derivation about items that do not exist: their sources name deleted items, or the link leads to no
/// item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsAboutNothing {
    /// Name of the derivation.
    pub derivation: String,
    /// How many counts there are.
    pub counts: usize,
    /// The first of the items, by partition and sort key.
    pub examples: Vec<(String, String)>,
}

/// A difference.
pub(crate) fn finding(derivation: &str, key: &Key, stored: Option<Item>, derived: Option<Item>) -> Finding {
    Finding { derivation: derivation.to_owned(), pk: key.pk.clone(), sk: key.sk.clone(), stored, derived, flaw: None }
}

/// A foreign item under the key of a derived item, which therefore cannot be created.
fn occupied_key(schema: &Schema, derivation: &str, key: &Key, held: &Item) -> Finding {
    let flaw = occupied(schema, key, held);
    let stored = Some(counts::only(held, &[&flaw.attribute]));
    Finding { flaw: Some(flaw.why), ..finding(derivation, key, stored, Some(Item::new())) }
}

// ---- The scope of a verification ----

/// Scope of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Derivations, by name; all if empty.
    pub derivations: BTreeSet<String>,
    /// Entities of derived items, or of a count's targets; all if empty.
    pub entities: BTreeSet<String>,
    /// Prefix of the partition key of a derived item.
    pub pk_prefix: String,
    /// Sort key of a derived item; any if `None`.
    pub sk: Option<String>,
}

impl Scope {
    fn has_derivation(&self, name: &str) -> bool {
        self.derivations.is_empty() || self.derivations.contains(name)
    }

    fn has_entity(&self, name: &str) -> bool {
        self.entities.is_empty() || self.entities.contains(name)
    }

    fn has_item(&self, key: &Key) -> bool {
        key.pk.starts_with(&self.pk_prefix) && self.sk.as_ref().is_none_or(|sk| key.sk == *sk)
    }

    /// True if the finding is within the scope.
    fn has_finding(&self, finding: &Finding) -> bool {
        self.has_derivation(&finding.derivation) && self.has_item(&Key::new(&finding.pk, &finding.sk))
    }
}

// ---- following ----

/// Records of one stream shard.
#[derive(Clone, Debug, Default)]
pub struct ShardRecords {
    /// The shard and its stream.
    pub lane: Arc<Lane>,
    /// JSON as in an event, in the order of the shard.
    pub records: Vec<String>,
}

/// Follows a table's stream, and knows how far the functions have read it.
///
/// Moments are in milliseconds since the epoch, by the clock of the engine.
pub trait Following: Send + Sync {
    /// The records that arrived since the last call; those of one item are in order. The call confirms the records that
    /// the previous call returned, so they need not be returned again.
    fn records(&self) -> Vec<ShardRecords>;

    /// True if every record of a change before this moment was returned.
    fn has_given(&self, moment_ms: u64) -> bool;

    /// True if the functions have handled every record of a change before this moment; `None` if unknown.
    fn is_handled(&self, moment_ms: u64) -> Option<bool>;

    /// True if [`is_handled`](Self::is_handled) relies on an iterator age that the operator typed, and not on the
    /// functions' own positions. Then the ledger must prove what is counted.
    fn is_typed(&self) -> bool {
        false
    }

    /// Reads the records that the stream still has of changes before this moment.
    fn retained(&self, until_ms: u64) -> Box<dyn Retained + '_>;
}

/// Records that a stream still has, the oldest first.
pub trait Retained: Send {
    /// The next records; `None` when all records before the moment were returned.
    ///
    /// # Errors
    ///
    /// The errors of the stream.
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>>;
}

/// A table at rest: no program writes, and all changes are handled, or never will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtRest;

impl Following for AtRest {
    fn records(&self) -> Vec<ShardRecords> {
        Vec::new()
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        Some(true)
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(Nothing)
    }
}

/// A stream without records, or one that is not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Retained for Nothing {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

// ---- Events and errors of a verification ----

/// Why something is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was written whenever it was checked.
    Changing,
    /// The functions, or the stream that is followed, are behind.
    Behind,
    /// The functions' progress is unknown.
    Unknown,
    /// A record of the stream could not be read, so it is unknown what is counted.
    Unreadable,
    /// The ledger has no proof that a change of the count is counted.
    NotIn,
    /// The sweep should have brought it up to date an hour ago.
    Overdue,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Changing => "it was written during each comparison",
            Self::Behind => "the functions were behind until the end of --wait",
            Self::Unknown => "it is unknown which changes the functions have handled",
            Self::Unreadable => "a record of the stream could not be read",
            Self::Overdue => "it has been due for an hour, and no sweep has brought it up to date: is the sweep on?",
            Self::NotIn => "the ledger does not prove that a change of it, which the stream still has, is counted",
        })
    }
}

/// Why a finding can be trusted: it was the same when it was checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The functions had handled everything written before this moment, in milliseconds since the epoch.
    pub handled_ms: u64,
    /// Nothing that decided it was written between that moment and this one, in milliseconds since the epoch.
    pub until_ms: u64,
}

impl std::fmt::Display for Belief {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [handled, until] = [self.handled_ms, self.until_ms].map(time);
        write!(f, "all changes before {handled} are handled; no source was written until {until}")
    }
}

/// What a verification reports while it runs. It may report the same thing more than once.
#[derive(Clone, Debug, PartialEq)]
pub enum VerifyEvent {
    /// A difference that no pending work explains.
    Finding(Finding, Belief),
    /// A difference that a pending change may still correct.
    Undecided(Finding, Why),
    /// A difference that pending work may still correct.
    Waiting(Finding, PendingWork),
    /// A count that was equal to the total of its sources, which proves nothing while changes of it are pending.
    Unproven(Target),
    /// An item that cannot be interpreted.
    Unreadable(UnreadableItem),
    /// An item where a condition compares two values of different types.
    Unlike(UnreadableItem),
    /// Counts about items that do not exist; they are not wrong.
    AboutNothing(CountsAboutNothing),
}

/// Receives findings and progress.
pub trait Listener: Send {
    /// Something was found. For one derivation an item has at most one report of invalid data and one other difference,
    /// so a later report replaces an earlier one.
    ///
    /// # Errors
    ///
    /// The errors of whatever stores the event; the verification then ends.
    fn report(&mut self, event: VerifyEvent) -> io::Result<()>;

    /// This many more items were read.
    fn read(&mut self, n_items: usize);

    /// This many more items were checked.
    fn looked(&mut self, n_items: usize);

    /// This many more counts were compared. A count may be compared several times.
    fn counted(&mut self, n_counts: usize);
}

/// How much was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Items of the table.
    pub n_items: usize,
    /// Items without a type, or of an undeclared one.
    pub n_ignored: usize,
    /// Items that are verified: those in the scope, and sources and counters of counts in the scope.
    pub n_selected: usize,
    /// True if the functions had counted all changes from before it began. Then the unreported counts are correct. If
    /// the ledger proves it: only the counts of the derivations to prove.
    pub is_proven: bool,
    /// True if the functions had handled all changes from before it began. Then all other unreported values are
    /// correct.
    pub is_handled: bool,
}

/// Why a verification ended early. Its progress is kept.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The database refuses a call, or does not respond.
    #[error(transparent)]
    Store(#[from] GaveUp),
    /// The stream cannot be read again.
    #[error("the table's stream cannot be read again")]
    Stream(#[source] io::Error),
    /// The progress cannot be stored.
    #[error("what was read cannot be kept")]
    Kept(#[from] io::Error),
}

// ---- The contributions of each item, their totals by target, and the counters ----

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

/// Stores what a verification has read. A verification of a large table stores it outside memory.
///
/// *Keeps true*: the last report of an item or a counter is what counts. A record overrides a scan, whichever comes
/// first: a scan that reads an item before or after its record arrives does not change what the record reported.
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

/// Receives the progress of a verification. Each method does nothing by default.
pub trait Progress: Send + Sync {
    /// The verification starts to read a table, for about this price.
    fn begins(&self, _price: ReadPrice) {}

    /// This many more items were read.
    fn read(&self, _n_items: usize) {}

    /// This many more items were compared with their derived values.
    fn looked(&self, _n_items: usize) {}

    /// This many more counts were compared with their counters. A count may be compared several times.
    fn counted(&self, _n_counts: usize) {}

    /// The verification waits until this moment, in milliseconds since the epoch: an instance of a function may run
    /// until then without the derivations to repair.
    fn waits(&self, _until_ms: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_verified_and_all_where_nothing_is() {
        let of = |derivation: &str, pk: &str, sk: &str| finding(derivation, &Key::new(pk, sk), None, None);
        let all = Scope::default();
        assert!(all.has_finding(&of("a", "USER#1", "PROFILE")) && all.has_entity("User"));
        let some = Scope {
            derivations: BTreeSet::from(["a".to_owned()]),
            entities: BTreeSet::from(["User".to_owned()]),
            pk_prefix: "USER#".to_owned(),
            sk: Some("PROFILE".to_owned()),
        };
        assert!(some.has_finding(&of("a", "USER#1", "PROFILE")) && some.has_entity("User"));
        let others = [of("b", "USER#1", "PROFILE"), of("a", "POST#1", "PROFILE"), of("a", "USER#1", "OTHER")];
        assert!(!others.iter().any(|other| some.has_finding(other)) && !some.has_entity("Post"));
    }
}
