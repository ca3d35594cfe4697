//! What a cascade waits for besides its due time: older parked changes that may concern its owner or dependent items,
//! and a verify after a possible loss.
//!
//! The owner may exist under another key, or may be about to: a parked change of that key has not been handled yet, and
//! a change that the stream dropped never will be.
//!
//! A cascade finds some items by their mirrors beside the owner. Such a mirror may be missing because of a parked
//! change, and then the cascade would end without the item. So the cascade waits for changes that would have refreshed
//! a mirror in the owner's collection, and for changes without a plan whose item may have a mirror there.
//!
//! *Example*: `USER#ann / FOLLOWS#bob` is created, its record does not decode, and `bob` is removed. No mirror
//! `USER#bob / FOLLOWER#ann` leads to the follow, so the cascade of `bob` waits until the record is redriven.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use derive::{
    declaration::{Cascade, FoundBy, Way},
    effect::Removal,
    expression::Input,
    family::Family,
    kind::Shape,
    write::Table,
};
use keys::{fields::Fields, key::Key};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    clock::age_ms,
    input::Batch,
    job::{Job, Task},
    jobs::{
        pulse::{self, Heard, PULSE_MS_MAX},
        sweep::JobSweep,
    },
    loss::{Mark, first_of},
    park::{ParkedChange, ParkedPages},
    plan,
    protocol::ProtocolStep,
    record::Decoded,
};

/// A record's time is rounded down, at worst to the minute.
const ROUNDED_MS: u64 = 60 * 1_000;

/// What blocks a cascade from beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// A parked change, by the id of its event.
    ParkedChange(String),
    /// A mark that the stream may have dropped changes, by the ARN of the stream.
    PossibleLoss(String),
    /// No function has handled a heartbeat ([`pulse`]) lately: the time of the last one in milliseconds since the
    /// epoch, 0 if there was none.
    NoPulse(u64),
    /// The functions have handled heartbeats only since after the wait began, and for less than the grace period: the
    /// time when that period ends, in milliseconds since the epoch.
    YoungPulse(u64),
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParkedChange(id) => write!(f, "the parked change {id}: redrive it"),
            Self::NoPulse(0) => write!(f, "a sign that a function handles the stream: none was seen yet"),
            Self::NoPulse(_) => {
                write!(f, "a sign that a function handles the stream, which did not for two hours: see its mapping")
            }
            Self::YoungPulse(_) => {
                write!(f, "the settling time, since no sign of the function was seen before the removal")
            }
            Self::PossibleLoss(stream) => {
                write!(
                    f,
                    "a verify, since changes of {stream} may be lost: run `ripple verify`, and repair what it finds"
                )
            }
        }
    }
}

/// The oldest parked change that may concern something: when it was written, 0 if unknown, and its id.
type Oldest = (u64, String);

/// Everything that may block cascades.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// By the items that parked changes belong to, and the items that they would have refreshed.
    items: BTreeMap<Key, Oldest>,
    /// By the entities of the items that they would have searched for, or of their own items if they cannot be planned.
    entities: BTreeMap<String, Oldest>,
    /// By the items of changes without a plan.
    unplanned: BTreeMap<Key, Oldest>,
    /// The oldest change whose item is unknown.
    unknown: Option<Oldest>,
    /// A mark of a possible loss of changes that a cascade needs.
    loss: Option<Mark>,
    /// The heartbeats, if cascades rely on them.
    heard: Option<Heard>,
}

impl Holds {
    fn of_item(&mut self, key: Key, oldest: &Oldest) {
        keep(self.items.entry(key).or_insert_with(|| oldest.clone()), oldest);
    }

    fn of_entity(&mut self, name: String, oldest: &Oldest) {
        keep(self.entities.entry(name).or_insert_with(|| oldest.clone()), oldest);
    }
}

fn keep(stored: &mut Oldest, other: &Oldest) {
    if other < stored {
        stored.clone_from(other);
    }
}

impl<S: Store> JobSweep<'_, S> {
    /// Everything that currently may block cascades. Parked changes contribute their keys, not their records.
    pub(crate) async fn holds(&self, patience: Patience<'_>) -> Result<Holds, GaveUp> {
        // Heartbeats are read before the marks, because a function that works again writes the mark first.
        let heard = if self.by_pulse { Some(pulse::heard(self.context, patience).await?) } else { None };
        let loss = patience.call(|| first_of(&self.context.store, Family::LevelTriggered)).await?;
        let mut holds = Holds { loss, heard, ..Holds::default() };
        let mut pages = ParkedPages::of(Family::LevelTriggered);
        while let Some((query, after)) = pages.next() {
            let page = patience.call(|| self.context.store.query(Table::Ledger, &query, after.clone())).await?;
            for parked in pages.take(page) {
                self.add(&parked, &mut holds);
            }
        }
        Ok(holds)
    }

    /// Adds the items and entities that a parked change may concern.
    fn add(&self, parked: &ParkedChange, holds: &mut Holds) {
        let (text, layout) = (parked.record().unwrap_or_default(), &self.context.schema.layout);
        let record = Decoded::of(layout, &text);
        // A time ahead of the clock proves nothing: the change may be older than any job.
        let now_ms = self.context.clock.now_ms();
        let created_ms = age_ms(record.head.created_ms, now_ms).map_or(0, |age_ms| now_ms.saturating_sub(age_ms));
        let oldest = (created_ms, parked.id.clone());
        let key = record.key(layout);
        match &key {
            Some(key) => holds.of_item(key.clone(), &oldest),
            None => keep(holds.unknown.get_or_insert_with(|| oldest.clone()), &oldest),
        }
        let patience = Patience::new(self.context.clock.as_ref(), 0);
        let asked = plan::asked_of(self.context, parked.family, &Batch::parked(record, &parked.lane, patience));
        if let Ok(asked) = asked {
            asked.requests.requested.into_keys().for_each(|(item, _)| holds.of_item(item, &oldest));
            asked.requests.finds.into_values().for_each(|(find, _)| holds.of_entity(find.target, &oldest));
        } else if let Some(key) = key {
            self.entities_at(&key).for_each(|name| holds.of_entity(name, &oldest));
            keep(holds.unplanned.entry(key).or_insert_with(|| oldest.clone()), &oldest);
        }
    }

    /// The oldest change that may be why a dependent item of this owner has no mirror for the cascade to find.
    fn oldest_of_mirrors<'a>(&self, holds: &'a Holds, derivation: &str, owner: &Key) -> Option<&'a Oldest> {
        let (catalogue, schema) = (&self.context.catalogue, &self.context.schema);
        let kind = catalogue.position(derivation).and_then(|at| catalogue.derivation(at)).map(|it| it.kind.shape());
        let Some(Shape::Cascade(cascade)) = kind else { return None };
        let owner = schema.entity(&cascade.owner)?.key.parse_key(owner)?;
        let mut oldest: Option<&Oldest> = None;
        for (target, found) in by_mirror(cascade) {
            let may_hang = |key: &Key, entity: &str| self.may_hang(key, entity, found, &owner);
            let mirrors = holds.items.iter().filter(|(key, _)| may_hang(key, &found.via));
            let targets = holds.unplanned.iter().filter(|(key, _)| may_hang(key, target));
            oldest = oldest.into_iter().chain(mirrors.chain(targets).map(|(_, oldest)| oldest)).min();
        }
        oldest
    }

    /// True if an item of this entity with this key may belong to the owner with these fields. A field that its key
    /// lacks may be in its attributes.
    fn may_hang(&self, key: &Key, entity: &str, found: &FoundBy, owner: &Fields) -> bool {
        let Some(fields) = self.context.schema.entity(entity).and_then(|it| it.key.parse_key(key)) else {
            return false;
        };
        let FoundBy { by, .. } = found;
        let names = |from: &Input, stored| from.name().and_then(|name| owner.get(name)) == Some(stored);
        by.0.iter().all(|(field, from)| fields.get(field).is_none_or(|stored| names(from, stored)))
    }

    /// Names of the entities whose items can have this key.
    fn entities_at(&self, key: &Key) -> impl Iterator<Item = String> {
        let all = self.context.schema.entities().filter(|definition| definition.key.parse_key(key).is_some());
        all.map(|definition| definition.name.clone())
    }

    /// Why the heartbeats do not show that all changes from before the job's wait were handled.
    fn unheard(&self, heard: &Heard, job: &Job) -> Option<Blocker> {
        if !self.context.takes(ProtocolStep::Pulse) {
            return None;
        }
        let now_ms = self.context.clock.now_ms();
        if now_ms.saturating_sub(heard.handled_ms) > PULSE_MS_MAX {
            return Some(Blocker::NoPulse(heard.handled_ms));
        }
        let settled_ms = heard.since_ms.saturating_add(self.context.settle_ms);
        let is_young = heard.since_ms > job.started_at_ms && now_ms < settled_ms;
        is_young.then_some(Blocker::YoungPulse(settled_ms))
    }

    /// What blocks this job, if it is a cascade.
    pub(crate) fn blocker(&self, holds: &Holds, job: &Job) -> Option<Blocker> {
        let Task::Cascade { removal: Removal { owner, absent, .. }, .. } = &job.task else { return None };
        if let Some(mark) = &holds.loss {
            return Some(Blocker::PossibleLoss(mark.stream.clone()));
        }
        if let Some(blocker) = holds.heard.as_ref().and_then(|heard| self.unheard(heard, job)) {
            return Some(blocker);
        }
        let of_owner: BTreeSet<&Key> = absent.iter().chain([owner]).collect();
        let by_item = of_owner.iter().filter_map(|key| holds.items.get(key));
        let by_entity = of_owner.iter().flat_map(|key| self.entities_at(key)).filter_map(|it| holds.entities.get(&it));
        let of_mirrors = self.oldest_of_mirrors(holds, &job.derivation, owner);
        let oldest = by_item.chain(by_entity).chain(of_mirrors).chain(&holds.unknown).min()?;
        let is_older = oldest.0 <= job.moved_at_ms.saturating_add(ROUNDED_MS);
        is_older.then(|| Blocker::ParkedChange(oldest.1.clone()))
    }
}

/// The ways of a cascade that lead through other items than the dependent ones, each with the entity of the dependent
/// items.
fn by_mirror(cascade: &Cascade) -> impl Iterator<Item = (&str, &FoundBy)> {
    cascade.hanging.iter().filter_map(|hanging| match &hanging.found {
        Way::Found(found) if found.via != hanging.entity => Some((hanging.entity.as_str(), found)),
        Way::Found(_) | Way::Counters(_) | Way::Named(_) => None,
    })
}
