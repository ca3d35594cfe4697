//! The derivations that write a part of items, by entity and attribute.
//!
//! A catalogue may have thousands of derivations, and nearly none of them write into the same entity.

use std::collections::{BTreeMap, BTreeSet};

use super::CatalogueEntry;
use crate::part::Part;

/// The writers of each entity's items, by their positions among the entries.
pub(super) struct Writers<'a>(BTreeMap<&'a str, EntityWriters<'a>>);

#[derive(Default)]
struct EntityWriters<'a> {
    /// Writers of an attribute, or of a value inside it.
    of_attribute: BTreeMap<&'a str, Vec<usize>>,
    /// Writers of any other part.
    of_others: Vec<(usize, &'a Part)>,
    /// All of them.
    all: Vec<(usize, &'a Part)>,
}

impl<'a> Writers<'a> {
    pub(super) fn of(entries: &'a [CatalogueEntry]) -> Self {
        let mut writers: BTreeMap<&str, EntityWriters<'_>> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            for part in &entry.writes {
                let of_entity = writers.entry(&part.entity).or_default();
                of_entity.all.push((at, part));
                match part.of.attribute() {
                    Some(name) => of_entity.of_attribute.entry(name).or_default().push(at),
                    None => of_entity.of_others.push((at, part)),
                }
            }
        }
        Self(writers)
    }

    /// The entries whose writes overlap this part.
    pub(super) fn meeting(&self, part: &Part) -> BTreeSet<usize> {
        let Some(of_entity) = self.0.get(part.entity.as_str()) else { return BTreeSet::new() };
        let (named, others) = match part.of.attribute() {
            Some(name) => (of_entity.of_attribute.get(name), &of_entity.of_others),
            None => (None, &of_entity.all),
        };
        let others = others.iter().filter(|(_, other)| part.meets(other)).map(|(at, _)| *at);
        named.into_iter().flatten().copied().chain(others).collect()
    }
}
