//! What a parked change concerns: its own item, and what it would count, refresh and delete.
//!
//! An operator asks this of a change that contains a person's data, and before a change is [discarded](super::discard).
//! Nothing is read: the parked record and the declarations decide.

use std::collections::BTreeSet;

use derive::effect::Ground;
use keys::{counter::CounterKey, key::Key};
use store::Store;

use crate::{
    backoff::Patience, batch::Engine, context::Context, count::recount::targets, counters::Target, input::Batch,
    park::ParkedChange, plan, record::Decoded,
};

/// What a parked change concerns, for the family that it is parked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concerns {
    /// The item that was changed; `None` if the record does not show its key.
    pub item: Option<Key>,
    /// The counts that it would add to.
    pub counts: BTreeSet<Target>,
    /// The items that it would refresh.
    pub items: BTreeSet<Key>,
    /// The items that depend on the changed one and that a query would find: the derivation, and the source.
    pub searches: BTreeSet<(String, Key)>,
    /// The cascades that it would start: the derivation, and the removed owner.
    pub cascades: BTreeSet<(String, Key)>,
    /// The jobs that it would continue.
    pub jobs: BTreeSet<Key>,
    /// Why the rest is unknown: the record does not decode, or cannot be planned.
    pub unknown: Option<String>,
}

impl Concerns {
    /// All keys that it has.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let counted = self.counts.iter().map(|target| &target.item);
        let named = self.searches.iter().chain(&self.cascades).map(|(_, key)| key);
        self.item.iter().chain(counted).chain(&self.items).chain(named).chain(&self.jobs)
    }
}

impl<S: Store> Engine<S> {
    /// What a parked change concerns. Derivations have their stored names.
    #[must_use]
    pub fn concerns(&self, parked: &ParkedChange) -> Concerns {
        let text = parked.record().unwrap_or_default();
        let patience = Patience::new(self.context.clock.as_ref(), 0);
        let record = Decoded::of(&self.context.schema.layout, &text);
        concerns(&self.context, parked, &Batch::parked(record, &parked.lane, patience))
    }
}

/// What a parked change concerns; its record is the only one of the batch.
pub(crate) fn concerns<S: Store>(context: &Context<S>, parked: &ParkedChange, batch: &Batch<'_>) -> Concerns {
    let (catalogue, layout) = (&context.catalogue, &context.schema.layout);
    let item = batch.records.first().and_then(|record| record.key(layout));
    let mut concerns = Concerns { item, ..Concerns::default() };
    let asked = match plan::asked_of(context, parked.family, batch) {
        Ok(asked) => asked,
        Err(why) => {
            // A change that is parked for one counter shows its count even if it cannot be planned any more.
            let counter = parked.counter.as_ref().and_then(CounterKey::parse);
            let count = counter.map(|counter| Target { derivation: counter.derivation, item: counter.target });
            return Concerns { counts: count.into_iter().collect(), unknown: Some(why), ..concerns };
        }
    };
    for mut entry in asked.entries {
        entry.change.amounts.retain(|amount| parked.is_for(amount));
        concerns.counts.extend(targets(catalogue, &entry.change));
    }
    concerns.items.extend(asked.requests.requested.into_keys().map(|(item, _)| item));
    let searches = asked.requests.finds.into_keys();
    concerns.searches.extend(searches.map(|(at, source)| (catalogue.name(at).to_owned(), source)));
    for touch in asked.ground {
        match touch.effect {
            Ground::Cascade(removal) => {
                concerns.cascades.insert((catalogue.name(touch.derivation).to_owned(), removal.owner));
            }
            Ground::Work(job) => {
                concerns.jobs.insert(job);
            }
        }
    }
    concerns
}
