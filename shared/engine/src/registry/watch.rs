//! What an instance remembers of the registry between two looks at it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::{effect::Effect, position::DerivationAt};

use crate::registry::Hold;

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
