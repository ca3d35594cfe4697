//! Looking at many items without writing: which of them are not in step.

use derive::{
    refresh::Look,
    sources::{Source, Sources},
};
use keys::key::Key;
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    bells::{Bells, DecidedLooks, Looked, Rung},
    look::Looker,
    reading::{HeldItems, ItemReader},
    sweep::TableSweep,
};

/// What looking at items would write.
pub(crate) struct LooksToWrite {
    /// The items that are not in step.
    pub(crate) decided: DecidedLooks,
    /// Those that can never be decided, with the cause: DynamoDB refuses to read what they are decided by, or a kind panics.
    pub(crate) refused: Vec<(Look, String)>,
    /// What the items hold.
    pub(crate) held: HeldItems,
}

impl<S: Store> TableSweep<'_, S> {
    /// Those of these items that are not in step, and what they hold. What is not known to be `held`, nor among the sources,
    /// is read.
    pub(crate) async fn decided_now(
        &self,
        bells: Bells,
        mut held: HeldItems,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<LooksToWrite, GaveUp> {
        let rung: Vec<Rung> = bells.rung.into_values().collect();
        let unknown: Vec<Key> = rung.iter().map(|rung| rung.look.item.clone()).collect();
        let unknown: Vec<Key> = unknown.into_iter().filter(|item| !held.contains_key(item)).collect();
        let to_read = unknown.iter().cloned().map(Source::Item).filter(|source| !sources.knows(source)).collect();
        let refused = ItemReader::new(self.context).read_each(to_read, sources, patience).await?;
        held.extend(unknown.into_iter().map(|item| (item.clone(), sources.item(&item).cloned())));
        let mut looked = Looked::default();
        let of_item = |rung: &Rung| refused.get(&Source::Item(rung.look.item.clone()));
        let rung = looked.without_refused(rung.into_iter().map(|rung| (of_item(&rung), rung)));
        let decided = Looker::new(self.context).differing(rung, &held, sources, patience, &mut looked).await;
        if let Some((_, why)) = looked.undone.into_iter().next() {
            // Without time left it is no fault: the next slice begins where this one ends.
            if !patience.is_over() {
                tracing::warn!(why, "what is looked at cannot be read");
            }
            return Err(GaveUp::OutOfTime { last: None });
        }
        let refused = looked.refused.into_iter().map(|(rung, cause)| (rung.look, cause)).collect();
        Ok(LooksToWrite { decided, refused, held })
    }
}
