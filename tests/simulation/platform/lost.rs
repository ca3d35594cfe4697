//! What was lost: changes whose records a function never got, and what these changes concern.
//!
//! Only what a lost change concerns may differ from its definition, until an operator repairs it, and what a redrive left out
//! and listed for a recount. What a change concerns is what its plan asks for; of values that are derived from other derived
//! values, whatever these may reach.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    part::PartOf,
    plan::plan,
    position::DerivationAt,
};
use engine::sweep::Drift;
use keys::{counter::CounterKey, key::Key};
use operate::verify::Finding;

use crate::{actors::repairing::target, platform::stream::TableChange, scene::Scene, stored::to_recount};

/// The lost changes of a run.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// By their positions in the order of the writes, with the families that never got them.
    changes: BTreeMap<usize, Vec<Family>>,
    /// Ids of their records.
    ids: BTreeSet<String>,
}

/// What the lost changes concern.
#[derive(Debug, Default)]
pub(crate) struct Concerned {
    /// Counts, and buckets of roll-ups: the derivation, and the item that the count is about.
    pub(crate) counts: BTreeSet<(String, Key)>,
    /// Those of them that nobody can count again from what is left.
    histories: BTreeSet<String>,
    /// Level-triggered derivations.
    derivations: BTreeSet<String>,
    /// Those that show, or build on, a history that nobody can count again.
    of_histories: BTreeSet<String>,
}

impl Lost {
    /// The functions of these families never get the record of this change.
    pub(crate) fn add(&mut self, made: usize, id: &str, families: &[Family]) {
        self.changes.entry(made).or_default().extend(families);
        self.ids.insert(id.to_owned());
    }

    /// Was the change at this position lost for this family?
    pub(crate) fn has(&self, made: usize, family: Family) -> bool {
        self.changes.get(&made).is_some_and(|families| families.contains(&family))
    }

    /// Was the record with this id lost for any function?
    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Keys of the items that were changed.
    pub(crate) fn keys<'a>(&self, made: &'a [TableChange]) -> BTreeSet<&'a Key> {
        self.changes.keys().map(|at| &made[*at].key).collect()
    }

    /// What the lost changes concern, and what a redrive left out and listed for a recount.
    pub(crate) fn concerned(&self, scene: &Scene, made: &[TableChange]) -> Concerned {
        let lost = self.changes.iter().map(|(at, families)| (&made[*at], families.as_slice()));
        let mut concerned = Concerned::by(scene, lost);
        let listed = to_recount(scene);
        let is_history = |name: &&String| {
            let position = scene.catalogue.position(name).and_then(|at| scene.catalogue.derivation(at));
            position.is_some_and(|derivation| derivation.kind.is_history())
        };
        concerned.histories.extend(listed.iter().map(|(derivation, _)| derivation).filter(is_history).cloned());
        concerned.counts.extend(listed);
        let shown = concerned.histories.iter().flat_map(|name| scene.catalogue.displays(name)).map(|(at, _)| at);
        let mut positions = shown.collect();
        reach(scene, &mut positions);
        concerned.of_histories = positions.into_iter().map(|at| scene.catalogue.name(at).to_owned()).collect();
        concerned
    }
}

impl Concerned {
    /// What these changes concern, each for the functions of these families.
    pub(crate) fn by<'a>(scene: &Scene, changes: impl Iterator<Item = (&'a TableChange, &'a [Family])>) -> Self {
        let mut concerned = Self::default();
        let mut positions: BTreeSet<DerivationAt> = BTreeSet::new();
        for (made, families) in changes {
            let Some(change) = decoded(made) else { continue };
            for (derivation, effect) in plan(&scene.schema, &scene.catalogue, families, &change).effects {
                let name = scene.catalogue.name(derivation).to_owned();
                if scene.catalogue.derivation(derivation).is_some_and(|it| it.kind.is_history()) {
                    concerned.histories.insert(name.clone());
                }
                match effect {
                    Effect::Add(add) => {
                        // Whoever counts shows the count too.
                        positions.extend(scene.catalogue.displays(&name).map(|(at, _)| at));
                        concerned.counts.insert((name, add.target));
                    }
                    Effect::Measure(measure) => drop(concerned.counts.insert((name, measure.bucket))),
                    _ => drop(positions.insert(derivation)),
                }
            }
        }
        reach(scene, &mut positions);
        concerned.derivations = positions.into_iter().map(|at| scene.catalogue.name(at).to_owned()).collect();
        concerned
    }

    /// Can they be why a sweep says that this has drifted?
    pub(crate) fn explains_drift(&self, drift: &Drift) -> bool {
        let of_count = CounterKey::parse(&drift.item).map(|counter| (counter.derivation, counter.target));
        of_count.is_some_and(|count| self.counts.contains(&count))
            || drift.derivations.iter().any(|name| self.derivations.contains(name))
    }

    /// Can the loss be why this was found?
    pub(crate) fn explains(&self, finding: &Finding) -> bool {
        match target(finding) {
            Some(count) => self.counts.contains(&(count.derivation, count.item)),
            None => self.has_bucket(finding) || self.derivations.contains(&finding.derivation),
        }
    }

    /// Does it differ from its definition, though it is right by what is stored, since it builds on a history that nobody can
    /// count again?
    pub(crate) fn builds_on_history(&self, finding: &Finding) -> bool {
        self.of_histories.contains(&finding.derivation)
    }

    /// Is it a bucket or a history whose values nobody knows any more?
    pub(crate) fn has_bucket(&self, finding: &Finding) -> bool {
        let history = target(finding).filter(|count| self.histories.contains(&count.derivation));
        history.is_some_and(|count| self.counts.contains(&(count.derivation, count.item)))
            || self.counts.contains(&(finding.derivation.clone(), Key::new(&finding.pk, &finding.sk)))
    }
}

fn decoded(made: &TableChange) -> Option<Change> {
    let images = match (made.old.clone(), made.new.clone()) {
        (None, Some(new)) => Images::Inserted(new),
        (Some(old), Some(new)) => Images::Modified { old, new },
        (Some(old), None) => Images::Removed(old),
        (None, None) => return None,
    };
    let (id, sequence_number) = (String::new(), String::new());
    Some(Change { id, sequence_number, created_ms: Some(made.at_ms), key: made.key.clone(), images })
}

/// Adds the derivations that read what these write, or find items through the items that these make, and so on.
fn reach(scene: &Scene, positions: &mut BTreeSet<DerivationAt>) {
    loop {
        let writes: Vec<_> = positions.iter().flat_map(|at| scene.catalogue.writes(*at)).collect();
        let made = writes.iter().filter(|written| written.of == PartOf::Existence);
        let made: BTreeSet<&str> = made.map(|written| written.entity.as_str()).collect();
        let reads_any = |(_, derivation): &(DerivationAt, &derive::derivation::Derivation)| {
            let reach = derivation.kind.reach(&scene.schema).unwrap_or_default();
            reach.reads.iter().any(|read| writes.iter().any(|written| written.meets(read)))
                || derivation.kind.entities().iter().any(|entity| made.contains(entity))
        };
        let more: BTreeSet<DerivationAt> = scene
            .catalogue
            .positioned()
            .filter(|(at, _)| !positions.contains(at))
            .filter(reads_any)
            .map(|(at, _)| at)
            .collect();
        if more.is_empty() {
            return;
        }
        positions.extend(more);
    }
}
