//! Planning: the effects of a change for all derivations of a function.

use keys::{
    item::{Item, text},
    job::{JOB, JobKey, PAUSED, RUNNING, STATE},
    key::Key,
};

use crate::{
    catalogue::Catalogue,
    change::{Change, Sight},
    effect::{Effect, Ground, RefreshRequest},
    family::Family,
    position::DerivationAt,
    schema::{Image, Schema, Unreadable},
};

/// The effects of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What kind of record it is.
    pub record: RecordKind,
    /// Effects, each with the position of its derivation in the catalogue.
    pub effects: Vec<(DerivationAt, Effect)>,
    /// The problem of an item of a declared entity with a key of another form; it concerns all derivations.
    pub misfit: Option<Unreadable>,
    /// True if the item had such a problem before, and does not any more.
    pub mended: bool,
}

/// Kind of the record of a change, for the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// Of an application item, with a difference that a derivation reads.
    Change,
    /// Any other record of a declared entity: echoes of our own writes, and attributes that no derivation reads.
    Echo,
    /// Of an item without a type.
    Untyped,
    /// Of an item of an undeclared entity.
    Unknown,
}

/// The effects of a change for the derivations of these families.
#[must_use]
pub fn plan(schema: &Schema, catalogue: &Catalogue, families: &[Family], change: &Change) -> Planned {
    let sight = Sight::of(schema, change);
    let record = record(schema, catalogue, change, &sight);
    let mut effects = Vec::new();
    if sight.differs() {
        for (at, derivation) in catalogue.looking_at(&sight, families) {
            effects.extend(derivation.plan(schema, &sight).into_iter().map(|effect| (at, effect)));
            let unreadable = |image: &Option<_>| image.as_ref().and_then(|i| derivation.unreadable(schema, i));
            let (was, is) = (unreadable(&sight.old), unreadable(&sight.new));
            if was.is_some() || is.is_some() {
                effects.push((at, Effect::List { unreadable: is }));
            }
        }
    }
    effects.extend(vacated(schema, catalogue, families, change, &sight));
    effects.extend(working(schema, catalogue, families, change));
    let mended = sight.was_misfit && sight.misfit.is_none();
    Planned { record, effects, misfit: sight.misfit, mended }
}

/// The key of a derived item was occupied by a foreign item, and is free now.
fn vacated(
    schema: &Schema,
    catalogue: &Catalogue,
    families: &[Family],
    change: &Change,
    sight: &Sight<'_>,
) -> Vec<(DerivationAt, Effect)> {
    let is_of = |image: &Option<Image<'_>>, entity: &str| image.as_ref().is_some_and(|image| image.is(entity));
    let is_left = change.old_image().is_some() && (sight.removes() || sight.new.is_some());
    if !is_left || !families.contains(&Family::LevelTriggered) {
        return Vec::new();
    }
    let vacated = catalogue.makers().filter(|(_, entity)| {
        let is_left = !is_of(&sight.old, entity) && (sight.removes() || is_of(&sight.new, entity));
        is_left && schema.entity(entity).is_some_and(|entity| entity.key.parse_key(&change.key).is_some())
    });
    vacated.map(|(at, entity)| (at, Effect::Vacated(RefreshRequest::of(change.key.clone(), entity)))).collect()
}

/// A job that began or made progress continues.
fn working(
    schema: &Schema,
    catalogue: &Catalogue,
    families: &[Family],
    change: &Change,
) -> Option<(DerivationAt, Effect)> {
    let item = change.new_image().filter(|_| families.contains(&Family::LevelTriggered))?;
    let is_running = text(item, STATE) == Some(RUNNING) && item.get(PAUSED).is_none();
    let is_running = is_running && is_job(schema, &change.key, item);
    let job = JobKey::parse(&change.key).filter(|_| is_running)?;
    Some((catalogue.position(&job.derivation)?, Effect::Ground(Ground::Work(change.key.clone()))))
}

/// True if this is a job, by its key and by its type attribute, if there is one.
fn is_job(schema: &Schema, key: &Key, item: &Item) -> bool {
    let says = schema.layout.entity_type.as_ref().is_none_or(|attribute| text(item, attribute) == Some(JOB));
    says && JobKey::parse(key).is_some()
}

fn record(schema: &Schema, catalogue: &Catalogue, change: &Change, sight: &Sight<'_>) -> RecordKind {
    if catalogue.reads_difference(sight) {
        return RecordKind::Change;
    }
    let (item, declared) = match change.new_image() {
        Some(item) => (Some(item), sight.new.is_some() || sight.misfit.is_some()),
        None => (change.old_image(), sight.old.is_some() || sight.was_misfit),
    };
    let says = |attribute: &String| item.is_some_and(|item| text(item, attribute).is_some());
    if declared || item.is_some_and(|item| is_job(schema, &change.key, item)) {
        RecordKind::Echo
    } else if schema.layout.entity_type.as_ref().is_none_or(says) {
        RecordKind::Unknown
    } else {
        RecordKind::Untyped
    }
}
