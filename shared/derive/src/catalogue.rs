//! The catalogue: the list of derivations of a table, checked against its schema.
//!
//! A catalogue is a graph of parts of items: a derivation that reads what another writes comes after it. A cycle is
//! refused when the catalogue is built, so that whatever our own writes ring comes to an end.

use std::collections::BTreeSet;

use crate::{
    change::Sight,
    derivation::{Derivation, Family, Part, PartOf, Refresh},
    kinds::count::COUNTER,
    schema::Schema,
};

/// Derivations in an order in which each comes after those that it builds on.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    derivation: Derivation,
    reads: Vec<Part>,
    writes: Vec<Part>,
}

/// A catalogue that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// A declaration does not fit the schema.
    #[error("derivation {derivation}: {problem}")]
    Declaration {
        /// The derivation.
        derivation: String,
        /// What does not fit.
        problem: String,
    },
    /// Two derivations have one name.
    #[error("two derivations are called {name}")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// Two derivations write the same part of an item.
    #[error("derivations {one} and {other} both write {part}")]
    WrittenTwice {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// What both write.
        part: String,
    },
    /// Derivations build on each other in a circle.
    #[error("derivations build on each other in a circle: {}", names.join(", "))]
    Circle {
        /// Those in the circle, and those that build on it.
        names: Vec<String>,
    },
}

impl Catalogue {
    /// A catalogue of these derivations.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] naming the derivation and what does not fit.
    pub fn new(schema: &Schema, derivations: Vec<Derivation>) -> Result<Self, CatalogueError> {
        let mut names = BTreeSet::new();
        let mut entries = Vec::new();
        for derivation in derivations {
            if !names.insert(derivation.name.clone()) {
                return Err(CatalogueError::NameTwice { name: derivation.name });
            }
            let reach = derivation
                .kind
                .reach(schema)
                .map_err(|problem| CatalogueError::Declaration { derivation: derivation.name.clone(), problem })?;
            let mut writes = reach.writes;
            if derivation.kind.family() == Family::Additive {
                writes.push(Part::attribute(COUNTER, &derivation.name));
            }
            entries.push(Entry { derivation, reads: reach.reads, writes });
        }
        written_once(&entries)?;
        Ok(Self { entries: sorted(entries)? })
    }

    /// The derivations, each after those that it builds on.
    pub fn derivations(&self) -> impl Iterator<Item = &Derivation> {
        self.entries.iter().map(|entry| &entry.derivation)
    }

    /// The derivation at a position.
    #[must_use]
    pub fn derivation(&self, at: usize) -> Option<&Derivation> {
        self.entries.get(at).map(|entry| &entry.derivation)
    }

    /// The name of the derivation at a position.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.name.as_str())
    }

    /// Positions of the derivations that write into items of an entity by looking at them.
    pub fn refreshing(&self, entity: &str) -> impl Iterator<Item = usize> {
        let refreshes =
            move |entry: &Entry| entry.derivation.kind.refresh().is_some_and(|part| part.target() == entity);
        self.entries.iter().enumerate().filter(move |(_, entry)| refreshes(entry)).map(|(at, _)| at)
    }

    /// How the derivation at a position looks at an item.
    #[must_use]
    pub fn refresh(&self, at: usize) -> Option<&dyn Refresh> {
        self.derivation(at)?.kind.refresh()
    }

    /// Does a change of a ground item differ in something that a derivation reads?
    #[must_use]
    pub fn reads_difference(&self, sight: &Sight<'_>) -> bool {
        let image = sight.new.as_ref().or(sight.old.as_ref());
        let Some(ground) = image.filter(|image| !image.definition.derived) else { return false };
        let derived = &ground.definition.derived_attributes;
        let is_ground = |part: &Part| !matches!(&part.of, PartOf::Attribute(name) if derived.contains(name));
        self.entries.iter().flat_map(|entry| &entry.reads).any(|part| is_ground(part) && part.differs(sight))
    }
}

fn written_once(entries: &[Entry]) -> Result<(), CatalogueError> {
    for (at, one) in entries.iter().enumerate() {
        for other in entries.iter().skip(at + 1) {
            if let Some(part) = one.writes.iter().find(|part| other.writes.iter().any(|other| part.meets(other))) {
                return Err(CatalogueError::WrittenTwice {
                    one: one.derivation.name.clone(),
                    other: other.derivation.name.clone(),
                    part: match &part.of {
                        PartOf::Attribute(name) => format!("{}.{name}", part.entity),
                        PartOf::Existence | PartOf::AllBut(_) => part.entity.clone(),
                    },
                });
            }
        }
    }
    Ok(())
}

/// Puts each entry after those whose writes it reads, and otherwise keeps the order.
fn sorted(mut waiting: Vec<Entry>) -> Result<Vec<Entry>, CatalogueError> {
    let mut sorted = Vec::new();
    while !waiting.is_empty() {
        let free = |entry: &Entry| {
            let builds_on =
                |other: &Entry| other.writes.iter().any(|part| entry.reads.iter().any(|read| read.meets(part)));
            !waiting.iter().any(builds_on)
        };
        let Some(at) = waiting.iter().position(free) else {
            let names = waiting.into_iter().map(|entry| entry.derivation.name).collect();
            return Err(CatalogueError::Circle { names });
        };
        sorted.push(waiting.remove(at));
    }
    Ok(sorted)
}
