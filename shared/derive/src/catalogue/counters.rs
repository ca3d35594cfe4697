//! Counters: each that is read is one that a count writes, and each that goes with an item counts for it.

use std::collections::BTreeSet;

use keys::counter::COUNTER;

use super::{CatalogueEntry, CatalogueError};
use crate::{
    declaration::{cascade::Way, count::Count},
    kind::shape::Shape,
    part::Part,
};

const SUM_OF: &str = "sum of ";

/// The part of the counters that holds a derivation's sum.
#[must_use]
pub fn sum_of(derivation: &str) -> String {
    format!("{SUM_OF}{derivation}")
}

/// A count or sum that is read is one that is declared, and counters go with the items that they count for.
pub(super) fn all_counted(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let counted = entries.iter().flat_map(|entry| &entry.writes).filter(|part| part.entity == COUNTER).collect();
    for entry in entries {
        if let Some(problem) = missing(&counted, entry).or_else(|| misplaced(entries, entry)) {
            return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
        }
    }
    Ok(())
}

/// A count or sum that a derivation reads, and none writes.
fn missing(counted: &BTreeSet<&Part>, entry: &CatalogueEntry) -> Option<String> {
    let mut read = entry.reads.iter().filter(|part| part.entity == COUNTER);
    let Part { of, .. } = read.find(|part| !counted.contains(part))?;
    let name = of.attribute()?;
    let what = if name.starts_with(SUM_OF) { "" } else { "count " };
    Some(format!("there is no {what}{name}"))
}

/// Counters that a cascade would delete, and that stand beside other items than its owner or go by themselves.
fn misplaced(entries: &[CatalogueEntry], entry: &CatalogueEntry) -> Option<String> {
    let Shape::Cascade(cascade) = entry.derivation.kind.shape() else { return None };
    let owner = &cascade.owner;
    cascade.hanging.iter().find_map(|hanging| {
        let Way::Counters(name) = &hanging.found else { return None };
        let count = &entries.iter().find(|other| other.derivation.name == *name)?.derivation;
        let Shape::Count(Count { target, history, .. }) = count.kind.shape() else { return None };
        let name = count.label();
        if target != owner {
            return Some(format!(
                "the counters of {name} stand beside items of {target}, and this is about those beside items of {owner}"
            ));
        }
        // What is deleted later would be taken from a counter that is gone.
        (!history).then(|| {
            format!(
                "the counters of {name} come to zero and go when what they count is deleted: name here only a count with \
                 history = true, whose items go unseen"
            )
        })
    })
}
