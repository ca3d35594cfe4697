//! The catalogue: the list of derivations of a table, checked against its schema.
//!
//! A catalogue is a graph of parts of items: a derivation that reads what another writes comes after it. Building the
//! catalogue refuses cycles, so that the refreshes that Ripple's own writes request come to an end. A derivation that
//! recurs over its own target may read what it writes itself, since its depth is limited.

use std::collections::{BTreeMap, BTreeSet};

use keys::{counter::COUNTER, entity::Definition};

use crate::{
    change::Sight,
    condition::Condition,
    declaration::{Cascade, Count, Fate, FoundBy, Mirror, Way},
    derivation::Derivation,
    family::Family,
    kind::{Kind, Refresh, Shape},
    part::Part,
    position::DerivationAt,
    schema::Schema,
};

/// Derivations, each after those that it builds on.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<CatalogueEntry>,
    /// By entity, so that a change only concerns the derivations that its item may affect.
    concerns: BTreeMap<String, Concern>,
}

/// What a change of an entity's item may affect.
#[derive(Clone, Debug, Default)]
struct Concern {
    /// Positions of the derivations that refresh such items, ascending.
    derivations: Vec<(DerivationAt, Family)>,
    /// The parts of such items that derivations read, without duplicates.
    reads: Vec<Part>,
}

#[derive(Clone, Debug)]
struct CatalogueEntry {
    derivation: Derivation,
    reads: Vec<Part>,
    writes: Vec<Part>,
}

/// Why a catalogue is invalid.
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
        /// One of them.
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
    /// [`CatalogueError`] naming the derivation and the problem.
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
            // A count writes a part of the counters that is named after the derivation.
            if let Shape::Count(count) = derivation.kind.shape() {
                writes.push(Part::attribute(COUNTER, &derivation.name));
                writes.extend(count.sum.as_ref().map(|_| Part::attribute(COUNTER, &sum_of(&derivation.name))));
            }
            entries.push(CatalogueEntry { derivation, reads: reach.reads, writes });
        }
        written_once(&entries)?;
        all_counted(&entries)?;
        no_circle(&entries)?;
        no_repetition(&entries)?;
        all_found(schema, &entries)?;
        let entries = sorted(entries)?;
        let concerns = concerns(&entries);
        Ok(Self { entries, concerns })
    }

    /// The derivations, each after those that it builds on.
    pub fn derivations(&self) -> impl Iterator<Item = &Derivation> {
        self.entries.iter().map(|entry| &entry.derivation)
    }

    /// The derivations that a manifest declares, without their parts: what shows a count, what creates items for it, and
    /// what keeps entries.
    pub fn declared(&self) -> impl Iterator<Item = &Derivation> {
        self.derivations().filter(|derivation| {
            let reads_count = derivation.kind.refresh().is_some_and(|refresh| !refresh.reads_counts().is_empty());
            !reads_count && !derivation.kind.keeps_entries()
        })
    }

    /// The derivations with their positions, in this order.
    pub fn positioned(&self) -> impl Iterator<Item = (DerivationAt, &Derivation)> {
        self.derivations().enumerate().map(|(at, derivation)| (DerivationAt(at), derivation))
    }

    /// The derivations of these families that a change may affect, with their positions, in order.
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

    /// The concerns of the old image's entity if it differs from the new one's, and of the new image's entity.
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

    /// Positions of the derivations that write into items of an entity by refreshing them.
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

    /// How the derivation at a position refreshes an item.
    #[must_use]
    pub fn refresh(&self, at: DerivationAt) -> Option<&dyn Refresh> {
        self.derivation(at)?.kind.refresh()
    }

    /// True if the derivation at a position reads one of these attributes of an entity's items.
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

    /// True if a change of an application item differs in something that a derivation reads.
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
            let looking = (DerivationAt(at), entry.derivation.kind.family());
            concerns.entry(entity.to_owned()).or_default().derivations.push(looking);
        }
        for part in &entry.reads {
            if seen.insert(part) {
                concerns.entry(part.entity.clone()).or_default().reads.push(part.clone());
            }
        }
    }
    concerns
}

/// The derivations that write a part of items, by entity, as positions among the entries. A catalogue may have thousands
/// of derivations, and nearly none of them write into the same entity.
struct Writers<'a>(BTreeMap<&'a str, EntityWriters<'a>>);

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
    fn of(entries: &'a [CatalogueEntry]) -> Self {
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
    fn meeting(&self, part: &Part) -> BTreeSet<usize> {
        let Some(of_entity) = self.0.get(part.entity.as_str()) else { return BTreeSet::new() };
        let (named, others) = match part.of.attribute() {
            Some(name) => (of_entity.of_attribute.get(name), &of_entity.of_others),
            None => (None, &of_entity.all),
        };
        let others = others.iter().filter(|(_, other)| part.meets(other)).map(|(at, _)| *at);
        named.into_iter().flatten().copied().chain(others).collect()
    }
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

/// Places each entry after the entries whose writes it reads, and otherwise keeps the order.
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

// ---- Cascades: none leads back to itself through another, and none repeats another ----
//
// Deletions by a cascade may start other cascades, and a cascade over a tree starts itself: deleting a comment deletes
// its answers, and their answers. But if deleting an order deleted its customer and the customer's orders, deleting one
// order would delete them all.

fn cascades(entries: &[CatalogueEntry]) -> impl Iterator<Item = (&CatalogueEntry, &Cascade)> {
    entries.iter().filter_map(|entry| match entry.derivation.kind.shape() {
        Shape::Cascade(cascade) => Some((entry, cascade)),
        _ => None,
    })
}

/// Refuses a cascade that another cascade would start again.
fn no_circle(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let cascades: Vec<(&CatalogueEntry, &Cascade)> = cascades(entries).collect();
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
                    "it and {} delete in a circle: each deletes the items that start the other; remove one of the two entries",
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

/// Refuses a cascade that deletes the same items as another one of the same owner, found in the same way.
fn no_repetition(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let mut seen: Vec<(&CatalogueEntry, &Cascade)> = Vec::new();
    for (entry, cascade) in cascades(entries) {
        let repeats = |(other, earlier): &(&CatalogueEntry, &Cascade)| {
            let hanging = cascade.hanging.iter().find(|hanging| earlier.hanging.contains(hanging))?;
            (earlier.owner == cascade.owner).then(|| (other.derivation.label().to_owned(), hanging.entity.clone()))
        };
        if let Some((other, entity)) = seen.iter().find_map(repeats) {
            let problem = format!(
                "{other} deletes the {entity} items of a {} already: remove one of the two entries",
                cascade.owner
            );
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

// ---- counters ----

const SUM_OF: &str = "sum of ";

/// The part of the counters that holds a derivation's sum.
#[must_use]
pub fn sum_of(derivation: &str) -> String {
    format!("{SUM_OF}{derivation}")
}

/// Checks that each count or sum that is read is declared, and that cascades delete only counters of their owners.
fn all_counted(entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let counted = entries.iter().flat_map(|entry| &entry.writes).filter(|part| part.entity == COUNTER).collect();
    for entry in entries {
        if let Some(problem) = missing(&counted, entry).or_else(|| misplaced(entries, entry)) {
            return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
        }
    }
    Ok(())
}

/// The error about a count or sum that a derivation reads and none writes.
fn missing(counted: &BTreeSet<&Part>, entry: &CatalogueEntry) -> Option<String> {
    let mut read = entry.reads.iter().filter(|part| part.entity == COUNTER);
    let Part { of, .. } = read.find(|part| !counted.contains(part))?;
    let name = of.attribute()?;
    let what = if name.starts_with(SUM_OF) { "" } else { "count " };
    Some(format!("there is no {what}{name}"))
}

/// The error about counters that a cascade must not delete: they belong to other items than its owner, or the sweep
/// deletes them anyway.
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
        // A later deletion of a source would subtract from a counter that is gone.
        (!history).then(|| {
            format!(
                "the counters of {name} come to zero and go when what they count is deleted: name here only a count with \
                 history = true, whose items go unseen"
            )
        })
    })
}

// ---- The two names of a derivation: the stored name, and the label that people use ----
//
// They differ once a derivation is renamed. Stored data always uses the stored name, because data may be left under a
// name that is now the label of another derivation.

impl Catalogue {
    /// The name under which the derivation at a position is stored.
    #[must_use]
    pub fn name(&self, at: DerivationAt) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.name.as_str())
    }

    /// The label of the derivation at a position.
    #[must_use]
    pub fn label(&self, at: DerivationAt) -> &str {
        self.derivation(at).map_or("", |derivation| derivation.label())
    }

    /// The position of the derivation that is stored under this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<DerivationAt> {
        self.derivations().position(|derivation| derivation.name == name).map(DerivationAt)
    }

    /// The position of the derivation with this label or stored name.
    #[must_use]
    pub fn called(&self, name: &str) -> Option<DerivationAt> {
        self.derivations().position(|derivation| derivation.is_called(name)).map(DerivationAt)
    }

    /// The label for a stored name; the name itself if it belongs to no declared derivation.
    #[must_use]
    pub fn label_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.position(name).map_or(name, |at| self.label(at))
    }

    /// Replaces a stored name by the label.
    pub fn relabel(&self, name: &mut String) {
        if let Some(at) = self.position(name) {
            self.label(at).clone_into(name);
        }
    }
}

// ---- Whether a search for the items that copy something finds all of them ----
//
// Items may be found through their mirrors, or mirrors through their sources. That works only if each of them leads to
// one of the others: an item without a mirror would keep its copy when the source changes.

/// The mirrors from and to each entity.
type MirrorsOf<'a> = BTreeMap<&'a str, Vec<(&'a CatalogueEntry, &'a Mirror)>>;

/// Checks that searches through a mirror, or through mirrored items, find everything.
fn all_found(schema: &Schema, entries: &[CatalogueEntry]) -> Result<(), CatalogueError> {
    let mut mirrors = MirrorsOf::new();
    for entry in entries {
        if let Shape::Mirror(mirror) = entry.derivation.kind.shape() {
            for entity in [&mirror.target, &mirror.source] {
                mirrors.entry(entity).or_default().push((entry, mirror));
            }
        }
    }
    for entry in entries {
        for (found, target) in searches(entry.derivation.kind.as_ref()) {
            if let Some(problem) = passed_over(schema, &mirrors, found, target) {
                return Err(CatalogueError::Declaration { derivation: entry.derivation.name.clone(), problem });
            }
        }
    }
    Ok(())
}

/// The searches of a kind, each with the entity whose items are to be found.
fn searches(kind: &dyn Kind) -> Vec<(&FoundBy, &str)> {
    let own = kind.refresh().and_then(|refresh| Some((refresh.found()?, refresh.target())));
    let hanging = match kind.shape() {
        Shape::Cascade(cascade) => cascade.hanging.as_slice(),
        _ => &[],
    };
    let of_hanging = hanging.iter().filter_map(|hanging| match &hanging.found {
        Way::Found(found) => Some((found, hanging.entity.as_str())),
        Way::Named(_) | Way::Counters(_) => None,
    });
    own.into_iter().chain(of_hanging).collect()
}

/// Why a search may pass over some of its targets.
fn passed_over(schema: &Schema, mirrors: &MirrorsOf<'_>, found: &FoundBy, target: &str) -> Option<String> {
    let via = found.via.as_str();
    let of = |entity: &str| mirrors.get(entity).into_iter().flatten();
    let is_mirrored_from = |entity: &str| of(target).any(|(_, it)| it.target == target && it.source == entity);
    // A mirror that is switched off is not in the catalogue.
    let is_mirror = of(via).any(|(_, mirror)| mirror.target == via);
    let mut has_own = via == target || is_mirrored_from(via) || !is_mirror;
    for (other, mirror) in of(via) {
        let is_own =
            via != target && mirror.target == via && (mirror.source == target || is_mirrored_from(&mirror.source));
        has_own |= is_own;
        let why = if is_own {
            schema.entity(&mirror.source).and_then(|source| missed(mirror, source))
        } else if mirror.source == via && mirror.target == target && mirror.each.is_some() {
            Some(format!("an item of {} has a mirror for each member of a list", mirror.source))
        } else {
            None
        };
        if let Some(why) = why {
            let name = &other.derivation.name;
            return Some(format!(
                "not every {target} has a {via} by which it is found, since by {name} {why}: use an index"
            ));
        }
    }
    (!has_own).then(|| {
        format!(
            "not every {target} has a {via} by which it is found, since {via} is a mirror of other items: use an index, or \
             a mirror of {target}"
        )
    })
}

/// Why a source may lack a mirror of its own. A source without a field of the mirror's key is exempt: it would not be
/// in an index either.
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{
        declaration::Link,
        fixture::{self, copy, count, derivations, display, ground, mirror, named, schema},
        kinds::{
            copy::Copy,
            display::{Display, Shows},
        },
    };

    fn check(schema: &Schema, derivations: Vec<Derivation>, wanted: &Expect) {
        wanted.assert_eq(&Catalogue::new(schema, derivations).unwrap_err().to_string());
    }

    fn count_only_if(attribute: &str) -> Count {
        let condition = Condition::is(attribute, "published");
        Count { condition, ..count("Post", "User", &[("UserId", "AuthorId")]) }
    }

    fn check_one(derivation: Derivation, wanted: &Expect) {
        check(&schema(), vec![derivation], wanted);
    }

    #[test]
    fn a_derivation_comes_after_those_that_it_builds_on() {
        let mut backwards = derivations();
        backwards.reverse();
        let catalogue = Catalogue::new(&schema(), backwards).unwrap();
        let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
        let at = |name: &str| names.iter().position(|other| *other == name);
        for (first, second) in [("follower-count", "follower-shown"), ("post-detail", "post-author")] {
            assert!(at(first) < at(second), "{names:?}");
        }
    }

    #[test]
    fn a_circle_is_refused() {
        let name = |to: &str, target: &str, from: &str| {
            let copy = copy(target, ("UserId", to), None, (target, "UserId"));
            Copy { source: from.into(), attributes: vec![("Name".into(), to.into())], ..copy }
        };
        let entity = |name: &str| {
            let sk = if name == "A" { "A" } else { "B" };
            ground(name, ("USER#{UserId}", sk), &[], &["Name"])
        };
        let schema = Schema::new(fixture::schema().layout, [entity("A"), entity("B")]);
        let both = vec![named("a", name("Name", "A", "B")), named("b", name("Name", "B", "A"))];
        check(&schema, both, &expect!["derivations build on each other in a circle: a, b"]);
    }

    #[test]
    fn a_kind_that_recurs_over_its_own_target_is_no_circle_and_any_other_is() {
        let path = || named("path", fixture::folder_path());
        assert!(Catalogue::new(&schema(), vec![path()]).is_ok());
        let own_name = |to: &str| Copy {
            source: "Folder".into(),
            target: "Folder".into(),
            link: Link::of(&[("FolderId", "ParentId")]),
            condition: Condition::Always,
            attributes: vec![("Path".into(), to.into())],
            found: fixture::folder_path().found,
        };
        check_one(named("a", own_name("Path")), &expect!["derivations build on each other in a circle: a"]);
        // Two that build on each other; one of them recurs.
        let schema = Schema::new(
            fixture::schema().layout,
            fixture::folders().map(|mut entity| {
                entity.derived_attributes.push("Name".into());
                entity
            }),
        );
        check(
            &schema,
            vec![path(), named("b", own_name("Name"))],
            &expect!["derivations build on each other in a circle: path, b"],
        );
    }

    #[test]
    fn one_attribute_has_one_writer() {
        let one = display("follower-count", "User", "FollowerCount");
        let other = display("post-count", "User", "FollowerCount");
        check(
            &schema(),
            vec![named("one", one), named("other", other)],
            &expect!["derivations one and other both write User.FollowerCount"],
        );
    }

    #[test]
    fn one_mirror_has_one_source() {
        let both = [("FolloweeId", "FolloweeId"), ("FollowerId", "FollowerId")];
        let one = || mirror("Follow", "Follower", &both);
        check(
            &schema(),
            vec![named("one", one()), named("other", one())],
            &expect!["derivations one and other both write Follower"],
        );
    }

    #[test]
    fn one_name_is_one_derivations() {
        let one = || count("View", "User", &[("UserId", "UserId")]);
        check(&schema(), vec![named("one", one()), named("one", one())], &expect!["two derivations are called one"]);
    }

    #[test]
    fn a_name_that_the_schema_does_not_know_is_refused() {
        check_one(
            named("a", count("Viev", "User", &[("UserId", "UserId")])),
            &expect!["derivation a: there is no entity Viev"],
        );
        check_one(
            named("a", count("View", "User", &[("UserId", "UserID")])),
            &expect!["derivation a: View has no field or attribute UserID"],
        );
        check_one(
            named("a", count("View", "User", &[("Id", "UserId")])),
            &expect!["derivation a: nothing gives UserId of the key of User"],
        );
        check_one(named("a", count_only_if("Sttaus")), &expect!["derivation a: Post has no attribute Sttaus"]);
        check_one(
            named("a", display("no-count", "User", "PostCount")),
            &expect!["derivation a: there is no count no-count"],
        );
        let sum = Display { shows: Shows::Sum, ..display("post-count", "User", "PostCount") };
        check(
            &schema(),
            vec![named("post-count", count("Post", "User", &[("UserId", "AuthorId")])), named("a", sum)],
            &expect!["derivation a: there is no sum of post-count"],
        );
        check_one(
            named("a", display("a", "User", "Followers")),
            &expect!["derivation a: User does not declare Followers as derived"],
        );
        let typo = Mirror { each: Some("Contents".into()), ..mirror("Post", "PostDetail", &[("PostId", "PostId")]) };
        check_one(named("a", typo), &expect!["derivation a: Post has no attribute Contents"]);
        let right = || copy("Comment", ("UserId", "UserName"), Some("GSI1"), ("Comment", "UserId"));
        let typo = Copy { attributes: vec![("Nmae".into(), "UserName".into())], ..right() };
        check_one(named("a", typo), &expect!["derivation a: User has no attribute Nmae"]);
        let typo = FoundBy { by: Link::of(&[("UserId", "Id")]), ..right().found };
        check_one(
            named("a", Copy { found: typo, ..right() }),
            &expect!["derivation a: the key of User has no Id, by which the targets would be found"],
        );
        check_one(
            named("a", mirror("Follow", "User", &[("UserId", "FolloweeId")])),
            &expect!["derivation a: User is not declared as derived"],
        );
        check_one(
            named("a", mirror("View", "Follower", &[("FolloweeId", "UserId"), ("FollowerId", "UserId")])),
            &expect!["derivation a: Follower does not declare Claims as derived"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "Text"), Some("GSI1"), ("Comment", "UserId"))),
            &expect!["derivation a: Comment does not declare Text as derived"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "UserName"), Some("GSI2"), ("Comment", "UserId"))),
            &expect!["derivation a: Comment is not in the index GSI2"],
        );
        check_one(
            named("a", copy("Comment", ("UserId", "UserName"), None, ("Comment", "UserId"))),
            &expect!["derivation a: nothing gives PostId of the key by which the targets are found"],
        );
    }
}
