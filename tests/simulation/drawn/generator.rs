//! Draws a description that the reader takes, by construction: whatever a derivation needs is made with it.
//!
//! First come entities that others lead to (hubs), then entities that lead to them (children), by their keys or by attributes.
//! Then derivations are drawn one by one. Each adds what it writes as a new attribute or entity, and reads only what was there
//! before, so there is no circle; and each may build on what the ones before it derive. A new option of a kind is a draw in its
//! function of `rules`, a field of its rule in the description, a line of `toml`, and a loop of the oracle.

mod places;
mod rules;

pub(super) use crate::drawn::generator::places::with_meeting_keys;
pub(super) use rules::WORDS;

use super::description::{Description, FieldOf, Holds, KeyOf, Ref};
use crate::chance::Chance;

/// Most tables of a manifest.
const TABLES_MAX: usize = 4;

/// Most entities, derived ones included.
const ENTITIES_MAX: usize = 8;

/// Fewest and most derivations, and how often one is tried: not every kind is possible in every schema.
const RULES: (usize, usize) = (3, 8);
const TRIES_MAX: usize = 40;

/// Of a hundred manifests, how many have `[table]`, and of a hundred of these, how many have no type.
const ONE_TABLE_PERCENT: usize = 45;
const UNTYPED_PERCENT: usize = 20;

/// A description that grows.
struct Draft<'a> {
    chance: &'a Chance,
    of: Description,
    tables_max: usize,
    n_names: usize,
    /// Indexes by which the items of an entity are found that lead somewhere: entity, pairs and name.
    indexed: Vec<(usize, Ref, String)>,
    /// Sources of mirrors: mirror and source.
    mirrors: Vec<(usize, usize)>,
}

pub(super) fn draw(chance: &Chance) -> Description {
    let mut draft = Draft {
        chance,
        of: Description::default(),
        tables_max: TABLES_MAX,
        n_names: 0,
        indexed: Vec::new(),
        mirrors: Vec::new(),
    };
    if chance.percent(100 - ONE_TABLE_PERCENT) {
        draft.tables_max = *chance.one_of(&[TABLES_MAX, TABLES_MAX, 2, 1]).unwrap();
    } else {
        draft.one_table();
    }
    for _ in 0..chance.between(1, 2) {
        draft.hub();
    }
    let n_hubs = draft.of.entities.len();
    for _ in 0..chance.between(2, 3) {
        draft.child(n_hubs);
    }
    let n_rules = chance.between(RULES.0, RULES.1);
    for _ in 0..TRIES_MAX {
        if draft.of.rules.len() < n_rules {
            draft.rule();
        }
    }
    draft.of
}

impl Draft<'_> {
    /// A new name.
    fn name(&mut self, prefix: &str) -> String {
        self.n_names += 1;
        format!("{prefix}{}", self.n_names)
    }

    fn is_one_table(&self) -> bool {
        self.of.tables.first().is_some_and(|table| table.name.is_empty())
    }

    fn one<T: Clone>(&self, of: &[T]) -> Option<T> {
        self.chance.one_of(of).cloned()
    }
}

/// The type of a key that is such a field as it is.
fn key_of(field: FieldOf) -> KeyOf {
    match field {
        FieldOf::Number => KeyOf::N,
        FieldOf::Bytes => KeyOf::B,
        _ => KeyOf::S,
    }
}

/// Is an attribute of this a text that a key can be made of?
fn is_text(holds: Holds) -> bool {
    match holds {
        Holds::Word | Holds::Time => true,
        Holds::Id(field) => key_of(field) == KeyOf::S,
        Holds::Number | Holds::Members => false,
    }
}
