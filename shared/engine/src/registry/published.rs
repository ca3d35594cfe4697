//! What the registry of a family becomes when an instance publishes what it has.

use std::collections::BTreeMap;

use derive::family::Family;

use crate::registry::{Hold, Registered, RegistryEntry};

/// What an instance publishes of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published<'a> {
    /// The definitions of its derivations, by name.
    pub(super) definitions: &'a BTreeMap<String, String>,
    /// The index keys of each entity's items.
    pub(super) index_keys: &'a BTreeMap<String, String>,
    pub(super) release: &'a str,
    pub(super) hold: Hold,
}

impl Registered {
    /// What it becomes when an instance publishes what it has; `None` when it says so already.
    pub(super) fn published(&self, family: Family, ours: &Published<'_>, now_ms: u64) -> Option<Self> {
        let Published { definitions: ours, index_keys, release, hold: Hold { hold_ms, margin_ms } } = *ours;
        // Whoever was here before this was kept published nothing; what it counted it goes on to count.
        let is_first = self.revision == 0;
        let others_ms = if is_first { hold_ms } else { self.hold_ms };
        let free_ms = self.free_ms.max(now_ms.saturating_add(others_ms));
        let birth_ms = free_ms.saturating_add(margin_ms);
        let mut derivations = self.derivations.clone();
        for (name, definition) in ours {
            let before = self.derivations.get(name);
            if before.is_some_and(|entry| entry.definition == *definition && entry.dropped_ms.is_none()) {
                continue;
            }
            let renamed = self.renamed(definition, ours).filter(|_| family == Family::LevelTriggered);
            let entry = renamed.cloned().unwrap_or_else(|| RegistryEntry {
                definition: definition.clone(),
                version: before.map_or(1, |entry| entry.version + u32::from(entry.definition != *definition)),
                since_ms: now_ms,
                birth_ms: if is_first { 0 } else { birth_ms },
                ready_ms: birth_ms.saturating_add(margin_ms),
                filled_ms: None,
                dropped_ms: None,
            });
            derivations.insert(name.clone(), entry);
        }
        for (name, entry) in &mut derivations {
            if !ours.contains_key(name) && entry.dropped_ms.is_none() {
                (entry.dropped_ms, entry.filled_ms) = (Some(now_ms), None);
                entry.ready_ms = birth_ms.saturating_add(margin_ms);
            }
        }
        let are_keys_same = *index_keys == self.index_keys;
        let is_same = derivations == self.derivations && are_keys_same && release == self.release && !is_first;
        if is_same && hold_ms <= self.hold_ms {
            return None;
        }
        let free_ms = if is_same { self.free_ms } else { free_ms };
        let attached_ms = if is_first { now_ms } else { self.attached_ms };
        let (release, index_keys) = (release.to_owned(), index_keys.clone());
        Some(Self { revision: self.revision + 1, hold_ms, free_ms, attached_ms, release, index_keys, derivations })
    }

    /// One that derived just this under a name that is ours no more. What it wrote is what the new name writes, where no
    /// name is stored: in a counter it is.
    fn renamed(&self, definition: &str, ours: &BTreeMap<String, String>) -> Option<&RegistryEntry> {
        let is_it = |(name, entry): &(&String, &RegistryEntry)| {
            entry.definition == definition && entry.dropped_ms.is_none() && !ours.contains_key(*name)
        };
        self.derivations.iter().find(is_it).map(|(_, entry)| entry)
    }
}
