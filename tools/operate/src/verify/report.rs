//! What a verification reports, and how it ends.

use std::io;

use engine::{backoff::GaveUp, count::target::Target};

use super::{CountsAboutNothing, Finding, UnreadableItem};
use crate::words::time;

/// Why something is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was written whenever it was looked at.
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

/// Why a finding is believed: it was the same when it was looked at again.
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
    /// Something was found. Of a derivation an item has one flaw and one other difference at most, so a later one takes the
    /// place of an earlier one.
    ///
    /// # Errors
    ///
    /// Those of whatever keeps it; the verification then ends.
    fn report(&mut self, event: VerifyEvent) -> io::Result<()>;

    /// So many items more were read.
    fn read(&mut self, n_items: usize);

    /// So many items more were looked at.
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
    /// Had the functions counted all that was written before it began? Then the counts that are not reported are right. Where
    /// the ledger proves it, those of the derivations alone that were to be proven.
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
