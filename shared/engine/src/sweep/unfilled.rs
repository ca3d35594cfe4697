//! What a derivation lacks that is not filled yet: known, and no drift.

use store::Store;

use crate::{
    backoff::GaveUp,
    publishing::Publisher,
    sweep::{Slice, TableSweep},
};

impl<S: Store> TableSweep<'_, S> {
    /// What a run found, without what derivations lack that are not filled yet. Reads the registry if something has drifted.
    pub(crate) async fn without_unfilled(&self, mut slice: Slice, deadline_ms: u64) -> Result<Slice, GaveUp> {
        if slice.drifts.is_empty() {
            return Ok(slice);
        }
        let registry = match Publisher::new(self.context).registry(deadline_ms).await {
            Ok(registry) => registry,
            // They are found again by the next run.
            Err(GaveUp::OutOfTime { .. }) => return Ok(Slice { drifts: Vec::new(), ..slice }),
            Err(error) => return Err(error),
        };
        let catalogue = &self.context.catalogue;
        let is_unfilled =
            |label: &String| catalogue.called(label).is_some_and(|at| registry.is_unfilled(catalogue.name(at)));
        for drift in &mut slice.drifts {
            drift.derivations.retain(|label| !is_unfilled(label));
        }
        slice.drifts.retain(|drift| !drift.derivations.is_empty());
        Ok(slice)
    }
}
