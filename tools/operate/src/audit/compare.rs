//! The comparisons that need the whole table: displays of counts, items that exist while a count is above zero, mirrors
//! that do not give their source's key, and buckets of roll-ups.
//!
//! A refresh step decides all but buckets, as in a verification. It reads the count from a counter and the first of some
//! items from entries; here the counter is the total of the target's sources, and the entries are theirs. So what a
//! target shows is compared with its sources directly.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    kind::{Kind, Refresh, RefreshTarget, Shape},
    position::DerivationAt,
    refresh::Look,
    sources::{Source, Sources},
    tally::Sum,
    whole::starts_anew,
};
use engine::{backoff::Patience, batch::Engine, counters::Target};
use keys::{item::Item, key::Key};
use store::Store;

use super::kept::{After, KeptTotals, LeftForLater};
use crate::{
    failure::OperateError,
    verify::{Belief, Finding, Listener, UnreadableItem, VerifyEvent, judge::Judge},
};

/// Items that are compared together. Bounds memory.
const ITEMS_AT_ONCE: usize = 250;

/// Time limit for a call, in milliseconds.
const CALL_MS_MAX: u64 = 60_000;

/// The comparison of what a scan left for later.
pub(super) struct LaterComparison<'a, S> {
    pub(super) engine: &'a Engine<S>,
    pub(super) kept: &'a KeptTotals,
    pub(super) left: &'a LeftForLater<'a>,
    pub(super) listener: &'a mut dyn Listener,
    /// Values that the table cannot decide, by derivation.
    pub(super) unknown: BTreeMap<String, usize>,
    /// Values that were compared here and are no attribute or item of an entity, by derivation.
    pub(super) values: BTreeMap<String, usize>,
}

impl<S: Store> LaterComparison<'_, S> {
    pub(super) async fn run(&mut self) -> Result<(), OperateError> {
        self.displays().await?;
        let catalogue = self.engine.catalogue();
        let all: Vec<(DerivationAt, String)> =
            catalogue.positioned().map(|(at, derivation)| (at, derivation.name.clone())).collect();
        for (at, name) in all {
            let Some(derivation) = self.engine.catalogue().derivation(at) else { continue };
            match derivation.kind.shape() {
                Shape::Attributes(refresh) if refresh.makes_item() => {
                    let counts: Vec<String> = refresh.reads_counts().into_iter().map(str::to_owned).collect();
                    let entity = refresh.target().to_owned();
                    for (position, count) in counts.iter().enumerate() {
                        let before = counts.get(..position).unwrap_or_default();
                        self.missing_items(at, (count, before), &entity).await?;
                    }
                }
                Shape::Mirror(mirror) => {
                    let entity = mirror.target.clone();
                    if self.left.claiming_into(self.engine.catalogue(), &entity).contains(&at) {
                        self.claimed(&entity).await?;
                    }
                }
                Shape::Rollup(_) => self.buckets(&name)?,
                Shape::Attributes(_) | Shape::Count(_) | Shape::Cascade(_) => {}
            }
        }
        Ok(())
    }

    /// Compares what counts decide of the items that were scanned.
    async fn displays(&mut self) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let shown = self.kept.shown_after(&after, ITEMS_AT_ONCE)?;
            let Some((last, ..)) = shown.last() else { return Ok(()) };
            after = Some(last.clone());
            self.listener.counted(shown.len());
            let (mut sources, mut looks) = (Sources::default(), Vec::new());
            for (key, entity, item) in shown {
                let derivations = self.left.counting_into(self.engine.catalogue(), &entity);
                if derivations.is_empty() {
                    continue;
                }
                self.add_counters(&key, &derivations, &mut sources)?;
                self.add_entries(&key, &entity, &derivations, &mut sources)?;
                sources.add_item(key.clone(), Some(item));
                looks.push(Look { item: key, entity, derivations, named: BTreeSet::new() });
            }
            self.judge(looks, sources).await?;
        }
    }

    /// Adds the counters that a target would have.
    fn add_counters(
        &self,
        target: &Key,
        derivations: &BTreeSet<DerivationAt>,
        sources: &mut Sources,
    ) -> Result<(), OperateError> {
        let (schema, catalogue) = (self.engine.schema(), self.engine.catalogue());
        let refreshes = derivations.iter().filter_map(|at| catalogue.refresh(*at));
        let counts: BTreeSet<&str> = refreshes.flat_map(Refresh::reads_counts).collect();
        let counts: Vec<&str> = counts.into_iter().collect();
        let counters = self.kept.counters_of(schema, target, &counts)?;
        sources.add_counters(schema, target.clone(), &counters);
        Ok(())
    }

    /// Adds the entries that a target would have.
    fn add_entries(
        &self,
        target: &Key,
        entity: &str,
        derivations: &BTreeSet<DerivationAt>,
        sources: &mut Sources,
    ) -> Result<(), OperateError> {
        let (schema, catalogue) = (self.engine.schema(), self.engine.catalogue());
        let Some(definition) = schema.entity(entity) else { return Ok(()) };
        for refresh in derivations.iter().filter_map(|at| catalogue.refresh(*at)) {
            let target = RefreshTarget { key: target, definition, item: None, named: &BTreeSet::new(), hour: None };
            for source in refresh.sources(schema, &target) {
                if let Source::First(of) = source {
                    let entries = self.kept.entries(&of)?;
                    sources.add_first(of, entries);
                }
            }
        }
        Ok(())
    }

    /// Compares the items that should exist because their count is above zero, and were not scanned: those for which
    /// this is the first such count.
    async fn missing_items(
        &mut self,
        at: DerivationAt,
        (count, before): (&str, &[String]),
        entity: &str,
    ) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let targets = self.kept.totals_after(count, true, (&after, ITEMS_AT_ONCE))?;
            let Some((last, _)) = targets.last() else { return Ok(()) };
            after = Some(last.clone());
            let mut sources = self.read(targets.iter().map(|(key, _)| key.clone()).collect()).await?;
            let mut looks = Vec::new();
            for (key, _) in targets {
                let all = self.left.counting_into(self.engine.catalogue(), entity);
                self.add_counters(&key, &all, &mut sources)?;
                let is_above = |count: &String| sources.tally(&key, count).is_some_and(|tally| tally.count > 0);
                if before.iter().any(is_above) {
                    continue;
                }
                let derivations = BTreeSet::from([at]);
                looks.push(Look { item: key, entity: entity.to_owned(), derivations, named: BTreeSet::new() });
            }
            self.judge(looks, sources).await?;
        }
    }

    /// Compares mirrors with all sources that claim them.
    async fn claimed(&mut self, entity: &str) -> Result<(), OperateError> {
        let derivations = self.left.claiming_into(self.engine.catalogue(), entity);
        let mut after = After::None;
        loop {
            let mirrors = self.kept.claimed_after(entity, &after, ITEMS_AT_ONCE)?;
            let Some((last, _)) = mirrors.last() else { return Ok(()) };
            after = Some(last.clone());
            let sources = self.read(mirrors.iter().map(|(key, _)| key.clone()).collect()).await?;
            let look = |(item, named)| {
                let derivations = derivations.clone();
                Look { item, entity: entity.to_owned(), derivations, named }
            };
            self.judge(mirrors.into_iter().map(look).collect(), sources).await?;
        }
    }

    /// The current items under these keys.
    async fn read(&self, keys: Vec<Key>) -> Result<Sources, OperateError> {
        let (held, _) = self.engine.held_each(keys, self.patience()).await?;
        let mut sources = Sources::default();
        for (key, item) in held {
            sources.add_item(key, item);
        }
        Ok(sources)
    }

    /// Reports the items that differ, for the derivations of each refresh alone: the others were compared by the scan.
    async fn judge(&mut self, looks: Vec<Look>, mut sources: Sources) -> Result<(), OperateError> {
        let judge = Judge { engine: self.engine };
        let (judged, refused) = judge.looks(looks, &mut sources, self.patience()).await?;
        for (look, cause) in refused {
            for at in &look.derivations {
                let derivation = self.engine.catalogue().name(*at).to_owned();
                let (pk, sk) = (look.item.pk.clone(), look.item.sk.clone());
                let why = format!("what it is decided by cannot be read: {cause}");
                self.listener.report(VerifyEvent::Unreadable(UnreadableItem { derivation, pk, sk, why }))?;
            }
        }
        for judged in judged {
            let held = sources.item(&judged.look.item);
            let catalogue = self.engine.catalogue();
            let is_asked =
                |name: &str| catalogue.position(name).is_some_and(|at| judged.look.derivations.contains(&at));
            let findings = judge.findings(&judged, held).into_iter().filter(|finding| is_asked(&finding.derivation));
            let findings: Vec<Finding> = findings.collect();
            for finding in findings {
                self.report(finding)?;
            }
        }
        Ok(())
    }

    /// Reports a difference, unless it may be right: a count by inserts alone may exceed its sources.
    fn report(&mut self, finding: Finding) -> Result<(), OperateError> {
        let catalogue = self.engine.catalogue();
        let refresh = catalogue.position(&finding.derivation).and_then(|at| catalogue.refresh(at));
        let counts = refresh.map(Refresh::reads_counts).unwrap_or_default();
        let counts = counts.into_iter().filter_map(|count| catalogue.derivation(catalogue.position(count)?));
        let mut histories = counts.filter(|count| count.kind.is_history());
        if histories.any(|count| exceeds(&finding) || starts_anew(catalogue, &count.name)) {
            *self.unknown.entry(finding.derivation).or_default() += 1;
            return Ok(());
        }
        Ok(self.listener.report(VerifyEvent::Finding(finding, unbelieved()))?)
    }

    /// Compares the number of readings in each bucket of a roll-up with its sources.
    fn buckets(&mut self, name: &str) -> Result<(), OperateError> {
        let mut after = After::None;
        loop {
            let targets = self.kept.totals_after(name, false, (&after, ITEMS_AT_ONCE))?;
            let Some((last, _)) = targets.last() else { return Ok(()) };
            after = Some(last.clone());
            self.listener.counted(targets.len());
            *self.values.entry(name.to_owned()).or_default() += targets.len();
            for (item, tally) in targets {
                let held = self.kept.bucket(&item)?;
                let target = Target { derivation: name.to_owned(), item };
                let judge = Judge { engine: self.engine };
                if let Some(finding) = judge.count(&target, &tally, &held) {
                    self.listener.report(VerifyEvent::Finding(finding, unbelieved()))?;
                } else if !self.is_equal(&target, tally.count, held.get(&target.item)) {
                    *self.unknown.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
    }

    /// True if a bucket has exactly this number of readings.
    fn is_equal(&self, target: &Target, count: i64, bucket: Option<&Item>) -> bool {
        let kind: Option<&dyn Kind> = self
            .engine
            .catalogue()
            .position(&target.derivation)
            .and_then(|at| self.engine.catalogue().derivation(at))
            .map(|derivation| derivation.kind.as_ref());
        let Some(Shape::Rollup(rollup)) = kind.map(Kind::shape) else { return false };
        let stored = bucket.and_then(|bucket| bucket.get(&rollup.form.count)).and_then(Sum::of);
        stored.is_some_and(|stored| stored.to_string() == count.to_string())
            && !starts_anew(self.engine.catalogue(), &target.derivation)
    }

    fn patience(&self) -> Patience<'_> {
        let deadline_ms = self.engine.clock().now_ms().saturating_add(CALL_MS_MAX);
        Patience::new(self.engine.clock(), deadline_ms)
    }
}

/// True if the stored value is greater than the derived one. Then expired items may be the reason.
fn exceeds(finding: &Finding) -> bool {
    let number = |item: &Option<Item>| -> Option<Sum> { item.as_ref()?.values().find_map(Sum::of) };
    match (number(&finding.stored), number(&finding.derived)) {
        (Some(stored), derived) => stored > derived.unwrap_or_default(),
        (None, _) => false,
    }
}

/// No function follows the table, so nothing proves that a difference was handled. A second pass confirms it.
pub(super) fn unbelieved() -> Belief {
    Belief { handled_ms: 0, until_ms: 0 }
}
