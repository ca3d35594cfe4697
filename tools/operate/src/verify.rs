//! Verify: is every derived value what the definition says, while writes go on?
//!
//! [`Verification`](run::Verification) reads the table once, in segments, and holds nothing that grows with it. What
//! the [`scan`] has read is not read again, as far as that proves something.
//!
//! *Level-triggered*: each item is taken as if it had just been inserted, and what that would request a refresh is
//! refreshed, by the refresh's own step, without its writes. *Counts*: what each item adds is noted outside memory
//! ([`tallies`]), and what a target's sources come to is compared with its counters.
//!
//! **No false finding.** What differs may be on its way. So it is looked at once more, when the functions have handled
//! all that was written before a moment ([`Following`]); and it is a finding only if nothing that it was decided by was
//! written between that moment and the end of the second look. Both are read in the table's own stream: a change that
//! was made before has been handled, and one that was made since is seen. What changes all the time, and what is
//! unknown, is *undecided*; what a parked change or a job will still change is *waiting*.
//!
//! *Example*: Bob is renamed, and a comment of his still holds the old name. The second look comes when the functions
//! are past the first. Still the old name, and neither Bob nor the comment was written since: a finding. Bob was
//! renamed once more: checked again.
//!
//! [`definition`] compares a small table that is at rest with the definition itself.

mod candidates;
pub mod check;
pub(crate) mod counts;
pub mod definition;
pub mod filled;
mod followed;
pub(crate) mod judge;
pub(crate) mod paced;
pub mod run;
pub mod scan;
pub(crate) mod spool;
pub mod tallies;

use std::{collections::BTreeSet, io, sync::Arc};

use derive::{schema::Schema, whole::occupied};
use engine::{backoff::GaveUp, counters::Target, record::event::Lane};
use futures::future::BoxFuture;
use keys::{item::Item, key::Key};
use serde::{Deserialize, Serialize};

use crate::words::time;

/// A difference between what is stored and what the definition says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the derivation.
    pub derivation: String,
    /// Partition key of the derived item.
    pub pk: String,
    /// Sort key of the derived item.
    pub sk: String,
    /// The attributes that differ, as they are stored; `None` where the item is not there.
    pub stored: Option<Item>,
    /// The same attributes as the definition gives them; `None` where the item should not be there.
    pub derived: Option<Item>,
    /// What a person should do, since no repair can. Of a flaw, which is in the ground, `stored` is the attribute at
    /// fault, and nothing is derived; of a count, why nothing may be added to it.
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

/// Counts of a derivation about items that do not exist: their sources name items that are gone, or the link leads
/// nowhere.
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

/// An item that is not Ripple's under the key of a derived item, which waits.
pub(crate) fn occupied_key(schema: &Schema, derivation: &str, key: &Key, held: &Item) -> Finding {
    let flaw = occupied(schema, key, held);
    let stored = Some(counts::only(held, &[&flaw.attribute]));
    Finding { flaw: Some(flaw.why), ..finding(derivation, key, stored, Some(Item::new())) }
}

// ---- What of a table is verified ----

/// What is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Derivations, by name; all where none is named.
    pub derivations: BTreeSet<String>,
    /// Entities of derived items, or of a count's targets; all where none is named.
    pub entities: BTreeSet<String>,
    /// How the partition key of a derived item begins.
    pub pk_prefix: String,
    /// Sort key of a derived item; any where none is given.
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

    /// Is this found in what is verified?
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

/// Follows a table's stream, and knows the functions that read it.
///
/// A moment is in milliseconds since the epoch, by the clock of the engine.
pub trait Following: Send + Sync {
    /// The records that came since the last call, those of one item in their order. What was given by the call before
    /// this one has been taken up, and need not be given again.
    fn records(&self) -> Vec<ShardRecords>;

    /// Was every record given that was made before this moment?
    fn has_given(&self, moment_ms: u64) -> bool;

    /// Have the functions handled every record that was made before this moment? `None` if unknown.
    fn is_handled(&self, moment_ms: u64) -> Option<bool>;

    /// Does [`is_handled`](Self::is_handled) rest on what somebody typed, and not on the functions' own positions? Then
    /// the ledger must prove what is counted.
    fn is_typed(&self) -> bool {
        false
    }

    /// Reads what the stream still holds of the records that were made before this moment.
    fn retained(&self, until_ms: u64) -> Box<dyn Retained + '_>;
}

/// Records that a stream still holds, from the oldest on.
pub trait Retained: Send {
    /// Some records more; `None` when all were given that were made before the moment.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>>;
}

/// A table at rest: nobody writes, and what was written is handled, or never will be.
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

/// A stream that holds nothing, or of which nothing is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Retained for Nothing {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

// ---- What a verification reports, and how it ends ----

/// Why something is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was written whenever it was checked.
    Changing,
    /// The functions, or the stream that is followed, are behind.
    Behind,
    /// It is unknown how far the functions are.
    Unknown,
    /// A record of the stream could not be read, so that it is not known what is counted.
    Unreadable,
    /// The ledger has no proof that a change of the count is in.
    NotIn,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Changing => "it was written whenever it was looked at",
            Self::Behind => "the functions were behind for as long as was waited",
            Self::Unknown => "it is unknown how far the functions are",
            Self::Unreadable => "a record of the stream could not be read",
            Self::NotIn => "a change of it that the stream still holds is not known to be counted",
        })
    }
}

/// Why a finding is believed: it was the same when it was checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The functions had handled all that was written before, in milliseconds since the epoch.
    pub handled_ms: u64,
    /// Nothing that it was decided by was written since, until then, in milliseconds since the epoch.
    pub until_ms: u64,
}

impl std::fmt::Display for Belief {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [handled, until] = [self.handled_ms, self.until_ms].map(time);
        write!(f, "everything written before {handled} is handled, and none of its sources was written until {until}")
    }
}

/// What a verification reports while it runs. It may report the same thing more than once.
#[derive(Clone, Debug, PartialEq)]
pub enum VerifyEvent {
    /// A difference that nothing under way explains.
    Finding(Finding, Belief),
    /// A difference that may be on its way.
    Undecided(Finding, Why),
    /// A difference that a parked change, an unreadable item or a job explains.
    Waiting(Finding),
    /// A count that was equal to what its sources come to, which proves nothing while changes of it are on their way.
    Unproven(Target),
    /// An item that cannot be interpreted.
    Unreadable(UnreadableItem),
    /// An item of which a condition compares a value with one of another type.
    Unlike(UnreadableItem),
    /// Counts about items that do not exist, which is no fault of theirs.
    AboutNothing(CountsAboutNothing),
}

/// Receives what is found, and how far the verification is.
pub trait Listener: Send {
    /// Something was found. Of a derivation an item has one flaw and one other difference at most, so a later one takes
    /// the place of an earlier one.
    ///
    /// # Errors
    ///
    /// Those of whatever keeps it; the verification then ends.
    fn report(&mut self, event: VerifyEvent) -> io::Result<()>;

    /// So many items more were read.
    fn read(&mut self, n_items: usize);

    /// So many items more were checked.
    fn looked(&mut self, n_items: usize);

    /// So many counts more were compared; each may be compared several times.
    fn counted(&mut self, n_counts: usize);
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Items of the table.
    pub n_items: usize,
    /// Those of them without a type, or of one that nobody declared.
    pub n_ignored: usize,
    /// Those of them that are verified: of the scope, or counted or counting there.
    pub n_selected: usize,
    /// Had the functions counted all that was written before it began? Then the counts that are not reported are right.
    /// Where the ledger proves it, those of the derivations alone that were to be proven.
    pub is_proven: bool,
    /// Had they handled all that was written before it began? Then what is not reported and is no count is right.
    pub is_handled: bool,
}

/// Why a verification ended early. What was reached is kept.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The database refuses a call, or does not answer.
    #[error(transparent)]
    Store(#[from] GaveUp),
    /// The stream cannot be read again.
    #[error("the table's stream cannot be read again")]
    Stream(#[source] io::Error),
    /// What was read cannot be kept.
    #[error("what was read cannot be kept")]
    Kept(#[from] io::Error),
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
