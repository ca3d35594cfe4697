//! Compares the declared derivations with the registered ones: what must be deployed, filled or removed.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue, definition::definition, derivation::Derivation, family::Family, kind::Shape, schema::Schema,
};

use crate::registry::{Registry, RegistryEntry};

/// A derivation and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueDifference {
    /// The derivation's label; its stored name if it is not declared.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// What it derives, as declared; as registered if it is not declared.
    pub definition: String,
    /// The version that the functions have, or had; `None` if none ever did.
    pub version: Option<u32>,
    /// Its state.
    pub state: DerivationState,
}

/// How a derivation compares with those of the functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivationState {
    /// It is declared, but no function has it.
    Added {
        /// An undeclared derivation of the functions with the same definition.
        renamed_from: Option<String>,
    },
    /// The functions have another definition of it.
    Changed {
        /// The functions' definition.
        was: String,
    },
    /// The functions have it, but instances without it may be running.
    Young {
        /// Until then, in milliseconds since the epoch.
        ready_ms: u64,
    },
    /// The functions have it, but earlier items may be missing.
    Unfilled {
        /// Since when the functions have it, in milliseconds since the epoch.
        since_ms: u64,
    },
    /// The functions have it, and it is filled, or cannot be filled.
    InStep {
        /// When it was filled, in milliseconds since the epoch; `None` if it cannot be filled.
        filled_ms: Option<u64>,
    },
    /// It is not declared, but the functions still have it.
    Undeclared,
    /// It is not declared and the functions have dropped it, but its derived data may still exist.
    Dropped {
        /// Since when, in milliseconds since the epoch.
        dropped_ms: u64,
    },
}

/// True if a backfill can derive the values of items from before the declaration. It cannot if sources may be gone, or
/// for a cascade, which acts when an item is removed.
#[must_use]
pub fn is_fillable(derivation: &Derivation) -> bool {
    !derivation.kind.is_history() && !matches!(derivation.kind.shape(), Shape::Cascade(_))
}

impl Registry {
    /// True if the functions have this derivation and it is not filled yet. Its missing values are then known.
    #[must_use]
    pub fn is_unfilled(&self, name: &str) -> bool {
        let registered = [&self.additive, &self.level_triggered].into_iter();
        let mut entries = registered.filter_map(|it| it.derivations.get(name));
        entries.any(|entry| entry.filled_ms.is_none() && entry.dropped_ms.is_none())
    }
}

/// The state of each declared or registered derivation, in the order of the catalogue; undeclared ones last.
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
