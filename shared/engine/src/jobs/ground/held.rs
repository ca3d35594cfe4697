//! What a cascade waits for beside its time: parked changes that were made before it and that may concern its owner.
//!
//! The owner may exist under another key, or may be about to: a parked change of that key has not been looked at yet.

use std::collections::{BTreeMap, BTreeSet};

use derive::{effect::Removal, family::Family, write::Table};
use keys::key::Key;
use store::{Store, StoreError};

use super::sweep::JobSweep;
use crate::{
    backoff::Patience,
    batch::{Engine, input::Batch, planning::Planner},
    jobs::job::{Job, Task},
    park::{pages::ParkedPages, redrive::ParkedChange},
    record::Decoded,
};

/// A record's time is rounded down, at worst to the minute.
const ROUNDED_MS: u64 = 60 * 1_000;

/// What a parked change may still do.
struct MayConcern {
    /// When it was made; 0 where it does not say so.
    created_ms: u64,
    /// Its item, and the items that it would have looked at.
    items: BTreeSet<Key>,
    /// Entities of the items that it would have searched for; of its item, where it cannot be planned.
    entities: BTreeSet<String>,
    /// Is its item unknown?
    is_unknown: bool,
}

impl<S: Store> Engine<S> {
    /// Those of these jobs that parked changes hold from beginning, each with the id of one of these changes.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the parked changes cannot be read.
    pub async fn held_jobs(&self, jobs: &[Job]) -> Result<BTreeMap<Key, String>, StoreError> {
        let waiting: Vec<&Job> = jobs.iter().filter(|job| !job.is_running).collect();
        JobSweep::new(&self.context).held(&waiting).await
    }
}

impl<S: Store> JobSweep<'_, S> {
    /// Those of these jobs that parked changes hold, each with the id of one of these changes.
    pub(crate) async fn held(&self, jobs: &[&Job]) -> Result<BTreeMap<Key, String>, StoreError> {
        let mut held = BTreeMap::new();
        if jobs.is_empty() {
            return Ok(held);
        }
        let mut pages = ParkedPages::of(Family::LevelTriggered);
        while let Some((query, after)) = pages.next() {
            for parked in pages.take(self.context.store.query(Table::Ledger, &query, after).await?) {
                let may = self.may_concern(&parked);
                for job in jobs.iter().filter(|job| self.concerns(&may, job)) {
                    held.entry(job.key.clone()).or_insert_with(|| parked.id.clone());
                }
            }
        }
        Ok(held)
    }

    fn may_concern(&self, parked: &ParkedChange) -> MayConcern {
        let (text, layout) = (parked.record().unwrap_or_default(), &self.context.schema.layout);
        let record = Decoded::of(layout, &text);
        let (created_ms, key) = (record.head.created_ms.unwrap_or(0), record.key(layout));
        let is_unknown = key.is_none();
        let (mut items, mut entities): (BTreeSet<Key>, BTreeSet<String>) =
            (key.iter().cloned().collect(), BTreeSet::new());
        let patience = Patience { clock: self.context.clock.as_ref(), deadline_ms: 0 };
        match Planner::new(self.context).asked_of(parked.family, &Batch::parked(record, &parked.lane, patience)) {
            Ok(asked) => {
                items.extend(asked.bells.rung.into_keys().map(|(item, _)| item));
                entities.extend(asked.bells.finds.into_values().map(|(find, _)| find.target));
            }
            Err(_) => entities.extend(key.iter().flat_map(|key| self.entities_at(key))),
        }
        MayConcern { created_ms, items, entities, is_unknown }
    }

    /// Names of the entities whose items have such a key.
    fn entities_at(&self, key: &Key) -> impl Iterator<Item = String> {
        let all = self.context.schema.entities().filter(|definition| definition.key.parse_key(key).is_some());
        all.map(|definition| definition.name.clone())
    }

    fn concerns(&self, may: &MayConcern, job: &Job) -> bool {
        let Task::Cascade { removal: Removal { owner, absent, .. }, .. } = &job.task else { return false };
        let mut of_owner = absent.iter().chain([owner]);
        let is_older = may.created_ms <= job.moved_at_ms.saturating_add(ROUNDED_MS);
        let is_of =
            |key: &Key| may.items.contains(key) || self.entities_at(key).any(|name| may.entities.contains(&name));
        is_older && (may.is_unknown || of_owner.any(is_of))
    }
}
