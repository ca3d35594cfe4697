//! Telling the registry what an instance has, before it handles a batch, and learning it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::{derivation::Family, effect::Effect, write::Table};
use store::{Outcome, Store, StoreError};

use super::{Hold, Registered, Registry, Standing, definitions, difference::is_fillable, key};
use crate::{
    account::Commit,
    backoff::{GaveUp, Patience, Tries},
    batch::Engine,
    protocol::ProtocolStep,
};

/// Both families.
pub(super) const FAMILIES: [Family; 2] = [Family::Additive, Family::LevelTriggered];

/// How an instance looks at the registry. Clones look as one instance.
#[derive(Clone, Debug)]
pub struct Looking {
    /// How often it looks, in milliseconds.
    look_ms: u64,
    /// How long it may run on, where it tells what it has; an operator's command only learns, and is refused where it has
    /// something else.
    hold: Option<Hold>,
    due_ms: Arc<AtomicU64>,
    /// By position in the catalogue, before when a change is not counted, in milliseconds since the epoch.
    births: Arc<RwLock<BTreeMap<usize, u64>>>,
}

impl Looking {
    /// An instance of a function that has not looked yet.
    #[must_use]
    pub fn telling(look_ms: u64, hold: Hold) -> Self {
        Self { look_ms, hold: Some(hold), due_ms: Arc::default(), births: Arc::default() }
    }

    /// An operator's command.
    #[must_use]
    pub fn learning(look_ms: u64) -> Self {
        Self { look_ms, hold: None, due_ms: Arc::default(), births: Arc::default() }
    }
}

/// A registry that cannot be told.
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

impl<S: Store> Engine<S> {
    /// Looks at the registry if that is due, and tells it what this instance has if it says otherwise. A function's batch
    /// begins with it; an operator's command does it before each change that it hands over. Gives what was written.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]; then nothing may be handled.
    pub async fn tell(&self, deadline_ms: u64) -> Result<Vec<Commit>, RegistryError> {
        let mut commits = Vec::new();
        let Some(looking) = &self.looking else { return Ok(commits) };
        let now_ms = self.clock.now_ms();
        if now_ms < looking.due_ms.load(Ordering::Relaxed) || !self.takes(ProtocolStep::TellFirst) {
            return Ok(commits);
        }
        let patience = Patience { clock: self.clock.as_ref(), deadline_ms };
        let mut births = BTreeMap::new();
        for family in &self.families {
            let registered = match looking.hold {
                Some(hold) => self.tell_of(*family, hold, patience, &mut commits).await?,
                None => self.learn_of(*family, patience).await?,
            };
            births.extend(self.births(&registered));
        }
        *looking.births.write().unwrap_or_else(PoisonError::into_inner) = births;
        looking.due_ms.store(now_ms.saturating_add(looking.look_ms), Ordering::Relaxed);
        Ok(commits)
    }

    /// The birth marks of what is measured by its sources. What is not is counted by its inserts alone.
    fn births(&self, registered: &Registered) -> impl Iterator<Item = (usize, u64)> {
        let born = self.catalogue.derivations().enumerate().filter(|(_, derivation)| is_fillable(derivation));
        born.filter_map(|(at, derivation)| {
            let birth_ms = registered.derivations.get(&derivation.name)?.birth_ms;
            (birth_ms > 0).then_some((at, birth_ms))
        })
    }

    /// Takes out of a plan what is not counted by itself any more, since its change was written before the birth mark.
    pub(crate) fn count_from_birth(&self, effects: &mut Vec<(usize, Effect)>, created_ms: Option<u64>) {
        let (Some(looking), Some(created_ms)) = (&self.looking, created_ms) else { return };
        let births = looking.births.read().unwrap_or_else(PoisonError::into_inner);
        if births.is_empty() || !self.takes(ProtocolStep::BirthMark) {
            return;
        }
        let is_before = |at: &usize| births.get(at).is_some_and(|birth_ms| created_ms < *birth_ms);
        effects.retain(|(at, effect)| !matches!(effect, Effect::Add(_)) || !is_before(at));
    }

    /// What is registered of a family, which is what this engine has, if anything is.
    async fn learn_of(&self, family: Family, patience: Patience<'_>) -> Result<Registered, RegistryError> {
        let registered = self.registered(family, patience).await?;
        let ours = definitions(&self.catalogue, &self.schema, family);
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
    async fn tell_of(
        &self,
        family: Family,
        hold: Hold,
        patience: Patience<'_>,
        commits: &mut Vec<Commit>,
    ) -> Result<Registered, RegistryError> {
        let ours = definitions(&self.catalogue, &self.schema, family);
        let mut tries = Tries::default();
        loop {
            let before = self.registered(family, patience).await?;
            let now_ms = self.clock.now_ms();
            let Some(told) = before.told(family, &ours, hold, now_ms) else { return Ok(before) };
            let write = told.write(&self.schema.layout, family);
            if let Outcome::Done { units } = patience.call(|| self.store.write(&write)).await? {
                commits.push(self.bookkeeping(&write.key, units, 0));
                tracing::info!(%family, revision = told.revision, "the functions have another catalogue than before");
                return Ok(told);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None }.into());
            }
        }
    }

    /// What is registered.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when that cannot be read.
    pub async fn registry(&self, deadline_ms: u64) -> Result<Registry, GaveUp> {
        Patience { clock: self.clock.as_ref(), deadline_ms }.call(|| read(&self.store)).await
    }

    /// How a derivation, by its position, stands to what the functions have. What is not ready may not be repaired: it would
    /// be measured by one definition and counted by another.
    #[must_use]
    pub fn standing(&self, registry: &Registry, at: usize) -> Standing {
        let Some(derivation) = self.catalogue.derivation(at) else { return Standing::Missing };
        match registry.standing(derivation, &self.schema, self.clock.now_ms()) {
            Standing::Young { .. } if !self.takes(ProtocolStep::ReadyFirst) => Standing::Ready,
            standing => standing,
        }
    }

    pub(super) async fn registered(&self, family: Family, patience: Patience<'_>) -> Result<Registered, GaveUp> {
        let keys = [key(family)];
        let held = patience.call(|| self.store.get(Table::Ledger, &keys)).await?;
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
