//! What is declared beside what is registered: what has to be deployed, filled or cleared away.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue, definition::definition, derivation::Derivation, family::Family, kind::Shape, schema::Schema,
};

use crate::registry::{Registry, RegistryEntry};

/// How a derivation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueDifference {
    /// What people call the derivation; its stored name where it is not declared.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// What it derives, as it is declared; as it is registered where it is not declared.
    pub definition: String,
    /// Which version of it the functions have, or had; `None` where none ever did.
    pub version: Option<u32>,
    /// How it stands.
    pub state: DerivationState,
}

/// How a derivation stands to what the functions have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivationState {
    /// It is declared, and no function has it.
    Added {
        /// One that the functions have, that derives the same, and is not declared.
        renamed_from: Option<String>,
    },
    /// The functions have it otherwise.
    Changed {
        /// What theirs derives.
        was: String,
    },
    /// The functions have it, and instances may run that do not.
    Young {
        /// Until then, in milliseconds since the epoch.
        ready_ms: u64,
    },
    /// The functions have it, and what was there before them may be missing.
    Unfilled {
        /// Since when they have it, in milliseconds since the epoch.
        since_ms: u64,
    },
    /// The functions have it, and it is filled, or is nothing that could be.
    InStep {
        /// When it was filled, in milliseconds since the epoch; `None` where it is nothing that could be.
        filled_ms: Option<u64>,
    },
    /// It is not declared, and the functions still have it.
    Undeclared,
    /// It is not declared, the functions do not have it any more, and what it derived may still be there.
    Dropped {
        /// Since when, in milliseconds since the epoch.
        dropped_ms: u64,
    },
}

/// Can what was there before a derivation was declared be derived afterwards? Not where sources may be gone, and not
/// where something is done when an item is removed.
#[must_use]
pub fn is_fillable(derivation: &Derivation) -> bool {
    !derivation.kind.is_history() && !matches!(derivation.kind.shape(), Shape::Cascade(_))
}

impl Registry {
    /// Do the functions have this derivation, and is it not filled yet? Then what it lacks of before is known.
    #[must_use]
    pub fn is_unfilled(&self, name: &str) -> bool {
        let registered = [&self.additive, &self.level_triggered].into_iter();
        let mut entries = registered.filter_map(|it| it.derivations.get(name));
        entries.any(|entry| entry.filled_ms.is_none() && entry.dropped_ms.is_none())
    }
}

/// How each derivation that is declared or registered stands, in the order of the catalogue, those that are not declared
/// last.
#[must_use]
pub fn differences(
    schema: &Schema,
    catalogue: &Catalogue,
    registry: &Registry,
    now_ms: u64,
) -> Vec<CatalogueDifference> {
    let declared: BTreeSet<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    let families = [Family::Additive, Family::LevelTriggered];
    let registered = |family| registry.of(family).derivations.iter().map(move |(name, entry)| (family, name, entry));
    let undeclared: Vec<(Family, &String, &RegistryEntry)> =
        families.into_iter().flat_map(registered).filter(|(_, name, _)| !declared.contains(name.as_str())).collect();
    let of_declared = |derivation: &Derivation| {
        let (family, definition) = (derivation.kind.family(), definition(derivation, schema));
        let entry = registry.entry(family, &derivation.name);
        let state = match entry.filter(|entry| entry.dropped_ms.is_none()) {
            None => {
                let derives_it = |(_, _, entry): &&(Family, &String, &RegistryEntry)| entry.definition == definition;
                let renamed_from = undeclared.iter().find(derives_it).map(|(_, name, _)| (*name).clone());
                DerivationState::Added { renamed_from }
            }
            Some(entry) if entry.definition != definition => DerivationState::Changed { was: entry.definition.clone() },
            Some(_) if !is_fillable(derivation) => DerivationState::InStep { filled_ms: None },
            Some(RegistryEntry { filled_ms: Some(filled_ms), .. }) => {
                DerivationState::InStep { filled_ms: Some(*filled_ms) }
            }
            Some(RegistryEntry { ready_ms, .. }) if now_ms < *ready_ms => {
                DerivationState::Young { ready_ms: *ready_ms }
            }
            Some(RegistryEntry { since_ms, .. }) => DerivationState::Unfilled { since_ms: *since_ms },
        };
        let (name, version) = (derivation.label().to_owned(), entry.map(|entry| entry.version));
        CatalogueDifference { name, family, definition, version, state }
    };
    let of_undeclared = |(family, name, entry): &(Family, &String, &RegistryEntry)| CatalogueDifference {
        name: (*name).clone(),
        family: *family,
        definition: entry.definition.clone(),
        version: Some(entry.version),
        state: entry
            .dropped_ms
            .map_or(DerivationState::Undeclared, |dropped_ms| DerivationState::Dropped { dropped_ms }),
    };
    catalogue.derivations().map(of_declared).chain(undeclared.iter().map(of_undeclared)).collect()
}
