//! Publishing what an instance has in the registry, before it handles a batch, and reading it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::{
    effect::Effect,
    family::Family,
    position::{DerivationAt, RecordAt},
    write::Table,
};
use store::{Outcome, Store, StoreError};

use crate::{
    account::Commit,
    backoff::{GaveUp, Patience, Tries},
    context::Context,
    protocol::ProtocolStep,
    registry::{
        FAMILIES, Hold, Published, Registered, Registry, Standing, definitions, difference::is_fillable, index_keys,
        key,
    },
};

/// A registry in which nothing can be published.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It is not answered, or refused.
    #[error(transparent)]
    Store(#[from] GaveUp),
    /// An operator's command has other derivations than the functions.
    #[error(
        "the functions have other derivations than are declared here: {}; give --config and --disable as they have them, \
         or see `ripple catalogue diff`", names.join(", ")
    )]
    Differs {
        /// Those that differ.
        names: Vec<String>,
    },
}

/// Reads, publishes and edits what is registered.
pub(crate) struct Publisher<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Publisher<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Publisher<'_, S> {
    /// Looks at the registry if that is due, and publishes what this instance has if the registry says otherwise. A function's batch
    /// begins with it; an operator's command does it before each change that it hands over. Gives what was written.
    pub(crate) async fn publish(&self, deadline_ms: u64) -> Result<Vec<Commit>, RegistryError> {
        let mut commits = Vec::new();
        let Some(watch) = &self.context.watch else { return Ok(commits) };
        let now_ms = self.context.clock.now_ms();
        if now_ms < watch.due_ms.load(Ordering::Relaxed) || !self.context.takes(ProtocolStep::PublishFirst) {
            return Ok(commits);
        }
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        let (mut births, mut attached_ms) = (BTreeMap::new(), None);
        for family in &self.context.families {
            let registered = match watch.hold {
                Some(hold) => self.publish_family(*family, (watch.release, hold), patience, &mut commits).await?,
                None => self.read_family(*family, patience).await?,
            };
            births.extend(self.births(&registered));
            attached_ms = Some(attached_ms.map_or(registered.attached_ms, |ms: u64| ms.min(registered.attached_ms)));
        }
        watch.attached_ms.store(attached_ms.unwrap_or_default(), Ordering::Relaxed);
        *watch.births.write().unwrap_or_else(PoisonError::into_inner) = births;
        watch.due_ms.store(now_ms.saturating_add(watch.look_ms), Ordering::Relaxed);
        Ok(commits)
    }

    /// Reads the birth marks alone, whatever else is registered.
    pub(crate) async fn learn_births(&self, patience: Patience<'_>) -> Result<(), GaveUp> {
        let Some(watch) = &self.context.watch else { return Ok(()) };
        let births = self.births(&self.registered(Family::Additive, patience).await?).collect();
        *watch.births.write().unwrap_or_else(PoisonError::into_inner) = births;
        Ok(())
    }

    /// The birth marks of what is measured by its sources. What is not is counted by its arrivals alone.
    fn births(&self, registered: &Registered) -> impl Iterator<Item = (DerivationAt, u64)> {
        let born = self.context.catalogue.positioned().filter(|(_, derivation)| is_fillable(derivation));
        born.filter_map(|(at, derivation)| {
            let birth_ms = registered.derivations.get(&derivation.name)?.birth_ms;
            (birth_ms > 0).then_some((at, birth_ms))
        })
    }

    /// What is registered of a family, which is what this engine has, if anything is.
    async fn read_family(&self, family: Family, patience: Patience<'_>) -> Result<Registered, RegistryError> {
        let registered = self.registered(family, patience).await?;
        let ours = definitions(&self.context.catalogue, &self.context.schema, family);
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

    /// What is registered of a family, when it is what this engine has.
    async fn publish_family(
        &self,
        family: Family,
        (release, hold): (&str, Hold),
        patience: Patience<'_>,
        commits: &mut Vec<Commit>,
    ) -> Result<Registered, RegistryError> {
        let ours = definitions(&self.context.catalogue, &self.context.schema, family);
        let index_keys = index_keys(&self.context.schema, family);
        let ours = Published { definitions: &ours, index_keys: &index_keys, release, hold };
        let mut tries = Tries::default();
        loop {
            let before = self.registered(family, patience).await?;
            let now_ms = self.context.clock.now_ms();
            let Some(published) = before.published(family, &ours, now_ms) else { return Ok(before) };
            let write = published.write(&self.context.schema.layout, family);
            if let Outcome::Done { units } = patience.call(|| self.context.store.write(&write)).await? {
                commits.push(self.context.ledger_commit(&write.key, units, RecordAt(0)));
                tracing::info!(%family, revision = published.revision, "the functions have another catalogue, or are of another release, than before");
                return Ok(published);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None }.into());
            }
        }
    }

    /// What is registered.
    pub(crate) async fn registry(&self, deadline_ms: u64) -> Result<Registry, GaveUp> {
        Patience::new(self.context.clock.as_ref(), deadline_ms).call(|| read(&self.context.store)).await
    }

    /// How a derivation, by its position, stands to what the functions have. What is not ready may not be repaired: it would
    /// be measured by one definition and counted by another.
    #[must_use]
    pub(crate) fn standing(&self, registry: &Registry, at: DerivationAt) -> Standing {
        let Some(derivation) = self.context.catalogue.derivation(at) else { return Standing::Missing };
        match registry.standing(derivation, &self.context.schema, self.context.clock.now_ms()) {
            Standing::Young { .. } if !self.context.takes(ProtocolStep::ReadyFirst) => Standing::Ready,
            standing => standing,
        }
    }

    pub(crate) async fn registered(&self, family: Family, patience: Patience<'_>) -> Result<Registered, GaveUp> {
        let keys = [key(family)];
        let held = patience.call(|| self.context.store.get(Table::Ledger, &keys)).await?;
        Ok(Registered::read(held.first().map(|(_, item)| item)))
    }
}

/// What is registered.
///
/// # Errors
///
/// [`StoreError`] when it cannot be read.
pub async fn read<S: Store>(store: &S) -> Result<Registry, StoreError> {
    let held = store.get(Table::Ledger, &FAMILIES.map(key)).await?;
    let of = |family| Registered::read(held.iter().find(|(held, _)| *held == key(family)).map(|(_, item)| item));
    Ok(Registry { additive: of(Family::Additive), level_triggered: of(Family::LevelTriggered) })
}

// ---- What an instance remembers of the registry between two looks at it ----

/// The release of this software. Instances of two releases may read a record differently, so the registry has it.
pub(crate) const THIS_RELEASE: &str = env!("CARGO_PKG_VERSION");

/// How an instance watches the registry. Clones watch as one instance.
#[derive(Clone, Debug)]
pub struct RegistryWatch {
    /// How often it looks, in milliseconds.
    pub(crate) look_ms: u64,
    /// How long it may run on, where it publishes what it has; an operator's command only reads, and is refused where it has
    /// something else.
    pub(crate) hold: Option<Hold>,
    pub(crate) release: &'static str,
    pub(crate) due_ms: Arc<AtomicU64>,
    /// By position in the catalogue, before when a change is not counted, in milliseconds since the epoch.
    pub(crate) births: Arc<RwLock<BTreeMap<DerivationAt, u64>>>,
    /// When the first instance published, in milliseconds since the epoch; 0 where that is not known.
    pub(crate) attached_ms: Arc<AtomicU64>,
}

impl RegistryWatch {
    /// An instance of a function that has not looked yet.
    #[must_use]
    pub fn publishing(look_ms: u64, hold: Hold) -> Self {
        Self { hold: Some(hold), ..Self::reading(look_ms) }
    }

    /// An operator's command.
    #[must_use]
    pub fn reading(look_ms: u64) -> Self {
        let (due_ms, births, attached_ms) = (Arc::default(), Arc::default(), Arc::default());
        Self { look_ms, hold: None, release: THIS_RELEASE, due_ms, births, attached_ms }
    }

    /// The same of another release.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn of_release(self, release: &'static str) -> Self {
        Self { release, ..self }
    }

    /// Is a record of this time of the first backlog? It was written before the first instance published what it derives,
    /// so nothing was derived from the records before it either.
    pub(crate) fn is_first_backlog(&self, created_ms: u64) -> bool {
        created_ms < self.attached_ms.load(Ordering::Relaxed)
    }

    /// Takes out of a plan what is not counted by itself any more, since its change was written before the birth mark.
    /// Says whether it took anything.
    pub(crate) fn count_from_birth(&self, effects: &mut Vec<(DerivationAt, Effect)>, created_ms: Option<u64>) -> bool {
        let Some(created_ms) = created_ms else { return false };
        let births = self.births.read().unwrap_or_else(PoisonError::into_inner);
        if births.is_empty() {
            return false;
        }
        let n_planned = effects.len();
        let is_before = |at: &DerivationAt| births.get(at).is_some_and(|birth_ms| created_ms < *birth_ms);
        effects.retain(|(at, effect)| !matches!(effect, Effect::Add(_)) || !is_before(at));
        effects.len() < n_planned
    }
}
