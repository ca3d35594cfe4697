//! Publishes an instance's derivations in the registry before a batch, reads the registry, and edits it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{PoisonError, atomic::Ordering},
};

use derive::{
    catalogue::Catalogue,
    family::Family,
    position::{DerivationAt, RecordAt},
    query::Query,
    schema::Schema,
    write::{Table, Write},
};
use store::{Outcome, Store, StoreError};

use crate::{
    account::Commit,
    backoff::{GaveUp, Patience, Tries},
    context::Context,
    ledger::parked_partition,
    protocol::ProtocolStep,
    registry::{
        FAMILIES, Hold, Published, Registered, Registry, RegistryEntry, Standing, THIS_RELEASE, definitions,
        difference::is_fillable, index_keys, key,
    },
};

/// Why nothing can be published in the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The store does not answer, or refuses the call.
    #[error(transparent)]
    Store(#[from] GaveUp),
    /// An operator's command has other derivations than the functions.
    #[error(
        "the functions have other derivations than are declared here: {}; give --config and --disable as they have them, \
         or see `ripple catalogue diff`", names.join(", ")
    )]
    Differs {
        /// The derivations that differ.
        names: Vec<String>,
    },
}

/// Checks the registry if that is due, and publishes this instance's derivations if they differ. A function does this
/// before each batch, an operator's command before each change that it handles. Returns the writes.
pub(crate) async fn publish<S: Store>(context: &Context<S>, deadline_ms: u64) -> Result<Vec<Commit>, RegistryError> {
    let mut commits = Vec::new();
    let Some(watch) = &context.watch else { return Ok(commits) };
    let now_ms = context.clock.now_ms();
    if now_ms < watch.due_ms.load(Ordering::Relaxed) || !context.takes(ProtocolStep::PublishFirst) {
        return Ok(commits);
    }
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    let (mut births, mut attached_ms) = (BTreeMap::new(), None);
    for family in &context.families {
        let registered = match watch.hold {
            Some(hold) => publish_family(context, *family, (watch.release, hold), patience, &mut commits).await?,
            None => read_family(context, *family, patience).await?,
        };
        births.extend(births_of(context, &registered));
        attached_ms = Some(attached_ms.map_or(registered.attached_ms, |ms: u64| ms.min(registered.attached_ms)));
    }
    watch.attached_ms.store(attached_ms.unwrap_or_default(), Ordering::Relaxed);
    *watch.births.write().unwrap_or_else(PoisonError::into_inner) = births;
    watch.due_ms.store(now_ms.saturating_add(watch.look_ms), Ordering::Relaxed);
    Ok(commits)
}

/// Reads only the effective times, whatever else is registered.
pub(crate) async fn learn_births<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<(), GaveUp> {
    let Some(watch) = &context.watch else { return Ok(()) };
    let births = births_of(context, &registered(context, Family::Additive, patience).await?).collect();
    *watch.births.write().unwrap_or_else(PoisonError::into_inner) = births;
    Ok(())
}

/// The effective times of counts that a backfill can measure from their sources. All others count their arrivals alone.
fn births_of<S: Store>(context: &Context<S>, registered: &Registered) -> impl Iterator<Item = (DerivationAt, u64)> {
    let born = context.catalogue.positioned().filter(|(_, derivation)| is_fillable(derivation));
    born.filter_map(|(at, derivation)| {
        let birth_ms = registered.derivations.get(&derivation.name)?.birth_ms;
        (birth_ms > 0).then_some((at, birth_ms))
    })
}

/// The registered derivations of a family, if they equal this engine's or nothing is registered.
async fn read_family<S: Store>(
    context: &Context<S>,
    family: Family,
    patience: Patience<'_>,
) -> Result<Registered, RegistryError> {
    let registered = registered(context, family, patience).await?;
    let ours = definitions(&context.catalogue, &context.schema, family);
    let theirs = registered.derivations.iter().filter(|(_, entry)| entry.dropped_ms.is_none());
    let theirs: BTreeMap<&String, &String> = theirs.map(|(name, entry)| (name, &entry.definition)).collect();
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys().copied()).collect();
    let differs = |name: &&String| ours.get(*name) != theirs.get(*name).copied();
    let names: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    if registered.revision > 0 && !names.is_empty() {
        return Err(RegistryError::Differs { names });
    }
    Ok(registered)
}

/// The registered derivations of a family, after this engine's are published.
async fn publish_family<S: Store>(
    context: &Context<S>,
    family: Family,
    (release, hold): (&str, Hold),
    patience: Patience<'_>,
    commits: &mut Vec<Commit>,
) -> Result<Registered, RegistryError> {
    let ours = definitions(&context.catalogue, &context.schema, family);
    let index_keys = index_keys(&context.schema, family);
    let ours = Published { definitions: &ours, index_keys: &index_keys, release, hold };
    let mut tries = Tries::default();
    loop {
        let before = registered(context, family, patience).await?;
        let now_ms = context.clock.now_ms();
        let Some(published) = before.published(family, &ours, now_ms) else { return Ok(before) };
        let write = published.write(&context.schema.layout, family);
        if let Outcome::Done { units } = patience.call(|| context.store.write(&write)).await? {
            commits.push(context.ledger_commit(&write.key, units, RecordAt(0)));
            tracing::info!(%family, revision = published.revision, "the functions have another catalogue, or are of another release, than before");
            return Ok(published);
        }
        if !patience.wait(&mut tries).await {
            return Err(GaveUp::OutOfTime { last: None }.into());
        }
    }
}

/// The registry.
pub(crate) async fn registry<S: Store>(context: &Context<S>, deadline_ms: u64) -> Result<Registry, GaveUp> {
    Patience::new(context.clock.as_ref(), deadline_ms).call(|| read(&context.store)).await
}

/// How a derivation, by its position, compares with those of the functions. One that is not ready may not be repaired:
/// it would be measured by one definition and counted by another.
#[must_use]
pub(crate) fn standing<S: Store>(context: &Context<S>, registry: &Registry, at: DerivationAt) -> Standing {
    let Some(derivation) = context.catalogue.derivation(at) else { return Standing::Missing };
    match registry.standing(derivation, &context.schema, context.clock.now_ms()) {
        Standing::Young { .. } if !context.takes(ProtocolStep::ReadyFirst) => Standing::Ready,
        standing => standing,
    }
}

pub(crate) async fn registered<S: Store>(
    context: &Context<S>,
    family: Family,
    patience: Patience<'_>,
) -> Result<Registered, GaveUp> {
    Ok(Registered::read(context.item(Table::Ledger, &key(family), patience).await?.as_ref()))
}

/// The registry.
///
/// # Errors
///
/// [`StoreError`] if the registry cannot be read.
pub async fn read<S: Store>(store: &S) -> Result<Registry, StoreError> {
    let stored = store.get(Table::Ledger, &FAMILIES.map(key)).await?;
    let of = |family| Registered::read(stored.iter().find(|(stored, _)| *stored == key(family)).map(|(_, item)| item));
    Ok(Registry { additive: of(Family::Additive), level_triggered: of(Family::LevelTriggered) })
}

// ---- Editing the registry: after a backfill, and when leftovers are removed ----

/// Marks derivations as filled that were ready in `read` and have not been republished since: all changes from before
/// `until_ms` are counted. Parked changes may be missing, so counts are not marked while a change is parked. Returns
/// the number of marked derivations.
pub(crate) async fn mark_filled<S: Store>(
    context: &Context<S>,
    names: &BTreeSet<String>,
    read: &Registry,
    until_ms: u64,
    deadline_ms: u64,
) -> Result<usize, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    let first = Query { limit: Some(1), ..Query::prefix(None, parked_partition(Family::Additive), "") };
    let parked = patience.call(|| context.store.query(Table::Ledger, &first, None)).await?;
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
        n_filled += edit(context, family, deadline_ms, fill).await?;
    }
    Ok(n_filled)
}

/// Removes derivations that the functions have dropped. Returns their number.
pub(crate) async fn forget<S: Store>(
    context: &Context<S>,
    names: &BTreeSet<String>,
    deadline_ms: u64,
) -> Result<usize, GaveUp> {
    let mut n_forgotten = 0;
    for family in FAMILIES {
        let forget = |registered: &mut Registered, _| {
            let n_before = registered.derivations.len();
            registered.derivations.retain(|name, entry| entry.dropped_ms.is_none() || !names.contains(name));
            n_before - registered.derivations.len()
        };
        n_forgotten += edit(context, family, deadline_ms, forget).await?;
    }
    Ok(n_forgotten)
}

/// Notes that all instances that published something have ended.
pub(crate) async fn leave<S: Store>(context: &Context<S>, deadline_ms: u64) -> Result<(), GaveUp> {
    for family in FAMILIES {
        let leave = |registered: &mut Registered, now_ms: u64| {
            registered.hold_ms = 0;
            registered.free_ms = registered.free_ms.min(now_ms);
            1
        };
        edit(context, family, deadline_ms, leave).await?;
    }
    Ok(())
}

/// Edits the registered values of a family, if there are any, and repeats this if another process edits them meanwhile.
/// Returns the number of edits.
async fn edit<S: Store>(
    context: &Context<S>,
    family: Family,
    deadline_ms: u64,
    edit: impl Fn(&mut Registered, u64) -> usize,
) -> Result<usize, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    let mut tries = Tries::default();
    loop {
        let mut registered = registered(context, family, patience).await?;
        let n_edited = if registered.revision == 0 { 0 } else { edit(&mut registered, context.clock.now_ms()) };
        if n_edited == 0 {
            return Ok(0);
        }
        registered.revision += 1;
        let write = registered.write(&context.schema.layout, family);
        if let Outcome::Done { .. } = patience.call(|| context.store.write(&write)).await? {
            return Ok(n_edited);
        }
        if !patience.wait(&mut tries).await {
            return Err(GaveUp::OutOfTime { last: None });
        }
    }
}

/// Registers a catalogue for a table that was just created: the table is empty, so all is filled, and no function has
/// other derivations. Does nothing if something is registered.
///
/// # Errors
///
/// [`StoreError`] if the registry cannot be written.
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
