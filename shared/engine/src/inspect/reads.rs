//! What an operator's tools read with an engine.

use std::collections::BTreeSet;

use derive::{
    derived::Items,
    sources::{Source, Sources},
};
use keys::key::Key;
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    look::reading::{HeldItems, ItemReader, RefusedReads},
};

impl<S: Store> Engine<S> {
    /// These items, as they are held.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn held(&self, keys: Vec<Key>, patience: Patience<'_>) -> Result<HeldItems, GaveUp> {
        ItemReader::new(&self.context).held(keys, patience).await
    }

    /// These items, as they are held, and those that DynamoDB refuses to read.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read now.
    pub async fn held_each(
        &self,
        keys: Vec<Key>,
        patience: Patience<'_>,
    ) -> Result<(HeldItems, RefusedReads<Key>), GaveUp> {
        ItemReader::new(&self.context).held_each(keys, patience).await
    }

    /// The counters of a target, of all derivations and in all shards.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn all_counters_of(&self, target: &Key, patience: Patience<'_>) -> Result<Items, GaveUp> {
        ItemReader::new(&self.context).all_counters_of(target, patience).await
    }

    /// Reads these sources, to the others.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn read(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(), GaveUp> {
        ItemReader::new(&self.context).read(wanted, sources, patience).await
    }

    /// Reads these sources, to the others, and gives those that DynamoDB refuses to read.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read now.
    pub async fn read_each(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<RefusedReads<Source>, GaveUp> {
        ItemReader::new(&self.context).read_each(wanted, sources, patience).await
    }
}
