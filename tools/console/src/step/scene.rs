//! Guided scenes: an anomaly of the platform or of a client, step by step, on items that the scene writes.
//!
//! A scene fits any table: its items are built from the declarations, and it watches the first value of the table that
//! displays the anomaly. Nothing is prepared: the scene reads the value and its definition after each step.

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

use self::SceneAct as Act;

#[derive(Debug)]
pub(crate) struct Scene {
    /// Its name in the page's address.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The anomaly, and why it does no harm.
    pub(crate) about: &'static str,
    pub(crate) subject: Subject,
    pub(crate) steps: &'static [SceneStep],
}

/// A step of a scene: its description, and its action.
#[derive(Debug)]
pub(crate) struct SceneStep {
    pub(crate) text: &'static str,
    pub(crate) act: SceneAct,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SceneAct {
    /// The application writes the counted item.
    Write,
    /// The record of the item is delivered once.
    Deliver,
    /// It is delivered to two instances at the same time.
    DeliverAtOnce,
    /// It is delivered, and the invocation is killed after its first write.
    DeliverAndKill,
    /// The first delivered record is redelivered.
    Again,
    /// Everything else is delivered, with its effects.
    LetThrough,
    /// The application changes the source of the copy, to another value each time.
    ChangeSource,
    /// A client reads the item with the derived value.
    Read,
    /// A client overwrites it with the version that was read.
    PutBack,
    /// A client deletes it.
    Delete,
    /// A client overwrites the derived value.
    Overwrite,
    /// A client replaces the counter by text.
    SpoilCounter,
    /// A client removes that text.
    RemoveValue,
    /// An operator redrives the parked change.
    Redrive,
    /// A client adds to the counter.
    AlterCounter,
    /// An operator repairs the findings of a verification.
    Repair,
}

const fn step(text: &'static str, act: SceneAct) -> SceneStep {
    SceneStep { text, act }
}

pub(crate) const SCENES: [Scene; 9] = [
    Scene {
        id: "repeated",
        title: "A record is delivered twice",
        about: "Lambda delivers at least once: a batch is redelivered when its answer is lost. A plain ADD would count the change twice.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("Lambda delivers its record.", Act::Deliver),
            step("Lambda delivers the same record again.", Act::Again),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "at-once",
        title: "Two invocations get the same record at once",
        about: "An invocation that Lambda gave up may still run when the next one begins. Whoever comes second finds the change counted.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("Two instances of the function get its record at the same time.", Act::DeliverAtOnce),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "killed",
        title: "An invocation is killed halfway",
        about: "An invocation ends at its time limit, or with its machine: some writes are done, and it is unknown which. The record is redelivered.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step(
                "Lambda delivers its record, and the invocation is killed after its first write.",
                Act::DeliverAndKill,
            ),
            step("Lambda delivers the record again.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "old-record",
        title: "An old record is delivered after a newer one",
        about: "A record says only which item to refresh, never what to write. So an old record cannot bring an old value back.",
        subject: Subject::Copy,
        steps: &[
            step("The application changes the source of a copied value.", Act::ChangeSource),
            step("Lambda delivers the record, and the copy follows.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
            step("The application changes the source once more.", Act::ChangeSource),
            step("Lambda delivers that record.", Act::Deliver),
            step("The record of the first change is redelivered, after the newer one.", Act::Again),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "deleted",
        title: "A client deletes a mirror",
        about: "A mirror is an item that Ripple alone writes. The record of its removal makes Ripple refresh it, and create it again.",
        subject: Subject::Mirror,
        steps: &[
            step("A client deletes the mirror.", Act::Delete),
            step("Lambda delivers the record of the removal.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "overwritten",
        title: "A client overwrites a copied value",
        about: "The record of the write makes Ripple refresh the item. It reads the source, and writes what differs.",
        subject: Subject::Copy,
        steps: &[
            step("A client overwrites the copy.", Act::Overwrite),
            step("Lambda delivers the record of that write.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "put-back",
        title: "A client puts back an item that it read before a change",
        about: "The client read the item, the source changed, and the client writes the item whole, with the old copy in it.",
        subject: Subject::Copy,
        steps: &[
            step("A client reads the item with the copy.", Act::Read),
            step("The application changes the source of the copy.", Act::ChangeSource),
            step("Lambda delivers the record, and the copy follows.", Act::LetThrough),
            step("The client puts back the item that it read.", Act::PutBack),
            step("Lambda delivers the record of that write.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "parked",
        title: "A change can never be applied",
        about: "The counter holds text instead of a number. The change is parked, whole, with its cause; the other records go on.",
        subject: Subject::Count,
        steps: &[
            step("A client puts text in the place of the counter.", Act::SpoilCounter),
            step("The application writes an item that counts.", Act::Write),
            step("Lambda delivers its record.", Act::Deliver),
            step("All other records are delivered: nothing waits for the parked one.", Act::LetThrough),
            step("An operator removes the value that cannot be read, and no other attribute.", Act::RemoveValue),
            step("The operator redrives the parked change.", Act::Redrive),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "counter",
        title: "A client alters a counter",
        about: "A counter does not correct itself, because Ripple only adds to it. A verification finds the difference, and a repair adds it.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("All records are delivered.", Act::LetThrough),
            step("A client adds 5 to the counter.", Act::AlterCounter),
            step("All records are delivered: the wrong number stays.", Act::LetThrough),
            step("The stream flows, and an operator repairs what a verification of this count finds.", Act::Repair),
        ],
    },
];

// ---- The items of a scene, and the value that it watches ----

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A count.
    Count,
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

#[derive(Clone, Debug)]
pub(crate) struct CopiedValue {
    /// The attribute with the value.
    pub(crate) attribute: String,
    /// The item that it is copied from.
    pub(crate) source: Key,
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
