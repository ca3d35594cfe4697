//! Editing the registry: what those do who fill a derivation, or clear away what is left of one.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue,
    family::Family,
    query::Query,
    schema::Schema,
    write::{Table, Write},
};
use store::{Outcome, Store, StoreError};

use crate::{
    backoff::{GaveUp, Patience, Tries},
    park::partition,
    registry::{
        FAMILIES, Hold, Published, Registered, Registry, RegistryEntry, definitions, index_keys,
        publishing::{Publisher, THIS_RELEASE},
    },
};

impl<S: Store> Publisher<'_, S> {
    /// Marks derivations as filled that were ready when this was read, and have not been published otherwise since: all that was
    /// written before `until_ms` is in. Of what is parked nobody knows that, so counts are not marked while a change is.
    /// Says how many are.
    pub(crate) async fn mark_filled(
        &self,
        names: &BTreeSet<String>,
        read: &Registry,
        until_ms: u64,
        deadline_ms: u64,
    ) -> Result<usize, GaveUp> {
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        let first = Query { limit: Some(1), ..Query::prefix(None, partition(Family::Additive), "") };
        let parked = patience.call(|| self.context.store.query(Table::Ledger, &first, None)).await?;
        let is_parked = !parked.items.is_empty();
        let mut n_filled = 0;
        for family in FAMILIES.into_iter().filter(|family| *family != Family::Additive || !is_parked) {
            let fill = |registered: &mut Registered, now_ms| {
                let mut n_filled = 0;
                for name in names {
                    let Some(before) = read.of(family).derivations.get(name) else { continue };
                    let is_same =
                        |entry: &&mut RegistryEntry| entry.since_ms == before.since_ms && entry.dropped_ms.is_none();
                    if let Some(entry) = registered.derivations.get_mut(name).filter(is_same) {
                        entry.filled_ms = Some(now_ms);
                        entry.birth_ms = entry.birth_ms.max(until_ms);
                        n_filled += 1;
                    }
                }
                n_filled
            };
            n_filled += self.edit(family, deadline_ms, fill).await?;
        }
        Ok(n_filled)
    }

    /// Forgets derivations that the functions do not have any more. Says how many.
    pub(crate) async fn forget(&self, names: &BTreeSet<String>, deadline_ms: u64) -> Result<usize, GaveUp> {
        let mut n_forgotten = 0;
        for family in FAMILIES {
            let forget = |registered: &mut Registered, _| {
                let n_before = registered.derivations.len();
                registered.derivations.retain(|name, entry| entry.dropped_ms.is_none() || !names.contains(name));
                n_before - registered.derivations.len()
            };
            n_forgotten += self.edit(family, deadline_ms, forget).await?;
        }
        Ok(n_forgotten)
    }

    /// All instances that published something have ended.
    pub(crate) async fn leave(&self, deadline_ms: u64) -> Result<(), GaveUp> {
        for family in FAMILIES {
            let leave = |registered: &mut Registered, now_ms: u64| {
                registered.hold_ms = 0;
                registered.free_ms = registered.free_ms.min(now_ms);
                1
            };
            self.edit(family, deadline_ms, leave).await?;
        }
        Ok(())
    }

    /// Edits what is registered of a family, if something is, until nobody else does in between. Says how much was edited.
    async fn edit(
        &self,
        family: Family,
        deadline_ms: u64,
        edit: impl Fn(&mut Registered, u64) -> usize,
    ) -> Result<usize, GaveUp> {
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        let mut tries = Tries::default();
        loop {
            let mut registered = self.registered(family, patience).await?;
            let n_edited =
                if registered.revision == 0 { 0 } else { edit(&mut registered, self.context.clock.now_ms()) };
            if n_edited == 0 {
                return Ok(0);
            }
            registered.revision += 1;
            let write = registered.write(&self.context.schema.layout, family);
            if let Outcome::Done { .. } = patience.call(|| self.context.store.write(&write)).await? {
                return Ok(n_edited);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }
}

/// Registers a catalogue for a table that was just made: nothing is in it, so all is filled, and nobody has other
/// derivations. Does nothing where something is registered.
///
/// # Errors
///
/// [`StoreError`] when it cannot be written.
pub async fn begin<S: Store>(store: &S, schema: &Schema, catalogue: &Catalogue, now_ms: u64) -> Result<(), StoreError> {
    for family in FAMILIES {
        let ours = definitions(catalogue, schema, family);
        let index_keys = index_keys(schema, family);
        let (index_keys, release, hold) = (&index_keys, THIS_RELEASE, Hold::default());
        let ours = Published { definitions: &ours, index_keys, release, hold };
        let Some(mut registered) = Registered::default().published(family, &ours, now_ms) else { continue };
        for entry in registered.derivations.values_mut() {
            entry.filled_ms = Some(now_ms);
        }
        let write: Write = registered.write(&schema.layout, family);
        store.write(&write).await?;
    }
    Ok(())
}
