//! What a level-triggered derivation writes into an item: its sources, and the correct value.

use std::collections::BTreeSet;

use derive::{
    clock,
    derivation::Derivation,
    kind::{Computed, Refresh, RefreshTarget},
    outline::FromEntries,
    position::DerivationAt,
    refresh::{Look, owned},
    sources::{FirstOf, Source, Sources},
    write::{Action, Update},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::Store;

use super::{AskedAbout, Explainer, ValueState};
use crate::{
    failure::OperateError,
    verify::{Finding, counts::attributes, judge::Judge},
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
