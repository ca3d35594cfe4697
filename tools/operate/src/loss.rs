//! Marks of a possible loss. A verification removes the marks that existed before it began. It keeps a mark if it finds
//! something that may be missing because of the loss and that can still be corrected.

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, family::Family};
use engine::loss::{Mark, clear, marks};
use store::Store;

use crate::{failure::OperateError, tables::Deployment, verify::Finding};

/// A mark and its fate.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The mark.
    pub mark: Mark,
    /// Its fate.
    pub fate: MarkFate,
}

/// What a verification did with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFate {
    /// It was removed.
    Removed,
    /// It stays: its family has a finding that can be corrected, or an undecided difference.
    Kept,
    /// It stays: not the whole table was read, or it was read by an earlier run, or without all derivations of the
    /// functions.
    Unproven,
    /// It stays: the verification may not write.
    NotPermitted,
    /// It stays: a function renewed it during the verification.
    Renewed,
}

/// Reads the marks before the table is read.
///
/// # Errors
///
/// [`OperateError::Store`] if they cannot be read.
pub async fn before<S: Store>(opened: &Deployment<S>) -> Result<Vec<Mark>, OperateError> {
    Ok(marks(&opened.store).await?)
}

/// Family whose marks stay because of a difference; `None` if no repair can correct it, because its sources are gone or
/// because items of the application form a loop.
#[must_use]
pub fn keeps(catalogue: &Catalogue, finding: &Finding) -> Option<Family> {
    let derivation = catalogue.position(&finding.derivation).and_then(|at| catalogue.derivation(at));
    // An index key is not a derivation of the catalogue; it is level-triggered.
    let Some(derivation) = derivation else { return Some(Family::LevelTriggered) };
    (finding.flaw.is_none() && !derivation.kind.is_history()).then(|| derivation.kind.family())
}

/// Removes these marks after a verification of the whole table or a part of it. Marks stay if a difference [keeps]
/// their family.
///
/// # Errors
///
/// [`OperateError::Store`] if one cannot be removed.
pub async fn settled<S: Store>(
    opened: &Deployment<S>,
    marks: Vec<Mark>,
    kept: &BTreeSet<Family>,
    is_whole: bool,
    may_write: bool,
) -> Result<Vec<Marked>, OperateError> {
    let mut marked = Vec::new();
    for mark in marks {
        let fate = if kept.iter().any(|family| mark.is_of(*family)) {
            MarkFate::Kept
        } else if !is_whole {
            MarkFate::Unproven
        } else if !may_write {
            MarkFate::NotPermitted
        } else if clear(&opened.store, &mark).await? {
            MarkFate::Removed
        } else {
            MarkFate::Renewed
        };
        marked.push(Marked { mark, fate });
    }
    Ok(marked)
}
