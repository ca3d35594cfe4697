//! The catalogue: the list of derivations of a table, checked against its schema.
//!
//! A catalogue is a graph of parts of items: a derivation that reads what another writes comes after it. A cycle is
//! refused when the catalogue is built, so that whatever our own writes ring comes to an end. One that recurs over its
//! own target may read what it writes itself, since it ends at a depth of its own.

mod cascades;
mod counters;
mod names;
mod reached;
mod writers;

use std::collections::{BTreeMap, BTreeSet};

use keys::counter::COUNTER;

pub use self::counters::sum_of;
use self::writers::Writers;
use crate::{
    change::Sight,
    derivation::Derivation,
    family::Family,
    kind::{refresh::Refresh, shape::Shape},
    part::Part,
    position::DerivationAt,
    schema::Schema,
};

/// Derivations in an order in which each comes after those that it builds on.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<CatalogueEntry>,
    /// By entity, so that a change asks only those that its item may concern.
    concerns: BTreeMap<String, Concern>,
}

/// What the change of an entity's item may concern.
#[derive(Clone, Debug, Default)]
struct Concern {
    /// Positions of the derivations that look at such items, ascending.
    derivations: Vec<(DerivationAt, Family)>,
    /// The parts of such items that derivations read, each once.
    reads: Vec<Part>,
}

#[derive(Clone, Debug)]
struct CatalogueEntry {
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
            for name in [Some(&derivation.name), derivation.renamed.as_ref()].into_iter().flatten() {
                if !names.insert(name.clone()) {
                    return Err(CatalogueError::NameTwice { name: name.clone() });
                }
            }
            let reach = derivation
                .kind
                .reach(schema)
                .map_err(|problem| CatalogueError::Declaration { derivation: derivation.name.clone(), problem })?;
            let mut writes = reach.writes;
            // A count writes a part of the counters, which has the derivation's name.
            if let Shape::Count(count) = derivation.kind.shape() {
                writes.push(Part::attribute(COUNTER, &derivation.name));
                writes.extend(count.sum.as_ref().map(|_| Part::attribute(COUNTER, &sum_of(&derivation.name))));
            }
            entries.push(CatalogueEntry { derivation, reads: reach.reads, writes });
        }
        written_once(&entries)?;
        counters::all_counted(&entries)?;
        cascades::no_circle(&entries)?;
        cascades::no_repetition(&entries)?;
        reached::all_found(schema, &entries)?;
        let entries = sorted(entries)?;
        let concerns = concerns(&entries);
        Ok(Self { entries, concerns })
    }

    /// The derivations, each after those that it builds on.
    pub fn derivations(&self) -> impl Iterator<Item = &Derivation> {
        self.entries.iter().map(|entry| &entry.derivation)
    }

    /// The derivations with their positions, in the same order.
    pub fn positioned(&self) -> impl Iterator<Item = (DerivationAt, &Derivation)> {
        self.derivations().enumerate().map(|(at, derivation)| (DerivationAt(at), derivation))
    }

    /// The derivations of these families that a change may concern, with their positions, in their order.
    pub fn looking_at(
        &self,
        sight: &Sight<'_>,
        families: &[Family],
    ) -> impl Iterator<Item = (DerivationAt, &Derivation)> {
        let [old, new] = self.concerns_of(sight).map(|concern| concern.map_or(&[][..], |it| it.derivations.as_slice()));
        let mut ours: Vec<DerivationAt> = Vec::with_capacity(old.len() + new.len());
        ours.extend(old.iter().chain(new).filter(|(_, family)| families.contains(family)).map(|(at, _)| *at));
        if !old.is_empty() {
            ours.sort_unstable();
            ours.dedup();
        }
        ours.into_iter().filter_map(|at| Some((at, self.derivation(at)?)))
    }

    /// The concerns of the old image's entity, where that is another than the new one's, and of the new image's.
    fn concerns_of(&self, sight: &Sight<'_>) -> [Option<&Concern>; 2] {
        let new = sight.new.as_ref().map(|image| image.definition.name.as_str());
        let old = sight.old.as_ref().map(|image| image.definition.name.as_str()).filter(|old| Some(*old) != new);
        [old, new].map(|entity| entity.and_then(|entity| self.concerns.get(entity)))
    }

    /// The derivation at a position.
    #[must_use]
    pub fn derivation(&self, at: DerivationAt) -> Option<&Derivation> {
        self.entries.get(at.0).map(|entry| &entry.derivation)
    }

    /// The parts of items that a derivation writes.
    #[must_use]
    pub fn writes(&self, at: DerivationAt) -> &[Part] {
        self.entries.get(at.0).map_or(&[], |entry| &entry.writes)
    }

    /// Positions of the derivations that write into items of an entity by looking at them.
    pub fn refreshing(&self, entity: &str) -> impl Iterator<Item = DerivationAt> {
        let refreshes =
            move |entry: &CatalogueEntry| entry.derivation.kind.refresh().is_some_and(|part| part.target() == entity);
        self.entries.iter().enumerate().filter(move |(_, entry)| refreshes(entry)).map(|(at, _)| DerivationAt(at))
    }

    /// The derivations that create whole items, with their positions and the entities of the items.
    pub fn makers(&self) -> impl Iterator<Item = (DerivationAt, &str)> {
        self.positioned().filter_map(|(at, derivation)| {
            let refresh = derivation.kind.refresh().filter(|refresh| refresh.makes_item())?;
            Some((at, refresh.target()))
        })
    }

    /// How the derivation at a position looks at an item.
    #[must_use]
    pub fn refresh(&self, at: DerivationAt) -> Option<&dyn Refresh> {
        self.derivation(at)?.kind.refresh()
    }

    /// Does the derivation at a position read one of these attributes of an entity's items?
    pub(crate) fn reads_any<'a>(
        &self,
        at: DerivationAt,
        entity: &str,
        mut names: impl Iterator<Item = &'a str>,
    ) -> bool {
        let reads = self.entries.get(at.0).map_or(&[][..], |entry| entry.reads.as_slice());
        names.any(|name| reads.iter().any(|part| part.entity == entity && part.of.holds(name)))
    }

    /// The displays of a count, with their positions.
    pub fn displays<'a>(&'a self, count: &'a str) -> impl Iterator<Item = (DerivationAt, &'a dyn Refresh)> {
        let shown = move |(at, derivation): (DerivationAt, &'a Derivation)| {
            let refresh = derivation.kind.refresh()?;
            (refresh.shows() == Some(count)).then_some((at, refresh))
        };
        self.positioned().filter_map(shown)
    }

    /// Does a change of a ground item differ in something that a derivation reads?
    #[must_use]
    pub fn reads_difference(&self, sight: &Sight<'_>) -> bool {
        let image = sight.new.as_ref().or(sight.old.as_ref());
        let Some(ground) = image.filter(|image| !image.definition.derived) else { return false };
        let derived = &ground.definition.derived_attributes;
        let is_ground = |part: &Part| !part.of.attribute().is_some_and(|name| derived.iter().any(|it| it == name));
        let mut reads = self.concerns_of(sight).into_iter().flatten().flat_map(|concern| &concern.reads);
        reads.any(|part| is_ground(part) && part.differs(sight))
    }
}

fn concerns(entries: &[CatalogueEntry]) -> BTreeMap<String, Concern> {
    let (mut concerns, mut seen) = (BTreeMap::<String, Concern>::new(), BTreeSet::<&Part>::new());
    for (at, entry) in entries.iter().enumerate() {
        let entities: BTreeSet<&str> = entry.derivation.kind.entities().into_iter().collect();
        for entity in entities {
            concerns
                .entry(entity.to_owned())
                .or_default()
                .derivations
                .push((DerivationAt(at), entry.derivation.kind.family()));
        }
        for part in &entry.reads {
            if seen.insert(part) {
                concerns.entry(part.entity.clone()).or_default().reads.push(part.clone());
            }
        }
    }
    concerns
}

fn written_once(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let writers = Writers::of(entries);
    for (at, one) in entries.iter().enumerate() {
        let others = one.writes.iter().flat_map(|part| writers.meeting(part)).filter(|other| *other > at);
        let Some(other) = others.min().and_then(|other| entries.get(other)) else { continue };
        if let Some(part) = one.writes.iter().find(|part| other.writes.iter().any(|other| part.meets(other))) {
            return Err(CatalogueError::WrittenTwice {
                one: one.derivation.name.clone(),
                other: other.derivation.name.clone(),
                part: part.of.attribute().map_or_else(|| part.entity.clone(), |name| format!("{}.{name}", part.entity)),
            });
        }
    }
    Ok(())
}

/// Puts each entry after those whose writes it reads, and otherwise keeps the order.
fn sorted(entries: Vec<CatalogueEntry>) -> Result<Vec<CatalogueEntry>, CatalogueError> {
    let writers = Writers::of(&entries);
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut waits_for: BTreeMap<usize, usize> = BTreeMap::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let recurs = entry.derivation.kind.refresh().is_some_and(Refresh::recurs);
        let mut before: BTreeSet<usize> = entry.reads.iter().flat_map(|part| writers.meeting(part)).collect();
        before.retain(|other| *other != at || !recurs);
        for other in &before {
            followers.entry(*other).or_default().push(at);
        }
        if before.is_empty() {
            free.insert(at);
        } else {
            waits_for.insert(at, before.len());
        }
    }
    let mut order = Vec::with_capacity(entries.len());
    while let Some(at) = free.pop_first() {
        order.push(at);
        for follower in followers.remove(&at).unwrap_or_default() {
            let n_left = waits_for.get(&follower).map_or(0, |n| n.saturating_sub(1));
            if n_left == 0 {
                waits_for.remove(&follower);
                free.insert(follower);
            } else {
                waits_for.insert(follower, n_left);
            }
        }
    }
    let mut waiting: BTreeMap<usize, CatalogueEntry> = entries.into_iter().enumerate().collect();
    let sorted: Vec<CatalogueEntry> = order.iter().filter_map(|at| waiting.remove(at)).collect();
    if waiting.is_empty() {
        return Ok(sorted);
    }
    Err(CatalogueError::Circle { names: waiting.into_values().map(|entry| entry.derivation.name).collect() })
}

#[cfg(test)]
mod tests;
