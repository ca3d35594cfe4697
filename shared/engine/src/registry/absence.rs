//! Whether functions have a derivation that a catalogue lacks: until none can have it any more, its counters are right.

use super::{Registry, RegistryEntry};

/// Does any function have a derivation, or did one?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The functions have it.
    Live,
    /// It is dropped, and until then an instance may run that has it.
    Ending {
        /// In milliseconds since the epoch.
        gone_ms: u64,
    },
    /// It is dropped, and no instance has it any more.
    Gone,
    /// No function has registered it.
    Unknown,
}

impl Registry {
    /// Does any function have a derivation of this name, or did one?
    #[must_use]
    pub fn absence(&self, name: &str, now_ms: u64) -> Absence {
        let registered = [&self.additive, &self.level_triggered].into_iter();
        let entries: Vec<&RegistryEntry> = registered.filter_map(|it| it.derivations.get(name)).collect();
        let gone_ms = entries.iter().map(|entry| entry.ready_ms).max();
        match gone_ms {
            None => Absence::Unknown,
            Some(_) if entries.iter().any(|entry| entry.dropped_ms.is_none()) => Absence::Live,
            Some(gone_ms) if now_ms < gone_ms => Absence::Ending { gone_ms },
            Some(_) => Absence::Gone,
        }
    }
}
