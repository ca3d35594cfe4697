//! The derived values of an item.
//!
//! *Level-triggered*: what a derivation writes into the item, its sources, and the correct value. *Additive*: a count
//! of the item, its counters with their watermarks, and what each source adds.

use std::collections::BTreeSet;

use derive::{
    clock,
    derivation::Derivation,
    derived::Items,
    gathering::Gathering,
    kind::{Computed, Refresh, RefreshTarget, Shape},
    outline::FromEntries,
    position::DerivationAt,
    query::Query,
    refresh::{Look, owned},
    schema::Schema,
    sources::{FirstOf, Source, Sources, sums},
    tally::{Sum, Tally},
    write::{Action, Table, Update},
};
use engine::{
    account::Target,
    ledger::watermarks::{Watermark, watermarks},
};
use keys::{
    counter::{CounterKey, REVISION, SPREAD, SUM, VALUE},
    item::Item,
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    OperateError,
    verify::{
        Finding,
        counts::{attributes, is_broken, only},
        judge::Judge,
    },
    why::{AskedAbout, Explainer, ValueState},
};

/// A derivation's part of an item.
#[derive(Debug)]
pub struct ExplainedValue {
    /// The derivation.
    pub derivation: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its declaration, in words.
    pub terms: Vec<String>,
    /// What it reads in the item itself.
    pub own: Item,
    /// What it reads elsewhere.
    pub sources: Vec<ExplainedSource>,
    /// What it writes.
    pub attributes: Vec<ExplainedAttribute>,
    /// For a derivation that creates the whole item: whether it should exist.
    pub should_exist: Option<bool>,
    /// Whether it matches its definition.
    pub state: ValueState,
    /// The count that it displays.
    pub(super) shows: Option<String>,
}

/// A source of a derivation.
#[derive(Debug)]
pub struct ExplainedSource {
    /// The item; `None` for a search that finds none.
    pub key: Option<Key>,
    /// Its role: an item, a counter, or the first item of a collection.
    pub role: SourceRole,
    /// True if it exists.
    pub is_there: bool,
    /// The attributes of it that the derivation reads, as far as it has them.
    pub gives: Item,
}

/// Role of a source.
#[derive(Debug)]
pub enum SourceRole {
    /// An item that the explained item names.
    Item,
    /// The counter of this derivation, with its shards added up.
    Counter(String),
    /// The first item that a search finds.
    First(FirstOf),
}

/// An attribute that a derivation writes.
#[derive(Debug)]
pub struct ExplainedAttribute {
    /// Its name.
    pub name: String,
    /// As it is stored.
    pub stored: Option<AttributeValue>,
    /// As the definition gives it.
    pub derived: Option<AttributeValue>,
    /// True if the stored value matches the definition. A missing attribute may equal 0.
    pub is_right: bool,
}

/// Why it cannot be decided whether a missing item should exist.
const UNTOLD: &str = "it is not there, and its key does not give the items that it is made of";

/// All derived parts of an item, judged together.
struct JudgedItem {
    sources: Sources,
    /// The item with all its parts corrected.
    becoming: Option<Item>,
    /// The derivations whose part differs.
    differing: BTreeSet<DerivationAt>,
    /// Invalid data, which only the application can correct, among other findings.
    flaws: Vec<Finding>,
    /// True if pending work may still resolve the difference.
    waits: bool,
    /// The derivation that would create the item, if a foreign item occupies its key.
    occupied_for: Option<DerivationAt>,
}

impl JudgedItem {
    fn state(&self, at: DerivationAt, name: &str) -> ValueState {
        let flaw = self.flaws.iter().filter(|finding| finding.derivation == name).find_map(|it| it.flaw.clone());
        match (flaw, self.differing.contains(&at)) {
            (_, true) if self.waits => ValueState::Waits,
            (_, true) => ValueState::Differs,
            (Some(why), false) => ValueState::Flawed(why),
            (None, false) => ValueState::Right,
        }
    }
}

impl<S: Store> Explainer<'_, S> {
    /// What level-triggered derivations write into the item. A missing item has at most the derivation that creates it.
    pub(super) async fn values(
        &self,
        entities: &[String],
        item: Option<&Item>,
        asked: &mut AskedAbout,
    ) -> Result<Vec<ExplainedValue>, OperateError> {
        let (mut values, catalogue) = (Vec::new(), self.engine.catalogue());
        for entity in entities {
            let is_asked = |at: &DerivationAt| {
                let makes_item = catalogue.refresh(*at).is_some_and(Refresh::makes_item);
                self.writes_asked(*at) && (item.is_some() || makes_item)
            };
            let parts: Vec<DerivationAt> = catalogue.refreshing(entity).filter(is_asked).collect();
            if parts.is_empty() {
                continue;
            }
            let judged = self.judged(entity, item).await?;
            for at in parts {
                if let (Some(derivation), Some(refresh)) = (catalogue.derivation(at), catalogue.refresh(at)) {
                    values.push(self.value(derivation, (at, refresh), item, &judged, asked)?);
                }
            }
        }
        for entity in self.entities_that_wait(item) {
            let judged = self.judged(&entity, item).await?;
            let Some(at) = judged.occupied_for.filter(|at| self.writes_asked(*at)) else { continue };
            if let (Some(derivation), Some(refresh)) = (catalogue.derivation(at), catalogue.refresh(at)) {
                // For the derived item, the key counts as free.
                values.push(self.value(derivation, (at, refresh), None, &judged, asked)?);
            }
        }
        Ok(values)
    }

    /// Judges all derived parts of the item, as a verification does: a part may build on another that is wrong.
    async fn judged(&self, entity: &str, item: Option<&Item>) -> Result<JudgedItem, OperateError> {
        let (key, judge) = (&self.request.key, Judge { engine: self.engine });
        let derivations = self.engine.catalogue().refreshing(entity).collect();
        let look = Look { item: key.clone(), entity: entity.to_owned(), derivations, named: BTreeSet::new() };
        let mut sources = Sources::default();
        sources.add_item(key.clone(), item.cloned());
        let (mut judged, refused) = judge.looks(vec![look], &mut sources, self.patience()).await?;
        if let Some((_, cause)) = refused.into_iter().next() {
            return Err(OperateError::Refused(format!("what {key} is derived from cannot be read: {cause}")));
        }
        let judged = judged.pop();
        let mut becoming = item.cloned();
        let mut differing = BTreeSet::new();
        if let Some((write, derivations)) = judged.as_ref().and_then(|judged| judged.decided.as_ref()) {
            differing.extend(derivations.iter().copied());
            match &write.action {
                Action::Put(whole) => becoming = Some(whole.clone()),
                // An item that should not exist has no correct part.
                Action::Delete | Action::Check => differing.extend(self.engine.catalogue().refreshing(entity)),
                Action::Update(Update { set, remove, .. }) => {
                    let becoming = becoming.get_or_insert_default();
                    becoming.extend(set.iter().map(|(name, value)| (name.to_owned(), value.clone())));
                    for name in remove {
                        becoming.remove(name);
                    }
                }
            }
        }
        let occupied_for = judged.as_ref().and_then(|judged| judged.occupied_for);
        let mut flaws = match item {
            Some(item) => judge.single(key, item, &mut sources, self.patience()).await?.findings,
            None => Vec::new(),
        };
        let waits = match &judged {
            Some(judged) if !differing.is_empty() => judge.pending(judged, item, self.waiting().await?).is_some(),
            _ => false,
        };
        let judged = judged.iter().filter(|judged| judged.occupied_for.is_some());
        flaws.extend(judged.flat_map(|judged| judge.findings(judged, item)));
        Ok(JudgedItem { sources, becoming, differing, flaws, waits, occupied_for })
    }

    fn value(
        &self,
        derivation: &Derivation,
        (at, refresh): (DerivationAt, &dyn Refresh),
        item: Option<&Item>,
        judged: &JudgedItem,
        asked: &mut AskedAbout,
    ) -> Result<ExplainedValue, OperateError> {
        let (schema, key, sources) = (self.schema(), &self.request.key, &judged.sources);
        let Some(definition) = schema.entity(refresh.target()) else {
            return Err(OperateError::Refused(format!("there is no entity {}", refresh.target())));
        };
        // A derivation that creates items reads the stored item; the others read it with its corrections.
        let built_on = if refresh.makes_item() { item } else { judged.becoming.as_ref() };
        let target = RefreshTarget { key, definition, item: built_on, named: &BTreeSet::new(), hour: sources.hour() };
        let wanted = refresh.sources(schema, &target);
        // A missing item may be the only one that names its sources.
        let is_untold = item.is_none() && wanted.is_empty();
        let (should_exist, wanted_parts) = match refresh.compute(schema, &target, sources) {
            _ if is_untold => (None, Vec::new()),
            Computed::Attributes(wanted) => (None, wanted),
            Computed::Item(None) => (Some(false), Vec::new()),
            Computed::Item(Some(made)) => (Some(true), owned(definition, &made, item)),
        };
        let attributes: Vec<ExplainedAttribute> = wanted_parts
            .into_iter()
            .filter(|wanted| ![&schema.layout.pk, &schema.layout.sk].contains(&&wanted.name))
            .map(|wanted| ExplainedAttribute {
                is_right: wanted.is_held_by(item),
                stored: item.and_then(|item| item.get(&wanted.name).cloned()),
                name: wanted.name,
                derived: wanted.value,
            })
            .collect();
        let explained: Vec<ExplainedSource> = wanted
            .into_iter()
            .flat_map(|source| self.explained_sources(derivation, refresh, source, sources))
            .collect();
        asked.sources.extend(explained.iter().filter_map(|source| source.key.clone()));
        asked.derivations.insert(derivation.name.clone());
        let (kind, terms) = match FromEntries::of(schema, self.engine.catalogue(), derivation) {
            Some(of) if of.extreme.is_some() => ("extreme", vec![of.order]),
            _ => (derivation.kind.name(), derivation.kind.outline(schema).terms),
        };
        Ok(ExplainedValue {
            derivation: derivation.label().to_owned(),
            kind,
            terms,
            own: item.map(|item| self.read_of(derivation, refresh.target(), item)).unwrap_or_default(),
            sources: explained,
            attributes,
            should_exist,
            state: if is_untold {
                ValueState::Undecided(UNTOLD.to_owned())
            } else {
                judged.state(at, &derivation.name)
            },
            shows: refresh.shows().map(str::to_owned),
        })
    }

    /// The attributes of an entity's item that a derivation reads.
    fn read_of(&self, derivation: &Derivation, entity: &str, item: &Item) -> Item {
        let reads = derivation.kind.reach(self.schema()).unwrap_or_default().reads;
        let names = reads.iter().filter(|part| part.entity == entity).filter_map(|part| part.of.attribute());
        names.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect()
    }

    /// The items read for a source: one item, or the first few of a search.
    fn explained_sources(
        &self,
        derivation: &Derivation,
        refresh: &dyn Refresh,
        source: Source,
        sources: &Sources,
    ) -> Vec<ExplainedSource> {
        let schema = self.schema();
        let read = |key: &Key, item: Option<&Item>| {
            let image = item.and_then(|item| schema.image(key, item));
            image.map(|image| self.read_of(derivation, &image.definition.name, image.item)).unwrap_or_default()
        };
        match source {
            Source::Item(key) => {
                let item = sources.item(&key);
                let gives = match (item, sources.hour()) {
                    (Some(_), Some(hour)) if key == clock::key() => clock::showing(hour),
                    _ => read(&key, item),
                };
                vec![ExplainedSource { is_there: item.is_some(), gives, key: Some(key), role: SourceRole::Item }]
            }
            Source::Counters(target) => {
                let explained = |stored: &str| {
                    let tally = sources.tally(&target, stored);
                    let gives = tally.map(|tally| attributes(tally, !tally.sum.is_zero())).unwrap_or_default();
                    let role = SourceRole::Counter(self.engine.catalogue().label_of(stored).to_owned());
                    ExplainedSource { is_there: tally.is_some(), gives, key: Some(target.clone()), role }
                };
                refresh.reads_counts().into_iter().map(explained).collect()
            }
            Source::First(of) => {
                let explained = |item: &Item| {
                    let key = schema.layout.key(item);
                    let gives = key.as_ref().map(|key| read(key, Some(item))).unwrap_or_default();
                    ExplainedSource { is_there: true, gives, key, role: SourceRole::First(of.clone()) }
                };
                let found: Vec<_> = sources.first(schema, &of).into_iter().map(explained).collect();
                if found.is_empty() {
                    let gives = Item::new();
                    return vec![ExplainedSource { is_there: false, gives, key: None, role: SourceRole::First(of) }];
                }
                found
            }
        }
    }
}

// ---- Counts ----

/// A derivation's count of an item.
#[derive(Debug)]
pub struct ExplainedCounter {
    /// The derivation.
    pub derivation: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its declaration, in words.
    pub terms: Vec<String>,
    /// The item that it counts for.
    pub target: Key,
    /// The items that store the count: the counter's home and satellites, or the bucket of a roll-up.
    pub items: Vec<CounterItem>,
    /// Their total.
    pub stored: Tally,
    /// The sources.
    pub sources: CounterSources,
    /// True if sources may be gone, so that they give only a lower bound.
    pub is_history: bool,
    /// Whether it matches its definition.
    pub state: ValueState,
}

/// An item that stores a count.
#[derive(Debug)]
pub struct CounterItem {
    /// Its key.
    pub key: Key,
    /// Its content.
    pub tally: Tally,
    /// Its attributes, if one of them cannot be read.
    pub unreadable: Option<Item>,
    /// How often its watermarks have moved; `None` with receipts.
    pub revision: Option<String>,
    /// Of the home of a counter that has spread: the number of its satellites.
    pub satellites: Option<u32>,
    /// The last counted change of each stream shard; empty with receipts.
    pub watermarks: Vec<Watermark>,
}

/// The sources of a count, as far as they are read.
#[derive(Debug, Default)]
pub struct CounterSources {
    /// The query that finds them; `None` if no query does.
    pub query: Option<Query>,
    /// The first of those that add something, with their amounts.
    pub listed: Vec<(Key, Tally)>,
    /// Number of sources that add something, of those that were read.
    pub n_sources: usize,
    /// Number of unreadable sources, which add nothing.
    pub n_unreadable: usize,
    /// Their total.
    pub tally: Tally,
    /// True if all of them were read.
    pub is_whole: bool,
}

impl<S: Store> Explainer<'_, S> {
    /// The counts of the item, or of the target if the item is a counter. If an attribute is requested, only the counts
    /// that it displays.
    pub(super) async fn counters(
        &self,
        entities: &[String],
        values: &[ExplainedValue],
        item: Option<&Item>,
        asked: &mut AskedAbout,
    ) -> Result<Vec<ExplainedCounter>, OperateError> {
        let itself = self.counter_itself(entities);
        let target = itself.as_ref().map_or(&self.request.key, |counter| &counter.target).clone();
        let stored = self.engine.all_counters_of(&target, self.patience()).await?;
        let has_counter =
            |name: &str| stored.keys().filter_map(CounterKey::parse).any(|counter| counter.derivation == name);
        let is_shown = |name: &str| values.iter().any(|value| value.shows.as_deref() == Some(name));
        let mut explained = Vec::new();
        for (at, derivation) in self.engine.catalogue().positioned() {
            let name = &derivation.name;
            let (is_about, bucket) = match derivation.kind.shape() {
                Shape::Count(count) => (has_counter(name) || entities.contains(&count.target), None),
                Shape::Rollup(rollup) => (entities.contains(&rollup.form.entity), item.filter(|_| itself.is_none())),
                Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => continue,
            };
            let is_asked = match (&itself, &self.request.attribute) {
                (Some(counter), _) => counter.derivation == *name,
                (None, None) => is_about,
                (None, Some(attribute)) => is_about && (is_shown(name) || bucket_has(derivation, attribute)),
            };
            if is_asked {
                explained.push(self.counter((at, derivation), &target, (&stored, bucket), asked).await?);
            }
        }
        Ok(explained)
    }

    async fn counter(
        &self,
        (at, derivation): (DerivationAt, &Derivation),
        target: &Key,
        (held, bucket): (&Items, Option<&Item>),
        asked: &mut AskedAbout,
    ) -> Result<ExplainedCounter, OperateError> {
        let (schema, name, is_history) = (self.schema(), &derivation.name, derivation.kind.is_history());
        let items = match derivation.kind.shape() {
            Shape::Rollup(rollup) => {
                let number = |attribute: &String| bucket.and_then(|item| item.get(attribute));
                let count = number(&rollup.form.count).and_then(whole_number).unwrap_or(0);
                let sum = number(&rollup.form.sum).and_then(Sum::of).unwrap_or_default();
                bucket.map(|item| counter_item(target, item, Tally { count, sum })).into_iter().collect()
            }
            _ => counters_of(schema, held, name),
        };
        let mut stored = Tally::default();
        for item in &items {
            stored.add(&item.tally);
        }
        let sources = match Gathering::of(schema, self.engine.catalogue(), at, target) {
            Some(gathering) => self.gathered(gathering, at, target).await?,
            None => CounterSources::default(),
        };
        let state = match (sources.query.is_some(), sources.is_whole) {
            (false, _) => {
                ValueState::Undecided("no query gives its sources, so the whole table must be read".to_owned())
            }
            (true, false) => ValueState::Undecided("it has more sources than were read".to_owned()),
            (true, true) => {
                let of = Target { derivation: name.clone(), item: target.clone() };
                let mut stored = held.clone();
                stored.extend(bucket.map(|bucket| (target.clone(), bucket.clone())));
                match (Judge { engine: self.engine }).count(&of, &sources.tally, &stored) {
                    None => ValueState::Right,
                    Some(_) if self.waiting().await?.has_target(&of) => ValueState::Waits,
                    Some(_) => ValueState::Differs,
                }
            }
        };
        asked.own.extend(items.iter().map(|item| item.key.clone()));
        asked.own.insert(target.clone());
        asked.derivations.insert(name.clone());
        let (kind, terms) = (derivation.kind.name(), derivation.kind.outline(schema).terms);
        let (derivation, target) = (derivation.label().to_owned(), target.clone());
        Ok(ExplainedCounter { derivation, kind, terms, target, items, stored, sources, is_history, state })
    }

    /// The sources that a query gives, up to the limit.
    async fn gathered(
        &self,
        gathering: Gathering,
        at: DerivationAt,
        target: &Key,
    ) -> Result<CounterSources, OperateError> {
        let (schema, catalogue) = (self.schema(), self.engine.catalogue());
        let (mut found, mut n_read, mut after) = (CounterSources::default(), 0, None);
        loop {
            let n_left = u32::try_from(self.request.n_read_max.saturating_sub(n_read)).unwrap_or(u32::MAX);
            let query = &Query { limit: Some(n_left.max(1)), ..gathering.query.clone() };
            let page = self.patience().call(|| self.engine.store().query(Table::Main, query, after.clone())).await?;
            n_read += page.items.len();
            let keys: Vec<Key> = page.items.iter().filter_map(|item| schema.layout.key(item)).collect();
            // An index may lack attributes, and may lag.
            let items: Vec<(Key, Item)> = if query.index.is_some() {
                let stored = self.engine.stored(keys, self.patience()).await?;
                stored.into_iter().filter_map(|(key, item)| Some((key, item?))).collect()
            } else {
                keys.into_iter().zip(page.items).collect()
            };
            for (key, item) in &items {
                let Some(image) = schema.image(key, item).filter(|image| image.is(&gathering.entity)) else {
                    continue;
                };
                let derivation = catalogue.derivation(at);
                found.n_unreadable += usize::from(derivation.is_some_and(|it| it.unreadable(schema, &image).is_some()));
                let Some(tally) = gathering.adds(schema, catalogue, at, (target, &image)) else { continue };
                found.n_sources += 1;
                found.tally.add(&tally);
                if found.listed.len() < self.request.n_listed {
                    found.listed.push((key.clone(), tally));
                }
            }
            after = page.next;
            if after.is_none() || n_read >= self.request.n_read_max {
                break;
            }
        }
        found.is_whole = after.is_none();
        found.query = Some(gathering.query);
        Ok(found)
    }
}

fn counters_of(schema: &Schema, stored: &Items, derivation: &str) -> Vec<CounterItem> {
    let of = stored.iter().filter(|(key, _)| CounterKey::parse(key).is_some_and(|it| it.derivation == derivation));
    let item = |(key, item): (&Key, &Item)| {
        let tally = sums(schema, [item]).into_values().next().unwrap_or_default();
        counter_item(key, item, tally)
    };
    of.map(item).collect()
}

fn counter_item(key: &Key, item: &Item, tally: Tally) -> CounterItem {
    let revision = match item.get(REVISION) {
        Some(AttributeValue::N(revision)) => Some(revision.clone()),
        _ => None,
    };
    let satellites = item.get(SPREAD).and_then(whole_number).and_then(|n| u32::try_from(n).ok());
    let is_counter = CounterKey::parse(key).is_some();
    let unreadable = (is_counter && is_broken(item)).then(|| only(item, &[VALUE, SUM]));
    CounterItem { key: key.clone(), tally, unreadable, revision, satellites, watermarks: watermarks(item) }
}

/// True if a roll-up writes this attribute into its buckets.
fn bucket_has(derivation: &Derivation, attribute: &str) -> bool {
    let Shape::Rollup(rollup) = derivation.kind.shape() else { return false };
    let form = &rollup.form;
    [&form.count, &form.sum, &form.min, &form.max].into_iter().any(|name| name == attribute)
}
