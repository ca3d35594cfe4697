//! What a verification came to, as its file has it.

use std::{collections::BTreeSet, sync::Arc};

use derive::{catalogue::Catalogue, family::Family};
use store::Store;

use super::{Difference, FINDING, UNDECIDED, UNLIKE, UNREADABLE, WAITING, labels::labelled, spool::Spool};
use crate::{
    failure::OperateError,
    loss,
    tables::Deployment,
    verify::{UnreadableItem, report::Extent},
};

/// What a verification came to: its file, and how much it read.
pub struct Verified {
    pub(crate) spool: Spool,
    pub(super) catalogue: Arc<Catalogue>,
    /// How much was read.
    pub extent: Extent,
    /// Was all of the table verified?
    pub is_whole: bool,
    /// The read units that it took, as DynamoDB charges them.
    pub read_units: f64,
    /// Do unreadable items not count as a failure?
    pub(super) allows_unreadable: bool,
    /// The counts of which the ledger had to prove each change; `None` if the functions' positions are known.
    pub(crate) proven: Option<BTreeSet<String>>,
    /// The file that goes when nobody needs it any more.
    pub(super) _temporary: Option<tempfile::TempDir>,
}

/// Items of which the condition of a derivation compares a value with one of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlikeItems {
    /// How many there are.
    pub items: usize,
    /// The first of them, with the derivation.
    pub example: UnreadableItem,
}

impl Verified {
    /// The items of which a condition compares a value with one of another type, by derivation.
    ///
    /// # Errors
    ///
    /// [`OperateError`] when the file cannot be read.
    pub fn unlike(&self) -> Result<Vec<UnlikeItems>, OperateError> {
        let mut all: Vec<UnlikeItems> = Vec::new();
        self.each_entry(UNLIKE, |entry| {
            let example: UnreadableItem = serde_json::from_str(entry)?;
            match all.last_mut().filter(|last| last.example.derivation == example.derivation) {
                Some(last) => last.items += 1,
                None => all.push(UnlikeItems { items: 1, example }),
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Is nothing found, undecided or waiting, and nothing unreadable that is not allowed? Nothing is derived of an
    /// unreadable item, so what agrees beside one does not say that all is right.
    ///
    /// # Errors
    ///
    /// [`OperateError`] when the file cannot be read.
    pub fn is_clean(&self) -> Result<bool, OperateError> {
        let unreadable = Some(UNREADABLE).filter(|_| !self.allows_unreadable);
        self.has_none_of([FINDING, UNDECIDED, WAITING].into_iter().chain(unreadable))
    }

    pub(super) fn has_none_of(&self, mut kinds: impl Iterator<Item = &'static str>) -> Result<bool, OperateError> {
        kinds.try_fold(true, |has_none, kind| Ok(has_none && self.spool.n_entries(kind)? == 0))
    }

    /// How much was found of a kind.
    ///
    /// # Errors
    ///
    /// [`OperateError`] when the file cannot be read.
    pub fn n_entries(&self, kind: &str) -> Result<usize, OperateError> {
        self.spool.n_entries(kind)
    }

    /// All that was found of a kind, as JSON, by derivation and key, one after another, with the names that people know.
    ///
    /// # Errors
    ///
    /// [`OperateError`] when the file cannot be read, and those of `act`.
    pub fn each_entry(
        &self,
        kind: &str,
        mut act: impl FnMut(&str) -> Result<(), OperateError>,
    ) -> Result<(), OperateError> {
        self.spool.each_entry(kind, |entry| act(&labelled(&self.catalogue, entry)?))
    }

    /// The families whose marks of a possible loss stay, because a difference of theirs can still be corrected.
    pub(super) fn families_kept<S: Store>(&self, opened: &Deployment<S>) -> Result<BTreeSet<Family>, OperateError> {
        let mut families = BTreeSet::new();
        for kind in [FINDING, UNDECIDED, WAITING] {
            self.spool.each_entry(kind, |entry| {
                let Difference { finding, .. } = serde_json::from_str(entry)?;
                families.extend(loss::keeps(&opened.catalogue, &finding));
                Ok(())
            })?;
        }
        Ok(families)
    }

    /// The derivations of which something was found of a kind.
    pub(crate) fn derivations_with(&self, kind: &str) -> Result<BTreeSet<String>, OperateError> {
        self.spool.derivations_with(kind)
    }
}
