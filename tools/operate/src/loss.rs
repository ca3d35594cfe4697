//! Marks of a possible loss, and the list of counts to recount. A verification removes what existed before it began. It
//! keeps a mark if it finds something that may be missing because of the loss and that can still be corrected, and an
//! entry of a count that it does not prove.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue,
    family::Family,
    guard::{Guard, Purpose},
    query::{Query, SortKeys},
    write::{Action, Table, Write},
};
use engine::{
    count::recount::RECOUNT,
    counters::Target,
    look::listing::ALL_DERIVATIONS,
    loss::{Mark, clear, marks},
};
use keys::{item::text, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store};

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
    PartRead,
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
            MarkFate::PartRead
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

// ---- Counts to recount ----

/// An entry of the list, as it was read.
#[derive(Clone, Debug)]
pub struct RecountEntry {
    key: Key,
    /// The attributes that a newer entry changes.
    read: [Option<AttributeValue>; 2],
    /// The count; `None` if it may be any.
    pub target: Option<Target>,
}

const ENTRY_NAMES: [&str; 2] = ["EventId", "ListedAt"];

/// Reads the list before the table is read.
///
/// # Errors
///
/// [`OperateError::Store`] if it cannot be read.
pub async fn entries<S: Store>(opened: &Deployment<S>) -> Result<Vec<RecountEntry>, OperateError> {
    let (query, mut entries, mut after) = (Query::of(None, RECOUNT, SortKeys::All), Vec::new(), None);
    loop {
        let page = opened.store.query(Table::Ledger, &query, after).await?;
        for item in page.items {
            let Some(key) = opened.schema.layout.key(&item) else { continue };
            let field = |name: &str| text(&item, name).unwrap_or_default().to_owned();
            let target = Target { derivation: field("Derivation"), item: Key::new(field("ItemPK"), field("ItemSK")) };
            let target = Some(target).filter(|target| target.derivation != ALL_DERIVATIONS);
            entries.push(RecountEntry { key, read: ENTRY_NAMES.map(|name| item.get(name).cloned()), target });
        }
        after = page.next;
        if after.is_none() {
            return Ok(entries);
        }
    }
}

/// Removes the entries of counts that `is_right` says are proven, unless they were listed again, and returns them.
///
/// # Errors
///
/// [`OperateError::Store`] if one cannot be removed.
pub async fn recounted<S: Store>(
    opened: &Deployment<S>,
    entries: Vec<RecountEntry>,
    is_right: impl Fn(&RecountEntry) -> bool,
) -> Result<Vec<RecountEntry>, OperateError> {
    let mut removed = Vec::new();
    for entry in entries.into_iter().filter(is_right) {
        let read = ENTRY_NAMES.into_iter().zip(entry.read.clone());
        let guard = Some(Guard::as_read(Purpose::LossMark, read));
        let write = Write { table: Table::Ledger, key: entry.key.clone(), action: Action::Delete, guard };
        if matches!(opened.store.write(&write).await?, Outcome::Done { .. }) {
            removed.push(entry);
        }
    }
    Ok(removed)
}
