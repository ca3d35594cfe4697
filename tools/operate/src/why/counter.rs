//! An additive derivation's count of an item: its counters with their watermarks, and what each source adds.

use derive::{
    derivation::Derivation,
    derived::Items,
    gathering::Gathering,
    kind::Shape,
    position::DerivationAt,
    query::Query,
    schema::Schema,
    sources::sums,
    tally::{Sum, Tally},
    write::Table,
};
use engine::{
    counters::Target,
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

use super::{AskedAbout, Explainer, ValueState, value::ExplainedValue};
use crate::{
    failure::OperateError,
    verify::{
        counts::{is_broken, only},
        judge::Judge,
    },
};

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
        let held = self.engine.all_counters_of(&target, self.patience()).await?;
        let has_counter =
            |name: &str| held.keys().filter_map(CounterKey::parse).any(|counter| counter.derivation == name);
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
                explained.push(self.counter((at, derivation), &target, (&held, bucket), asked).await?);
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
                let held = self.engine.held(keys, self.patience()).await?;
                held.into_iter().filter_map(|(key, item)| Some((key, item?))).collect()
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

/// The items of the counters of a derivation.
fn counters_of(schema: &Schema, held: &Items, derivation: &str) -> Vec<CounterItem> {
    let of = held.iter().filter(|(key, _)| CounterKey::parse(key).is_some_and(|it| it.derivation == derivation));
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
