//! The registry: the derivations of the functions that work on a table, with their versions, their start times, and
//! whether they are filled. It is the table's record of its own catalogue.
//!
//! *Keeps true*: when a derivation is [ready](Standing::Ready), every instance that handles a change has it, or first
//! publishes here that it does not. So either the backfill measures a count while all functions use one definition, or
//! the mark that the count is filled cannot be set.
//!
//! No deployment step writes the registry. Each instance compares the registry with its own catalogue from time to time
//! before a batch, and [publishes](crate::publishing) its own if they differ; so deployments and rollbacks show up by
//! themselves. An instance continues with its catalogue until its next check and the end of its longest invocation: its
//! maximum lifetime ([`Hold`]), which it publishes too. A derivation is not ready until that time has passed since its
//! last change.
//!
//! *Example*: the functions have `like-count`. A deployment adds `share-count`. Its first instance publishes it at
//! 12:00, and an old instance may handle a batch until 12:16. The effective time of `share-count` is 12:18, and it is
//! ready from 12:20 on: a backfill measures and adds what is missing, and marks it as filled. At 13:00 the deployment
//! is rolled back: the first old instance publishes, before it handles a batch, that it has no `share-count`. That
//! removes the mark, and a backfill that is running sets none.

pub mod difference;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::{
    catalogue::Catalogue,
    definition::definition,
    derivation::Derivation,
    effect::Effect,
    family::Family,
    guard::{Guard, Purpose},
    position::DerivationAt,
    schema::Schema,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_dynamo::{AttributeValue, from_attribute_value, to_attribute_value};

use crate::{
    attribute::{n, number, s},
    ledger::ledger_item,
};

/// Both families.
pub(crate) const FAMILIES: [Family; 2] = [Family::Additive, Family::LevelTriggered];

/// Partition key of the registry. Stored, so it is stable.
const CATALOGUE: &str = "CATALOGUE";

/// Attributes of its items. Stored, so they are stable.
const REVISION: &str = "Revision";
const HOLD_MS: &str = "HoldMs";
const FREE_MS: &str = "FreeMs";
const ATTACHED_MS: &str = "AttachedMs";
const RELEASE: &str = "Release";
const INDEX_KEYS: &str = "IndexKeys";
const DERIVATIONS: &str = "Derivations";

/// The registry of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    pub(crate) additive: Registered,
    pub(crate) level_triggered: Registered,
}

/// The registered derivations of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registered {
    /// How often it was written; 0 if nothing is registered.
    pub(crate) revision: u64,
    /// How long the instance that published this may continue without checking the registry, in milliseconds.
    pub(crate) hold_ms: u64,
    /// Until when an instance that published something else may continue, in milliseconds since the epoch.
    pub(crate) free_ms: u64,
    /// When the first instance published here, in milliseconds since the epoch; 0 if an earlier release did.
    pub(crate) attached_ms: u64,
    /// The release of this software that published this: another release may read a record that this one cannot.
    pub(crate) release: String,
    /// The index keys of each entity's items, for the level-triggered family: a repair sets them.
    pub(crate) index_keys: BTreeMap<String, String>,
    pub(crate) derivations: BTreeMap<String, RegistryEntry>,
}

/// The registered values of a derivation. Their names are stored, so they are stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RegistryEntry {
    /// What it derives, as a text.
    pub definition: String,
    /// Number of definitions under its name so far, from 1.
    pub version: u32,
    /// Since when the functions have this definition, in milliseconds since the epoch.
    pub since_ms: u64,
    /// The effective time, in milliseconds since the epoch. Records no longer count earlier changes: an instance
    /// without the derivation may have handled them without a receipt. A backfill counts them.
    pub birth_ms: u64,
    /// From when no instance with another definition can be running, in milliseconds since the epoch; for a dropped
    /// derivation, no instance with it at all.
    pub ready_ms: u64,
    /// When it was filled, or verified over the whole table, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled_ms: Option<u64>,
    /// When the functions dropped it, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_ms: Option<u64>,
}

/// How long an instance may continue without checking the registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// The time until its next check plus its longest invocation, in milliseconds.
    pub hold_ms: u64,
    /// How much the clocks of instances, operators and the database may differ, with rounded record times and late
    /// calls, in milliseconds.
    pub margin_ms: u64,
}

/// How a declared derivation compares with those of the functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All functions have it.
    Ready,
    /// The functions have it, but until then an instance without it may be running.
    Young {
        /// In milliseconds since the epoch.
        ready_ms: u64,
    },
    /// The functions have another definition of it.
    Otherwise {
        /// The functions' definition.
        theirs: String,
    },
    /// No function has it.
    Missing,
}

impl Registry {
    /// True if nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.additive.revision == 0 && self.level_triggered.revision == 0
    }

    /// The entry of a derivation.
    #[must_use]
    pub fn entry(&self, family: Family, name: &str) -> Option<&RegistryEntry> {
        self.of(family).derivations.get(name)
    }

    /// Names of the derivations that the functions have and this catalogue lacks. Their counters are correct, although
    /// no declaration explains them.
    #[must_use]
    pub fn live_beside(&self, catalogue: &Catalogue) -> Vec<&str> {
        let registered = [&self.additive, &self.level_triggered].into_iter().flat_map(|it| &it.derivations);
        let live = registered.filter(|(_, entry)| entry.dropped_ms.is_none()).map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = live.filter(|name| catalogue.position(name).is_none()).collect();
        names.sort_unstable();
        names
    }

    /// The entities with other index keys in the functions than in this schema.
    #[must_use]
    pub fn index_keys_beside(&self, schema: &Schema) -> Vec<String> {
        let (ours, theirs) = (index_keys(schema, Family::LevelTriggered), &self.level_triggered.index_keys);
        let differing = ours.iter().filter(|(name, keys)| theirs.get(*name) != Some(keys)).map(|(name, _)| name);
        let unknown = theirs.keys().filter(|name| !ours.contains_key(*name));
        differing.chain(unknown).cloned().collect()
    }

    /// True if this derivation is marked as filled.
    #[must_use]
    pub fn is_filled(&self, name: &str) -> bool {
        let registered = [&self.additive, &self.level_triggered].into_iter();
        registered.filter_map(|it| it.derivations.get(name)).any(|entry| entry.filled_ms.is_some())
    }

    /// The checks that the registry has not changed since it was read.
    #[must_use]
    pub fn unchanged(&self) -> [Write; 2] {
        FAMILIES.map(|family| self.of(family).unchanged(family))
    }

    /// How a declared derivation compares with those of the functions.
    pub(crate) fn standing(&self, derivation: &Derivation, schema: &Schema, now_ms: u64) -> Standing {
        let entry = self.entry(derivation.kind.family(), &derivation.name);
        let Some(entry) = entry.filter(|entry| entry.dropped_ms.is_none()) else { return Standing::Missing };
        if entry.definition != definition(derivation, schema) {
            return Standing::Otherwise { theirs: entry.definition.clone() };
        }
        if now_ms < entry.ready_ms {
            return Standing::Young { ready_ms: entry.ready_ms };
        }
        Standing::Ready
    }

    /// The registered derivations of a family.
    pub(crate) fn of(&self, family: Family) -> &Registered {
        match family {
            Family::Additive => &self.additive,
            Family::LevelTriggered => &self.level_triggered,
        }
    }
}

impl Registered {
    /// Until when an instance that published something else may be running, in milliseconds since the epoch.
    pub(crate) fn free_ms(&self) -> u64 {
        self.free_ms
    }

    /// The release that published this.
    pub(crate) fn release(&self) -> &str {
        &self.release
    }

    /// The check that it has not changed since it was read.
    pub(crate) fn unchanged(&self, family: Family) -> Write {
        let revision = Some(self.revision).filter(|revision| *revision > 0);
        let guard = Guard::as_read(Purpose::Registry, [(REVISION, revision.map(n))]);
        Write { table: Table::Ledger, key: key(family), action: Action::Check, guard: Some(guard) }
    }

    pub(crate) fn read(item: Option<&Item>) -> Self {
        let Some(item) = item else { return Self::default() };
        let read = |name| number(item, name).unwrap_or_default();
        Self {
            revision: read(REVISION),
            hold_ms: read(HOLD_MS),
            free_ms: read(FREE_MS),
            attached_ms: read(ATTACHED_MS),
            release: text(item, RELEASE).unwrap_or_default().to_owned(),
            index_keys: item.get(INDEX_KEYS).and_then(map_of).unwrap_or_default(),
            derivations: item.get(DERIVATIONS).and_then(map_of).unwrap_or_default(),
        }
    }

    /// The write that replaces the previous revision.
    pub(crate) fn write(&self, layout: &Layout, family: Family) -> Write {
        let key = key(family);
        let mut item = ledger_item(
            layout,
            &key,
            [
                (REVISION, n(self.revision)),
                (HOLD_MS, n(self.hold_ms)),
                (FREE_MS, n(self.free_ms)),
                (ATTACHED_MS, n(self.attached_ms)),
                (RELEASE, s(&self.release)),
            ],
        );
        if let Ok(derivations) = to_attribute_value(&self.derivations) {
            item.insert(DERIVATIONS.to_owned(), derivations);
        }
        if let (false, Ok(index_keys)) = (self.index_keys.is_empty(), to_attribute_value(&self.index_keys)) {
            item.insert(INDEX_KEYS.to_owned(), index_keys);
        }
        let before = self.revision.checked_sub(1).filter(|before| *before > 0);
        let guard = Guard::as_read(Purpose::Registry, [(REVISION, before.map(n))]);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(guard) }
    }
}

fn map_of<T: DeserializeOwned>(value: &AttributeValue) -> Option<BTreeMap<String, T>> {
    from_attribute_value(value.clone()).ok()
}

pub(crate) fn key(family: Family) -> Key {
    Key::new(CATALOGUE, family.to_string())
}

/// The definitions of a catalogue's derivations of a family, by name.
pub(crate) fn definitions(catalogue: &Catalogue, schema: &Schema, family: Family) -> BTreeMap<String, String> {
    let ours = catalogue.derivations().filter(|derivation| derivation.kind.family() == family);
    ours.map(|derivation| (derivation.name.clone(), definition(derivation, schema))).collect()
}

/// The index keys of each entity's items. They belong to no derivation, and so to the level-triggered family.
pub(crate) fn index_keys(schema: &Schema, family: Family) -> BTreeMap<String, String> {
    let entities = schema.entities().filter(|_| family == Family::LevelTriggered);
    let all = entities.map(|definition| (definition.name.clone(), derive::definition::index_keys(definition)));
    all.filter(|(_, keys)| !keys.is_empty()).collect()
}

/// A sample of the write, for the table's design.
pub(crate) fn sample(layout: &Layout, family: Family) -> Write {
    let ours = BTreeMap::from([("{Derivation}".to_owned(), "{Definition}".to_owned())]);
    let index_keys = BTreeMap::from([("{Entity}".to_owned(), "{IndexKeys}".to_owned())]);
    let index_keys = if family == Family::LevelTriggered { index_keys } else { BTreeMap::new() };
    let ours = Published { definitions: &ours, index_keys: &index_keys, release: "{Release}", hold: Hold::default() };
    Registered::default().published(family, &ours, 0).unwrap_or_default().write(layout, family)
}

// ---- absence ----

/// Whether any function has a derivation, or had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The functions have it.
    Live,
    /// It is dropped, but until then an instance with it may be running.
    Ending {
        /// In milliseconds since the epoch.
        gone_ms: u64,
    },
    /// It is dropped, and no instance has it.
    Gone,
    /// No function has registered it.
    Unknown,
}

impl Registry {
    /// Whether any function has a derivation with this name, or had it.
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

// ---- The registry of a family after an instance publishes its derivations ----

/// What an instance publishes for a family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published<'a> {
    /// The definitions of its derivations, by name.
    pub(crate) definitions: &'a BTreeMap<String, String>,
    /// The index keys of each entity's items.
    pub(crate) index_keys: &'a BTreeMap<String, String>,
    pub(crate) release: &'a str,
    pub(crate) hold: Hold,
}

impl Registered {
    /// The registry after an instance publishes its derivations; `None` if nothing changes.
    pub(crate) fn published(&self, family: Family, ours: &Published<'_>, now_ms: u64) -> Option<Self> {
        let Published { definitions: ours, index_keys, release, hold: Hold { hold_ms, margin_ms } } = *ours;
        // An instance from before the first publication published nothing; the counts that it applied remain.
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

    /// A registered derivation with this definition, under a name that is no longer declared. The new name writes the
    /// same, unless the name is stored, as it is in counters.
    fn renamed(&self, definition: &str, ours: &BTreeMap<String, String>) -> Option<&RegistryEntry> {
        let is_it = |(name, entry): &(&String, &RegistryEntry)| {
            entry.definition == definition && entry.dropped_ms.is_none() && !ours.contains_key(*name)
        };
        self.derivations.iter().find(is_it).map(|(_, entry)| entry)
    }
}

// ---- What an instance remembers of the registry between two checks ----

/// The release of this software. Instances of two releases may read a record differently, so the registry has it.
pub(crate) const THIS_RELEASE: &str = env!("CARGO_PKG_VERSION");

/// How an instance watches the registry. Clones share one state.
#[derive(Clone, Debug)]
pub struct RegistryWatch {
    /// Interval of the checks, in milliseconds.
    pub(crate) look_ms: u64,
    /// The maximum lifetime, if the instance publishes. An operator's command only reads, and is refused if its
    /// derivations differ.
    pub(crate) hold: Option<Hold>,
    pub(crate) release: &'static str,
    pub(crate) due_ms: Arc<AtomicU64>,
    /// By position in the catalogue, the time before which a change is not counted, in milliseconds since the epoch.
    pub(crate) births: Arc<RwLock<BTreeMap<DerivationAt, u64>>>,
    /// When the first instance published, in milliseconds since the epoch; 0 if that is unknown.
    pub(crate) attached_ms: Arc<AtomicU64>,
}

impl RegistryWatch {
    /// The watch of a function's instance that has not checked yet.
    #[must_use]
    pub fn publishing(look_ms: u64, hold: Hold) -> Self {
        Self { hold: Some(hold), ..Self::reading(look_ms) }
    }

    /// The watch of an operator's command.
    #[must_use]
    pub fn reading(look_ms: u64) -> Self {
        let (due_ms, births, attached_ms) = (Arc::default(), Arc::default(), Arc::default());
        Self { look_ms, hold: None, release: THIS_RELEASE, due_ms, births, attached_ms }
    }

    /// Sets another release.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn of_release(self, release: &'static str) -> Self {
        Self { release, ..self }
    }

    /// True if a record of this time belongs to the first backlog: it was written before the first instance published
    /// its derivations, so nothing was derived from earlier records either.
    pub(crate) fn is_first_backlog(&self, created_ms: u64) -> bool {
        created_ms < self.attached_ms.load(Ordering::Relaxed)
    }

    /// Removes from a plan the counts whose effective time is after the change. Returns true if it removed any.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Hold = Hold { hold_ms: 1_000, margin_ms: 10 };

    fn ours(declared: &[(&str, &str)]) -> BTreeMap<String, String> {
        declared.iter().map(|(name, definition)| ((*name).to_owned(), (*definition).to_owned())).collect()
    }

    fn published(before: &Registered, declared: &[(&str, &str)], now_ms: u64) -> Registered {
        published_of(Family::Additive, before, declared, HOLD, now_ms).unwrap()
    }

    fn published_of(
        family: Family,
        before: &Registered,
        declared: &[(&str, &str)],
        hold: Hold,
        now_ms: u64,
    ) -> Option<Registered> {
        let ours = Published { definitions: &ours(declared), index_keys: &BTreeMap::new(), release: "1", hold };
        before.published(family, &ours, now_ms)
    }

    #[test]
    fn one_that_is_added_is_ready_when_those_without_it_have_ended() {
        let first = published(&Registered::default(), &[("likes", "a")], 10_000);
        let second = published(&first, &[("likes", "a"), ("shares", "b")], 20_000);
        assert_eq!(second.derivations["likes"], first.derivations["likes"]);
        let shares = &second.derivations["shares"];
        assert_eq!((shares.birth_ms, shares.ready_ms), (21_010, 21_020));
        let again = published_of(Family::Additive, &second, &[("likes", "a"), ("shares", "b")], HOLD, 30_000);
        assert_eq!(again, None);
    }

    #[test]
    fn whoever_was_there_before_the_first_held_as_long_as_the_first_does() {
        let likes = &published(&Registered::default(), &[("likes", "a")], 10_000).derivations["likes"];
        assert_eq!((likes.birth_ms, likes.ready_ms), (0, 11_020), "and it counted what it counted");
    }

    #[test]
    fn another_release_runs_beside_the_one_before_and_leaves_what_is_filled() {
        let first = published(&Registered::default(), &[("likes", "a")], 10_000);
        let ours = ours(&[("likes", "a")]);
        let second = Published { definitions: &ours, index_keys: &BTreeMap::new(), release: "2", hold: HOLD };
        let second = first.published(Family::Additive, &second, 20_000).unwrap();
        assert_eq!((second.release.as_str(), second.free_ms), ("2", 21_000));
        assert_eq!(second.derivations, first.derivations);
    }

    #[test]
    fn one_that_is_changed_has_another_version_and_is_not_filled() {
        let mut first = published(&Registered::default(), &[("likes", "a")], 10_000);
        first.derivations.get_mut("likes").unwrap().filled_ms = Some(15_000);
        let changed = published(&first, &[("likes", "b")], 20_000).derivations["likes"].clone();
        assert_eq!((changed.version, changed.since_ms, changed.filled_ms), (2, 20_000, None));
        assert_eq!(changed.definition, "b");
    }

    #[test]
    fn one_that_goes_and_comes_back_has_to_be_filled_again() {
        let mut first = published(&Registered::default(), &[("likes", "a"), ("shares", "b")], 10_000);
        first.derivations.get_mut("shares").unwrap().filled_ms = Some(15_000);
        let without = published(&first, &[("likes", "a")], 20_000);
        assert_eq!(without.derivations["shares"].dropped_ms, Some(20_000));
        assert_eq!(without.derivations["shares"].filled_ms, None);
        let registry = Registry { additive: without.clone(), ..Registry::default() };
        let absences = [("likes", 0), ("shares", 21_019), ("shares", 21_020), ("views", 99_000)];
        let absences = absences.map(|(name, now_ms)| registry.absence(name, now_ms));
        let ending = Absence::Ending { gone_ms: 21_020 };
        assert_eq!(absences, [Absence::Live, ending, Absence::Gone, Absence::Unknown]);
        let back = published(&without, &[("likes", "a"), ("shares", "b")], 30_000).derivations["shares"].clone();
        assert_eq!((back.version, back.since_ms, back.ready_ms, back.filled_ms), (1, 30_000, 31_020, None));
    }

    #[test]
    fn an_instance_that_holds_long_is_waited_for_though_others_told_since() {
        let hold = Hold { hold_ms: 60_000, margin_ms: 10 };
        let first = published_of(Family::Additive, &Registered::default(), &[("a", "a")], hold, 10_000).unwrap();
        let second = published(&first, &[("b", "b")], 20_000);
        assert_eq!(second.derivations["b"].birth_ms, 80_010);
        assert_eq!(published(&second, &[("c", "c")], 21_000).derivations["c"].birth_ms, 80_010);
    }

    #[test]
    fn a_new_name_of_what_is_named_nowhere_is_filled_as_the_old_was() {
        let first = |family| {
            let mut first = published_of(family, &Registered::default(), &[("old", "a")], HOLD, 10_000).unwrap();
            first.derivations.get_mut("old").unwrap().filled_ms = Some(15_000);
            published_of(family, &first, &[("new", "a")], HOLD, 20_000).unwrap()
        };
        assert_eq!(first(Family::LevelTriggered).derivations["new"].filled_ms, Some(15_000));
        assert_eq!(first(Family::Additive).derivations["new"].filled_ms, None);
    }

    #[test]
    fn the_time_of_the_first_publication_stays() {
        let first = published(&Registered::default(), &[("likes", "a")], 10_000);
        let second = published(&first, &[("likes", "b")], 20_000);
        assert_eq!((first.attached_ms, second.attached_ms), (10_000, 10_000));
        let of_before = Registered { attached_ms: 0, ..first };
        assert_eq!(published(&of_before, &[("likes", "b")], 20_000).attached_ms, 0, "nobody knows when that was");
    }

    #[test]
    fn what_is_written_reads_back() {
        let layout = crate::fixture::layout();
        let registered = published(&Registered::default(), &[("likes", "a")], 10_000);
        let Action::Put(item) = registered.write(&layout, Family::Additive).action else { panic!("no put") };
        assert_eq!(Registered::read(Some(&item)), registered);
    }
}
