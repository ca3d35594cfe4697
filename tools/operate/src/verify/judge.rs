//! Decides whether an item matches its sources. `verify` and `why` share this, so they never disagree.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    claims::{CLAIMS, claims},
    derived::Items,
    kind::{Kind, Refresh, RefreshTarget, Shape},
    part::PartOf,
    position::DerivationAt,
    refresh::{Look, Step, Verdict, step},
    schema::{Image, Unreadable},
    sources::{Source, Sources},
    tally::Tally,
    whole::starts_anew,
    write::{Action, Update, Write},
};
use engine::{
    account::Target,
    backoff::{GaveUp, Patience, describe},
    batch::Engine,
    input::caught,
    redrive::waiting::{PendingWork, Waiting},
};
use keys::{
    counter::{COUNTER, CounterKey},
    item::Item,
    key::Key,
    shown::revision_of,
    value::same,
};
use store::Store;

use super::{Finding, finding, occupied_key};
use crate::verify::counts::{bucket_compared, counter_compared, is_broken_bucket, only};

/// The decision about an item.
pub(crate) struct Judged {
    pub(crate) look: Look,
    /// The write that would correct it and the derivations behind it, if it differs.
    pub(crate) decided: Option<(Write, Vec<DerivationAt>)>,
    /// The derivation that would create the item, if a foreign item occupies its key.
    pub(crate) occupied_for: Option<DerivationAt>,
    /// What the decision depends on.
    pub(super) read: BTreeSet<Source>,
}

/// Decides about items with an engine, which reads their sources.
pub(crate) struct Judge<'a, S> {
    pub(crate) engine: &'a Engine<S>,
}

impl<'a, S: Store> Judge<'a, S> {
    /// Checks these items, which are among the sources. Returns the write that each needs if it differs, and everything
    /// that decided it. Missing sources are read together. Items whose sources DynamoDB refuses to read are returned
    /// with its error.
    pub(crate) async fn looks(
        &self,
        looks: Vec<Look>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(Vec<Judged>, Vec<(Look, String)>), GaveUp> {
        let begun = |look: Look| {
            let read = BTreeSet::from([Source::Item(look.item.clone())]);
            // Each item has its own sources, because a refresh step asks for the sources it does not know.
            (Judged { look, decided: None, occupied_for: None, read }, Sources::default())
        };
        let mut left: Vec<(Judged, Sources)> = looks.into_iter().map(begun).collect();
        let (mut done, mut unread) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let (mut wanted, mut undecided) = (BTreeSet::<Source>::new(), Vec::new());
            for (mut it, mut own) in left {
                let stored = sources.item(&it.look.item);
                let stepping = || loop {
                    match step(self.engine.schema(), self.engine.catalogue(), &it.look, stored, &own) {
                        Step::Read(more) => {
                            it.read.extend(more.iter().cloned());
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
                        it.read.extend(self.found_through(&it.look, stored, &derivations));
                        it.decided = Some((*write, derivations));
                        done.push(it);
                    }
                    Ok(Step::Decided(Verdict::Occupied(at))) => {
                        it.occupied_for = Some(at);
                        done.push(it);
                    }
                    // If a kind panics, it also panics when handling records, and these are parked.
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

    /// The pending work that may still resolve the difference, if there is any.
    pub(crate) fn pending(&self, judged: &Judged, stored: Option<&Item>, waiting: &Waiting) -> Option<PendingWork> {
        let Judged { look, decided, occupied_for, read } = judged;
        let Some((_, derivations)) = decided else {
            return occupied_for.and_then(|at| waiting.pending(&look.item, stored, read, &[at]));
        };
        let pending = waiting.pending(&look.item, stored, read, derivations);
        pending.or_else(|| self.shows_parked(waiting, read, derivations).then_some(PendingWork::Parked))
    }

    /// The differences as findings: one for a whole item, else one for each derivation whose part differs. An attribute
    /// that no derivation writes by name belongs to the derivation that creates the item.
    pub(crate) fn findings(&self, judged: &Judged, stored: Option<&Item>) -> Vec<Finding> {
        if let (Some(at), Some(stored)) = (judged.occupied_for, stored) {
            let name = self.engine.catalogue().name(at);
            return vec![occupied_key(self.engine.schema(), name, &judged.look.item, stored)];
        }
        let Judged { look, decided: Some((write, derivations)), .. } = judged else { return Vec::new() };
        let makes = |at: &&DerivationAt| self.engine.catalogue().refresh(**at).is_some_and(Refresh::makes_item);
        let maker = derivations.iter().find(makes).or(derivations.first());
        let maker = maker.map_or("", |at| self.engine.catalogue().name(*at));
        let update = match &write.action {
            Action::Put(item) => return vec![finding(maker, &look.item, stored.cloned(), Some(item.clone()))],
            Action::Delete | Action::Check => return vec![finding(maker, &look.item, stored.cloned(), None)],
            Action::Update(update) => update,
        };
        let mut by_owner: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        // The type is always written along with other attributes.
        let is_held = |name: &str| same(stored.and_then(|stored| stored.get(name)), update.set.get(name));
        let names = update.set.keys().filter(|name| !is_held(name));
        for name in names.chain(update.remove.iter().map(String::as_str)) {
            let owner = derivations.iter().find(|at| self.writes(**at, &look.entity, name));
            by_owner.entry(owner.map_or(maker, |at| self.engine.catalogue().name(*at))).or_default().push(name);
        }
        by_owner.into_iter().map(|(owner, names)| finding_in(owner, look, &names, update, stored)).collect()
    }

    /// The finding if a count differs from the total of its sources. `stored` has the stored items of its target, and may
    /// contain other items.
    pub(crate) fn count(&self, target: &Target, tally: &Tally, stored: &Items) -> Option<Finding> {
        let (engine, name) = (self.engine, target.derivation.as_str());
        let kind = self.kind(name)?;
        // If DynamoDB expires the items, or a cascade deletes them with the target, no bound holds.
        if kind.is_history() && starts_anew(engine.catalogue(), name) {
            return None;
        }
        if let Shape::Rollup(rollup) = kind.shape() {
            let stored = stored.get(&target.item);
            let is_any = tally.count > 0 || stored.is_some_and(|stored| is_broken_bucket(&rollup.form, stored));
            return is_any.then(|| bucket_compared(name, &target.item, tally, &rollup.form, stored))?;
        }
        let is_of = |key: &Key| {
            CounterKey::parse(key).is_some_and(|it| it.target == target.item && it.derivation == target.derivation)
        };
        let shards = stored.iter().filter(|(key, _)| is_of(key));
        let shards: Items = shards.map(|(key, shard)| (key.clone(), shard.clone())).collect();
        counter_compared(engine.schema(), kind, target, &shards, tally)
    }

    pub(super) fn kind(&self, derivation: &str) -> Option<&'a dyn Kind> {
        let catalogue = self.engine.catalogue();
        catalogue.derivation(catalogue.position(derivation)?).map(|derivation| derivation.kind.as_ref())
    }

    /// True if a derivation writes this attribute by name, or it is the revision of an attribute that it writes.
    fn writes(&self, at: DerivationAt, entity: &str, name: &str) -> bool {
        self.engine.catalogue().writes(at).iter().filter(|part| part.entity == entity).any(
            |part| matches!(&part.of, PartOf::Attribute(written) if written == name || revision_of(written) == name),
        )
    }

    /// True if one of these derivations displays a count with a parked change. The change may be counted already, if
    /// the invocations crashed at its display; then the redrive updates the display.
    fn shows_parked(&self, waiting: &Waiting, read: &BTreeSet<Source>, derivations: &[DerivationAt]) -> bool {
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let counts: Vec<&str> = refreshes.filter_map(|refresh| refresh.shows()).collect();
        read.iter().any(|source| match source {
            Source::Counters(item) => counts.iter().any(|derivation| {
                waiting.has_target(&Target { derivation: (*derivation).to_owned(), item: item.clone() })
            }),
            Source::Item(_) | Source::First(_) => false,
        })
    }

    /// The items through which the functions find this one when a source changes, such as a mirror that leads to a
    /// copy. A newly created one leads to this item by its own record.
    fn found_through(&self, look: &Look, stored: Option<&Item>, derivations: &[DerivationAt]) -> Vec<Source> {
        let schema = self.engine.schema();
        let Some(image) = stored.and_then(|stored| schema.image(&look.item, stored)) else { return Vec::new() };
        let refreshes = derivations.iter().filter_map(|at| self.engine.catalogue().refresh(*at));
        let through = refreshes.filter_map(Refresh::found).map(|found| &found.via).filter(|via| **via != look.entity);
        let key = |via: &String| schema.entity(via)?.build_of(|name| image.field(name).ok().flatten()).ok();
        through.filter_map(key).map(Source::Item).collect()
    }
}

/// The finding with the stored and the derived values of these attributes.
fn finding_in(derivation: &str, look: &Look, names: &[&str], update: &Update, held: Option<&Item>) -> Finding {
    let stored = held.map(|held| only(held, names)).unwrap_or_default();
    finding(derivation, &look.item, Some(stored), Some(only(&update.set, names)))
}

// ---- Findings about an item by itself: wrong index keys, invalid data, mirrors that several items claim, and
// unexplained counters ----

/// Name of the derivation in a finding about an index key, which the item's writer sets.
pub const INDEX_KEYS: &str = "index keys";

/// The findings about an item, and what decided them besides the item.
#[derive(Debug, Default)]
pub(crate) struct SingleFinding {
    pub(crate) findings: Vec<Finding>,
    pub(super) read: BTreeSet<Source>,
}

impl<S: Store> Judge<'_, S> {
    /// The findings about an item. Reads only what is missing in the sources, and adds it to them.
    pub(crate) async fn single(
        &self,
        key: &Key,
        item: &Item,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<SingleFinding, GaveUp> {
        let mut found = SingleFinding::default();
        let Some(image) = self.engine.schema().image(key, item) else { return Ok(found) };
        found.findings.extend(self.index_keys(&image));
        found.findings.extend(self.unexplained(&image));
        found.findings.extend(self.claimed_twice(&image));
        for (at, derivation) in self.engine.catalogue().positioned() {
            let target = derivation.kind.refresh().filter(|refresh| image.is(refresh.target()));
            if let Some(refresh) = target.filter(|refresh| refresh.has_flaws() && self.lacks_part(&image, at)) {
                let items = self.above(&image, refresh, (sources, &mut found.read), patience).await?;
                let flaws = caught("looking for flaws", || refresh.flaws(self.engine.schema(), &items));
                let own = flaws.unwrap_or_default().into_iter().filter(|flaw| flaw.key == *key);
                found.findings.extend(own.map(|flaw| {
                    let stored = Some(only(item, &[&flaw.attribute]));
                    Finding { flaw: Some(flaw.why), ..finding(&derivation.name, key, stored, Some(Item::new())) }
                }));
            }
        }
        Ok(found)
    }

    /// Finding about index keys that the item's writer sets, if they do not match its other attributes.
    pub(crate) fn index_keys(&self, image: &Image<'_>) -> Option<Finding> {
        if image.definition.derived {
            return None;
        }
        let schema = self.engine.schema();
        let fields = image.definition.fields(image.key, image.item)?;
        let wanted = image.definition.index_attributes(&schema.layout, &fields);
        let differing: Vec<_> =
            wanted.into_iter().filter(|(name, value)| !same(image.item.get(name), value.as_ref())).collect();
        // Where a field of the key is unreadable, the item is listed as such: the correct key is known once the application
        // has corrected it.
        let is_of_key = |why: &Unreadable| image.definition.indexes.iter().any(|index| index.key.holds(&why.attribute));
        let is_unreadable = || {
            let mut derivations = self.engine.catalogue().derivations();
            image.long_index_key().is_some()
                || derivations.any(|it| it.unreadable(schema, image).as_ref().is_some_and(is_of_key))
        };
        if differing.is_empty() || is_unreadable() {
            return None;
        }
        let names: Vec<&str> = differing.iter().map(|(name, _)| name.as_str()).collect();
        let stored = only(image.item, &names);
        let derived = differing.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        Some(finding(INDEX_KEYS, image.key, Some(stored), Some(derived)))
    }

    /// Finding about a counter of an undeclared derivation.
    fn unexplained(&self, image: &Image<'_>) -> Option<Finding> {
        let counter = CounterKey::parse(image.key).filter(|_| image.is(COUNTER))?;
        let is_known = self.engine.catalogue().position(&counter.derivation).is_some();
        (!is_known).then(|| finding(&counter.derivation, image.key, Some(image.item.clone()), None))
    }

    /// Finding about a mirror that several existing items claim.
    fn claimed_twice(&self, image: &Image<'_>) -> Option<Finding> {
        let claims = claims(self.engine.schema(), image.item);
        let mut parts = self.engine.catalogue().refreshing(&image.definition.name);
        let maker = parts.find(|at| self.engine.catalogue().refresh(*at).is_some_and(Refresh::makes_item))?;
        if claims.len() < 2 {
            return None;
        }
        let all: Vec<String> = claims.iter().map(ToString::to_string).collect();
        let why = format!("several items claim it, and the last of them has it: {}", all.join(", "));
        let stored = Some(only(image.item, &[CLAIMS]));
        let name = self.engine.catalogue().name(maker);
        Some(Finding { flaw: Some(why), ..finding(name, image.key, stored, Some(Item::new())) })
    }

    /// True if an item lacks an attribute that a derivation writes. Nothing is derived from invalid data.
    fn lacks_part(&self, image: &Image<'_>, derivation: DerivationAt) -> bool {
        let kind = self.engine.catalogue().derivation(derivation).map(|derivation| &derivation.kind);
        let reach = kind.and_then(|kind| kind.reach(self.engine.schema()).ok()).unwrap_or_default();
        let is_lacking = |name: &str| image.item.get(name).is_none();
        reach.writes.iter().any(|part| image.is(&part.entity) && part.of.attribute().is_some_and(is_lacking))
    }

    /// An item with all its ancestors, as far as a derivation reads them.
    async fn above(
        &self,
        image: &Image<'_>,
        refresh: &dyn Refresh,
        (sources, read): (&mut Sources, &mut BTreeSet<Source>),
        patience: Patience<'_>,
    ) -> Result<Items, GaveUp> {
        let mut items = Items::from([(image.key.clone(), image.item.clone())]);
        let mut next = vec![image.key.clone()];
        while let Some(key) = next.pop() {
            let Some(definition) = self.engine.schema().entity(refresh.target()) else { break };
            let item = items.get(&key);
            let target = RefreshTarget { key: &key, definition, item, named: &BTreeSet::new(), hour: sources.hour() };
            for source in refresh.sources(self.engine.schema(), &target) {
                read.insert(source.clone());
                let Source::Item(above) = source else { continue };
                if items.contains_key(&above) {
                    continue;
                }
                let wanted = Source::Item(above.clone());
                if !sources.knows(&wanted) {
                    self.engine.read(BTreeSet::from([wanted]), sources, patience).await?;
                }
                if let Some(item) = sources.item(&above) {
                    items.insert(above.clone(), item.clone());
                    next.push(above);
                }
            }
        }
        Ok(items)
    }
}
