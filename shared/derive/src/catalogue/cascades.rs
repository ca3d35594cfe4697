//! Cascades: none leads back to itself by way of another, and none does again what another does.
//!
//! What a cascade deletes may start other cascades, and one over a tree starts itself: a comment takes its answers along, and
//! these take theirs. But where an order takes its customer along and a customer the orders, deleting one order deletes them all.

use super::{CatalogueEntry, CatalogueError};
use crate::{
    declaration::cascade::{Cascade, Fate},
    kind::shape::Shape,
};

/// Refuses a cascade that starts again by way of another one.
pub(super) fn no_circle(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let cascades: Vec<(&CatalogueEntry, &Cascade)> = entries
        .iter()
        .filter_map(|entry| match entry.derivation.kind.shape() {
            Shape::Cascade(cascade) => Some((entry, cascade)),
            _ => None,
        })
        .collect();
    let started_by = |at: usize| {
        let deleted = cascades.get(at).into_iter().flat_map(|(_, cascade)| deleted(cascade));
        let deleted: Vec<&str> = deleted.collect();
        let is_started =
            move |cascade: &Cascade| cascade.starts.iter().any(|(name, _)| deleted.contains(&name.as_str()));
        let started = cascades.iter().enumerate().filter(move |(_, (_, cascade))| is_started(cascade));
        started.map(|(other, _)| other).filter(|other| *other != at).collect::<Vec<_>>()
    };
    for (at, (entry, _)) in cascades.iter().enumerate() {
        let (mut reached, mut next) = (Vec::new(), started_by(at));
        while let Some(other) = next.pop() {
            if reached.contains(&other) {
                continue;
            }
            let again = started_by(other);
            if let (true, Some((by, _))) = (again.contains(&at), cascades.get(other)) {
                let problem = format!(
                    "what it deletes is the owner of {}, which deletes what starts this one again: deleting one item would \
                     delete all that hang together, so leave one of the two entries out",
                    by.derivation.label()
                );
                return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
            }
            reached.push(other);
            next.extend(again);
        }
    }
    Ok(())
}

/// Refuses a cascade that deletes what another one of the same owner deletes by the same way.
pub(super) fn no_repetition(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let mut seen: Vec<(&CatalogueEntry, &Cascade)> = Vec::new();
    for entry in entries {
        let Shape::Cascade(cascade) = entry.derivation.kind.shape() else { continue };
        let repeats = |(other, earlier): &(&CatalogueEntry, &Cascade)| {
            let hanging = cascade.hanging.iter().find(|hanging| earlier.hanging.contains(hanging))?;
            (earlier.owner == cascade.owner).then(|| (other.derivation.label().to_owned(), hanging.entity.clone()))
        };
        if let Some((other, entity)) = seen.iter().find_map(repeats) {
            let problem = format!("{entity} goes with {} by {other} already: leave one of the two out", cascade.owner);
            return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
        }
        seen.push((entry, cascade));
    }
    Ok(())
}

/// Entities whose items it deletes.
fn deleted(cascade: &Cascade) -> impl Iterator<Item = &str> {
    let deletes = cascade.hanging.iter().filter(|hanging| !matches!(hanging.fate, Fate::Set { .. }));
    deletes.map(|hanging| hanging.entity.as_str())
}
