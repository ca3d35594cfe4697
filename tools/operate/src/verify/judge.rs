//! Is an item what its sources give? `verify` and `why` ask here, so neither calls right what the other finds wrong.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derived::Items,
    kind::{Kind, Shape},
    part::PartOf,
    position::DerivationAt,
    refresh::{Look, Step, Verdict, step},
    sources::{Source, Sources},
    tally::Tally,
    whole::starts_anew,
    write::{Action, Update, Write},
};
use engine::{
    backoff::{GaveUp, Patience, describe},
    batch::Engine,
    counters::Target,
    input::caught,
    redrive::waiting::Waiting,
};
use keys::{counter::CounterKey, item::Item, key::Key, shown::revision_of, value::same};
use store::Store;

use super::{Finding, finding, occupied_key};
use crate::verify::candidates::ReadFrom;
use crate::verify::counts::{bucket_compared, counter_compared, only};

/// What was decided about an item.
pub(crate) struct Judged {
    pub(crate) look: Look,
    /// What would be written, and on whose behalf, if it differs.
    pub(crate) decided: Option<(Write, Vec<DerivationAt>)>,
    /// The derivation that would create the item, where one that is not Ripple's has its key.
    pub(crate) occupied_for: Option<DerivationAt>,
    /// What it was decided by.
    pub(super) read: BTreeSet<ReadFrom>,
}

/// Decides about items with an engine, which reads their sources.
pub(crate) struct Judge<'a, S> {
    pub(crate) engine: &'a Engine<S>,
}

impl<'a, S: Store> Judge<'a, S> {
    /// Looks at these items, which are among the sources: what would be written to each, if it differs, and all that it was
    /// decided by. What is not among the sources is read, for all of them together. Those that cannot be decided, since
    /// DynamoDB refuses to read a source, are given with its answer.
    pub(crate) async fn looks(
        &self,
        looks: Vec<Look>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(Vec<Judged>, Vec<(Look, String)>), GaveUp> {
        let begun = |look: Look| {
            let read = BTreeSet::from([ReadFrom::Item(look.item.clone())]);
            // A step asks for what it does not know, so each look has sources of its own.
            (Judged { look, decided: None, occupied_for: None, read }, Sources::default())
        };
        let mut left: Vec<(Judged, Sources)> = looks.into_iter().map(begun).collect();
        let (mut done, mut unread) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let (mut wanted, mut undecided) = (BTreeSet::<Source>::new(), Vec::new());
            for (mut it, mut own) in left {
                let held = sources.item(&it.look.item);
                let stepping = || loop {
                    match step(self.engine.schema(), self.engine.catalogue(), &it.look, held, &own) {
                        Step::Read(more) => {
                            it.read.extend(more.iter().cloned().map(ReadFrom::from));
                            let unknown =
                                more.into_iter().filter(|source| !own.add_known(self.engine.schema(), source, sources));
                            let unknown: Vec<_> = unknown.collect();
                            if !unknown.is_empty() {
                                return Step::Read(unknown);
                            }
                        }
                        decided @ Step::Decided(_) => return decided,
                    }
                };
                match caught("looking at what it asks for", stepping) {
                    Ok(Step::Read(more)) => {
                        wanted.extend(more.iter().cloned());
                        undecided.push((it, own, more));
                    }
                    Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                        it.read.extend(self.found_through(&it.look, held, &derivations, &it.read));
                        it.decided = Some((*write, derivations));
                        done.push(it);
                    }
                    Ok(Step::Decided(Verdict::Occupied(at))) => {
                        it.occupied_for = Some(at);
                        done.push(it);
                    }
                    // A kind that panics does so at the records, which are parked.
                    Ok(Step::Decided(Verdict::InStep)) | Err(_) => done.push(it),
                }
            }
            let refused = self.engine.read_each(wanted, sources, patience).await?;
            left = Vec::new();
            for (it, own, more) in undecided {
                match more.iter().find_map(|source| refused.get(source)) {
                    Some(error) => unread.push((it.look, describe(error))),
                    None => left.push((it, own)),
                }
            }
        }
        Ok((done, unread))
    }

    /// Does what differs wait for something that is under way?
    pub(crate) fn waits(&self, judged: &Judged, held: Option<&Item>, waiting: &Waiting) -> bool {
        let Judged { look, decided, occupied_for, read } = judged;
        let items = read.iter().filter_map(ReadFrom::item);
        let Some((_, derivations)) = decided else {
            return occupied_for.is_some_and(|at| waiting.has(&look.item, held, items, &[at]));
        };
        waiting.has(&look.item, held, items, derivations) || self.shows_parked(waiting, read, derivations)
    }

    /// What differs, as findings: one of a whole item, else one for each derivation whose part differs. What
    /// no derivation writes by its name is the maker's.
    pub(crate) fn findings(&self, judged: &Judged, held: Option<&Item>) -> Vec<Finding> {
        if let (Some(at), Some(held)) = (judged.occupied_for, held) {
            let name = self.engine.catalogue().name(at);
            return vec![occupied_key(self.engine.schema(), name, &judged.look.item, held)];
        }
        let Judged { look, decided: Some((write, derivations)), .. } = judged else { return Vec::new() };
        let makes =
            |at: &&DerivationAt| self.engine.catalogue().refresh(**at).is_some_and(derive::kind::Refresh::makes_item);
        let maker = derivations.iter().find(makes).or(derivations.first());
        let maker = maker.map_or("", |at| self.engine.catalogue().name(*at));
        let update = match &write.action {
            Action::Put(item) => return vec![finding(maker, &look.item, held.cloned(), Some(item.clone()))],
            Action::Delete | Action::Check => return vec![finding(maker, &look.item, held.cloned(), None)],
            Action::Update(update) => update,
        };
        let mut by_owner: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        // The type is written again with whatever else is.
        let is_held = |name: &str| same(held.and_then(|held| held.get(name)), update.set.get(name));
        let names = update.set.keys().filter(|name| !is_held(name));
        for name in names.chain(update.remove.iter().map(String::as_str)) {
            let owner = derivations.iter().find(|at| self.writes(**at, &look.entity, name));
            by_owner.entry(owner.map_or(maker, |at| self.engine.catalogue().name(*at))).or_default().push(name);
        }
        by_owner.into_iter().map(|(owner, names)| finding_in(owner, look, &names, update, held)).collect()
    }

    /// How a count differs from what its sources come to, with what is held of its target; other items may be among that.
    pub(crate) fn count(&self, target: &Target, tally: &Tally, held: &Items) -> Option<Finding> {
        let (engine, name) = (self.engine, target.derivation.as_str());
        let kind = self.kind(name)?;
        // What the platform deletes, and a cascade with the target, has no bound.
        if kind.is_history() && starts_anew(engine.catalogue(), name) {
            return None;
        }
        if let Shape::Rollup(rollup) = kind.shape() {
            let is_any = tally.count > 0;
            return is_any.then(|| bucket_compared(name, &target.item, tally, &rollup.form, held.get(&target.item)))?;
        }
        let is_of = |key: &Key| {
            CounterKey::parse(key).is_some_and(|it| it.target == target.item && it.derivation == target.derivation)
        };
        let shards = held.iter().filter(|(key, _)| is_of(key));
        let shards: Items = shards.map(|(key, shard)| (key.clone(), shard.clone())).collect();
        counter_compared(engine.schema(), kind, target, &shards, tally)
    }

    pub(super) fn kind(&self, derivation: &str) -> Option<&'a dyn Kind> {
        let catalogue = self.engine.catalogue();
        catalogue.derivation(catalogue.position(derivation)?).map(|derivation| derivation.kind.as_ref())
    }

    /// Does a derivation write this attribute by its name, or the revision of one that it writes?
    fn writes(&self, at: DerivationAt, entity: &str, name: &str) -> bool {
        self.engine.catalogue().writes(at).iter().filter(|part| part.entity == entity).any(
            |part| matches!(&part.of, PartOf::Attribute(written) if written == name || revision_of(written) == name),
        )
    }

    /// Does one of these derivations show a count that a parked change is of? The count may be in already, if the invocations
    /// died at its display; then the redrive shows it.
    fn shows_parked(&self, waiting: &Waiting, read: &BTreeSet<ReadFrom>, derivations: &[DerivationAt]) -> bool {
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let counts: Vec<&str> = refreshes.filter_map(|refresh| refresh.shows()).collect();
        read.iter().any(|source| match source {
            ReadFrom::Counters(item) => counts.iter().any(|derivation| {
                waiting.has_target(&Target { derivation: (*derivation).to_owned(), item: item.clone() })
            }),
            ReadFrom::Item(_) | ReadFrom::First(_) => false,
        })
    }

    /// The items through which the functions find this one when a source changes, as a mirror through which a copy is found.
    /// One that was made lately leads to this item by a record of its own.
    fn found_through(
        &self,
        look: &Look,
        held: Option<&Item>,
        derivations: &[DerivationAt],
        read: &BTreeSet<ReadFrom>,
    ) -> Vec<ReadFrom> {
        let schema = self.engine.schema();
        let Some(image) = held.and_then(|held| schema.image(&look.item, held)) else { return Vec::new() };
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let finds = refreshes.flat_map(|refresh| {
            read.iter().filter_map(ReadFrom::item).filter_map(move |source| refresh.find_from(schema, source))
        });
        let through = finds.map(|find| find.via).filter(|via| *via != look.entity);
        let key = |via: String| schema.entity(&via)?.build_of(|name| image.field(name).ok().flatten()).ok();
        through.filter_map(key).map(ReadFrom::Item).collect()
    }
}

/// What these attributes of an item are, and would be.
fn finding_in(derivation: &str, look: &Look, names: &[&str], update: &Update, held: Option<&Item>) -> Finding {
    let stored = held.map(|held| only(held, names)).unwrap_or_default();
    finding(derivation, &look.item, Some(stored), Some(only(&update.set, names)))
}
