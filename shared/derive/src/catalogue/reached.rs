//! Whether a search for the items that carry something reaches all of them.
//!
//! Items may be found through their mirrors, or mirrors through their sources. That is right only where each of them leads
//! to one of the others: an item without a mirror would keep what it carries when its source changes.

use std::collections::BTreeMap;

use keys::entity::Definition;

use super::{CatalogueEntry, CatalogueError};
use crate::{condition::Condition, declaration::mirror::Mirror, kind::shape::Shape, schema::Schema};

/// What is found through a mirror, or through what is mirrored, is all found.
pub(super) fn all_found(schema: &Schema, entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let mut mirrors: BTreeMap<&str, Vec<(&CatalogueEntry, &Mirror)>> = BTreeMap::new();
    for entry in entries {
        if let Shape::Mirror(mirror) = entry.derivation.kind.shape() {
            for entity in [&mirror.target, &mirror.source] {
                mirrors.entry(entity).or_default().push((entry, mirror));
            }
        }
    }
    for entry in entries {
        let Some(carried) = entry.derivation.kind.refresh() else { continue };
        let Some(found) = carried.found() else { continue };
        for (other, mirror) in mirrors.get(found.via.as_str()).into_iter().flatten() {
            let why = if mirror.target == found.via && mirror.source == carried.target() {
                schema.entity(&mirror.source).and_then(|source| missed(mirror, source))
            } else if mirror.source == found.via && mirror.target == carried.target() && mirror.each.is_some() {
                Some(format!("an item of {} has a mirror for each member of a list", mirror.source))
            } else {
                None
            };
            if let Some(why) = why {
                let (target, via, name) = (carried.target(), &found.via, &other.derivation.name);
                let problem = format!("through {via} not every {target} is found, since by {name} {why}: use an index");
                return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
            }
        }
    }
    Ok(())
}

/// Why a source may have no mirror of its own. One that lacks a field of the mirror's key has none either, as it would not be
/// in an index.
fn missed(mirror: &Mirror, source: &Definition) -> Option<String> {
    let Mirror { source: from, target: to, .. } = mirror;
    if mirror.condition != Condition::Always {
        return Some(format!("only an item of {from} that meets a condition has one of {to}"));
    }
    if let Some(list) = &mirror.each {
        return Some(format!("an item of {from} without members of {list} has none of {to}"));
    }
    mirror.lists_claims(source).then(|| format!("one item of {to} may be that of several of {from}"))
}
