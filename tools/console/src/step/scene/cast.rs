//! The items of a scene, and the value that it watches.

use std::sync::Arc;

use ::design::{
    Design,
    cost::world::{Cast, cast},
};
use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    plan::plan,
    write::Table,
};
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::{
    tables::Deployment,
    why::{WhyRequest, why},
};
use serde_dynamo::AttributeValue;

/// The subject of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A count.
    Count,
    /// A copied value.
    Copy,
    /// An item that only Ripple writes.
    Mirror,
}

/// The items of a scene.
#[derive(Clone, Debug)]
pub(crate) struct SceneCast {
    /// Items that the application has written before the scene begins.
    pub(crate) before: Vec<Item>,
    /// The item of the scene's first write; it is also in `before`, unless it is counted.
    pub(crate) item: (Key, Item),
    /// The item with the derived value, and its derivation.
    pub(crate) target: Key,
    pub(crate) derivation: String,
    /// The family of the function that writes the value.
    pub(crate) family: Family,
    /// The copied value; `None` if the scene has none.
    pub(crate) copy: Option<CopiedValue>,
}

/// A copied value.
#[derive(Clone, Debug)]
pub(crate) struct CopiedValue {
    /// The attribute with the value.
    pub(crate) attribute: String,
    /// The item that it is copied from.
    pub(crate) source: Key,
    /// The attribute of the source.
    pub(crate) source_attribute: String,
    /// Its initial value.
    pub(crate) text: String,
}

impl SceneCast {
    /// A cast for a subject, with items of this number; `None` if the table derives nothing of this kind.
    pub(crate) async fn of(design: &Design, subject: Subject, n: u64) -> Option<Self> {
        let mut ground: Vec<_> = design.schema.entities().filter(|entity| !entity.derived).collect();
        ground.sort_by_key(|entity| &entity.id);
        for entity in ground {
            let Some(cast) = Box::pin(cast(design, &entity.name, n)).await else { continue };
            let Some(key) = design.schema.layout.key(&cast.item) else { continue };
            let found = match subject {
                Subject::Count => counted(design, &key, &cast),
                Subject::Copy | Subject::Mirror => Box::pin(derived(design, subject, &key, &cast)).await,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

impl Subject {
    /// Why a table has no scene of this subject.
    pub(crate) fn is_missing(self) -> &'static str {
        match self {
            Self::Count => "This table has no count whose items stay, so it cannot play this scene.",
            Self::Copy => {
                "This table copies nothing into an application's item, so this scene cannot be played with it."
            }
            Self::Mirror => "This table has no mirror, so this scene cannot be played with it.",
        }
    }
}

/// The first count of an item.
fn counted(design: &Design, key: &Key, cast: &Cast) -> Option<SceneCast> {
    let images = Images::Inserted(cast.item.clone());
    let change =
        Change { id: String::new(), sequence_number: String::new(), created_ms: None, key: key.clone(), images };
    let planned = plan(&design.schema, &design.catalogue, &[Family::Additive], &change);
    let added = planned.effects.iter().filter_map(|(at, effect)| match effect {
        Effect::Add(add) if add.count == 1 => Some((*at, &add.target)),
        _ => None,
    });
    let is_measured = |at| design.catalogue.derivation(at).is_some_and(|it| !it.kind.is_history());
    let (at, target) = added.into_iter().find(|(at, target)| is_measured(*at) && cast.named.contains_key(target))?;
    Some(SceneCast {
        before: cast.named.values().cloned().collect(),
        item: (key.clone(), cast.item.clone()),
        target: target.clone(),
        derivation: design.catalogue.label(at).to_owned(),
        family: Family::Additive,
        copy: None,
    })
}

/// The first copied value, or the first mirror, among the items of a cast.
async fn derived(design: &Design, subject: Subject, key: &Key, cast: &Cast) -> Option<SceneCast> {
    let items: Vec<(Key, Item)> = cast.store.view(Table::Main, |items| {
        items
            .iter()
            .filter(|(key, _)| CounterKey::parse(key).is_none())
            .map(|(k, it)| (k.clone(), it.clone()))
            .collect()
    });
    let model = Deployment {
        schema: Arc::new(design.schema.clone()),
        catalogue: Arc::new(design.catalogue.clone()),
        store: Arc::clone(&cast.store),
        name: String::new(),
        arn: String::new(),
        streams: Vec::new(),
        n_items: 0,
        bytes: 0,
        is_aws: false,
    };
    let is_ground = |of: &Key| of == key || cast.named.contains_key(of);
    for (target, _) in &items {
        let request =
            WhyRequest { key: target.clone(), attribute: None, n_listed: 1, n_read_max: 1, reads_stream: false };
        let Ok(explained) = why(&model, &request).await else { continue };
        for value in &explained.values {
            let copies = value.attributes.iter().filter_map(|it| Some((&it.name, text(it.stored.as_ref()?)?)));
            let from = |copied: &str| {
                let sources = value.sources.iter().filter_map(|source| Some((source.key.as_ref()?, &source.gives)));
                let given = sources.flat_map(|(key, gives)| gives.iter().map(move |given| (key, given)));
                let mut same = given.filter(|(key, (_, value))| is_ground(key) && text(value) == Some(copied));
                same.next().map(|(key, (name, _))| (key.clone(), name.to_owned()))
            };
            let copied = copies.into_iter().find_map(|(attribute, text)| Some((attribute, text, from(text)?)));
            let copy = match (subject, copied) {
                (Subject::Copy, Some((attribute, text, (source, source_attribute)))) if is_ground(target) => {
                    Some(CopiedValue { attribute: attribute.clone(), source, source_attribute, text: text.to_owned() })
                }
                (Subject::Mirror, _) if value.should_exist == Some(true) => None,
                _ => continue,
            };
            let before = cast.named.values().chain([&cast.item]).cloned().collect();
            let (item, derivation) = ((key.clone(), cast.item.clone()), value.derivation.clone());
            return Some(SceneCast {
                before,
                item,
                target: target.clone(),
                derivation,
                family: Family::LevelTriggered,
                copy,
            });
        }
    }
    None
}

/// A text that is not empty.
fn text(value: &AttributeValue) -> Option<&str> {
    match value {
        AttributeValue::S(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}
