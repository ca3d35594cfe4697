//! What an operator's tools ask of an engine, which handle no batch: to find items that are not in step, and to bring
//! one in step.

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, refresh::Look, schema::Schema};
use keys::{item::Item, key::Key};
use store::Store;

use crate::{
    account::Account,
    backoff::{GaveUp, Patience},
    batch::{Batch, Engine},
    look::Held,
    look::bells::Bells,
    look::own_image::OwnImages,
};

/// What stands where looking names the record that rang: no record did.
const NO_RECORD: usize = 0;

impl<S: Store> Engine<S> {
    /// The schema that the engine goes by.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The catalogue that the engine goes by.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The tables.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Looks at what the inserts of these items would have looked at, as far as it `is_asked` for, and gives the looks at
    /// which something differs. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when what it is decided by cannot be read.
    pub async fn looks_that_differ(
        &self,
        items: Vec<(Key, Item)>,
        is_asked: impl Fn(&mut Look) -> bool,
        patience: Patience<'_>,
    ) -> Result<Vec<Look>, GaveUp> {
        let (mut bells, mut held) = (Bells::default(), Held::new());
        for (key, item) in items {
            let item = self.ring_as_inserted(key.clone(), item, &mut bells);
            held.insert(key, item);
        }
        bells.rung.retain(|_, rung| is_asked(&mut rung.look));
        let (differing, _) = self.differing_writes(bells, held, &Batch::without_records(patience)).await?;
        Ok(differing.into_iter().map(|(look, ..)| look).collect())
    }

    /// Looks at an item, and writes it where it differs; says whether it did.
    ///
    /// # Errors
    ///
    /// Why it cannot be written, or not now.
    pub async fn bring_in_step(&self, look: Look, patience: Patience<'_>) -> Result<bool, String> {
        let (mut bells, mut account) = (Bells::default(), Account::default());
        let Look { item, entity, derivations, named } = look;
        bells.add(item, entity, named.into_iter().collect(), &derivations, &BTreeSet::from([NO_RECORD]));
        let batch = Batch::without_records(patience);
        Box::pin(self.look_at_rung(bells, &OwnImages::of(std::iter::empty(), false), &batch, &mut account)).await;
        match account.undone.into_values().next() {
            Some(why) => Err(why),
            None => Ok(!account.commits.is_empty()),
        }
    }
}
