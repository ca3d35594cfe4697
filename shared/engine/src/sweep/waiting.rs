//! What is under way, so that an item that differs is none that has drifted: it waits.
//!
//! A change that is parked is applied when somebody redrives it, an item that cannot be read counts when somebody mends
//! it, and a job goes on by itself. Each is told of elsewhere.

use std::collections::BTreeSet;

use derive::{derivation::Family, write::Table};
use keys::key::Key;
use store::Store;

use super::Differing;
use crate::{
    backoff::{GaveUp, Patience},
    batch::{Batch, Engine, Occasion},
    listing::{ALL_DERIVATIONS, UNREADABLE, sort_key},
    record::decode,
    redrive::parked,
};

/// What waits for changes that are parked, and for jobs.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Items that parked changes are of, or would look at.
    items: BTreeSet<Key>,
    /// Derivations whose items are still to be found, by a parked change or by a job; by their positions.
    derivations: BTreeSet<usize>,
}

impl Waiting {
    /// Does this item wait?
    pub(super) fn has(&self, differing: &Differing) -> bool {
        let Differing { look, derivations, .. } = differing;
        self.items.contains(&look.item)
            || look.named.iter().any(|source| self.items.contains(source))
            || derivations.iter().any(|at| self.derivations.contains(at))
    }
}

impl<S: Store> Engine<S> {
    /// What waits. A parked record that cannot be read says nothing of what it is of.
    pub(super) async fn what_waits(&self, patience: Patience<'_>) -> Result<Waiting, GaveUp> {
        let mut waiting = Waiting::default();
        let changes = patience.call(|| parked(&self.store)).await?;
        for change in changes.iter().filter(|change| change.family == Family::LevelTriggered) {
            let Ok(record) = change.record() else { continue };
            waiting.items.extend(decode(&self.schema.layout, &record).map(|change| change.key));
            let batch =
                Batch { records: vec![&record], lane: change.lane.clone(), patience, occasion: Occasion::Redrive };
            let Ok(asked) = self.asked_of(Family::LevelTriggered, &batch) else { continue };
            waiting.items.extend(asked.bells.rung.into_keys().map(|(item, _)| item));
            waiting.derivations.extend(asked.bells.finds.into_keys().map(|(derivation, _)| derivation));
        }
        let jobs = patience.call(|| self.jobs()).await?;
        waiting.derivations.extend(jobs.iter().filter_map(|job| self.catalogue.position(&job.derivation)));
        Ok(waiting)
    }

    /// Is an item, or one of the sources that were named for it, listed since it cannot be read?
    pub(super) async fn is_listed_unreadable(
        &self,
        differing: &Differing,
        patience: Patience<'_>,
    ) -> Result<bool, GaveUp> {
        let Differing { look, derivations, .. } = differing;
        let names: Vec<&str> = derivations.iter().map(|at| self.catalogue.name(*at)).chain([ALL_DERIVATIONS]).collect();
        let items = [&look.item].into_iter().chain(&look.named);
        let listed = |item| names.iter().map(move |name| Key::new(UNREADABLE, sort_key(name, item)));
        let keys: Vec<Key> = items.flat_map(listed).collect();
        Ok(!patience.call(|| self.store.get(Table::Ledger, &keys)).await?.is_empty())
    }
}
