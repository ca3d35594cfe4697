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

use super::description::{Description, DrawnIndex, FieldOf, Holds, KeyOf, Piece, Ref, What};
use crate::{chance::Chance, oracle::table::escaped};

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

/// Texts that fields of keys have. Of a hundred manifests, how many have one more, by which a key is as long as it may be.
const TEXTS: [&str; 4] = ["a", "b#c", "50%", "d/é"];
const LONG_PERCENT: usize = 20;

/// How long a key may be. Source: DynamoDB developer guide, "Constraints".
const PARTITION_KEY_BYTES_MAX: usize = 2_048;
const SORT_KEY_BYTES_MAX: usize = 1_024;

/// The length of a number or of bytes in a key, and of what a counter's key has beside its target's.
const FIELD_BYTES_MAX: usize = 32;
const COUNTER_BYTES_MAX: usize = 64;

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
    draft.of.texts = TEXTS.map(str::to_owned).into();
    // An entry has the keys of its target and of its item in its own.
    let has_entries = draft.of.rules.iter().any(|rule| matches!(&rule.what, What::Latest(rule) if rule.by.is_some()));
    if chance.percent(LONG_PERCENT) && !has_entries {
        let long = longest(&draft.of);
        draft.of.texts.push(long);
    }
    draft.of
}

/// The longest text that every field of every key may have at once.
fn longest(of: &Description) -> String {
    let text = |n_bytes: usize| format!("é#%{}", "x".repeat(n_bytes.saturating_sub(4)));
    let (mut n_bytes, mut too_many) = (4, PARTITION_KEY_BYTES_MAX);
    while n_bytes + 1 < too_many {
        let middle = n_bytes.midpoint(too_many);
        if has_room(of, &text(middle)) {
            n_bytes = middle;
        } else {
            too_many = middle;
        }
    }
    text(n_bytes)
}

/// Does no key become too long, with this text in each of its fields? A counter has its target's key in its own, escaped.
fn has_room(of: &Description, text: &str) -> bool {
    let bytes = |pieces: &[Piece], has_forms: bool| -> usize {
        let of_piece = |piece: &Piece| match piece {
            Piece::Text(literal) => literal.len(),
            // A time may be the id of another item, which is any text.
            Piece::Field(_, FieldOf::Text | FieldOf::Time) if has_forms => escaped(text).len(),
            Piece::Field(_, FieldOf::Text | FieldOf::Time) => text.len(),
            Piece::Field(_, FieldOf::Padded(width) | FieldOf::Inverted(width)) => *width,
            Piece::Field(_, FieldOf::Number | FieldOf::Bytes) => FIELD_BYTES_MAX,
        };
        pieces.iter().map(of_piece).sum()
    };
    let fits = |(pk, sk): (&[Piece], &[Piece]), has_forms: bool, beside: usize| {
        bytes(pk, has_forms) + beside <= PARTITION_KEY_BYTES_MAX && bytes(sk, has_forms) + beside <= SORT_KEY_BYTES_MAX
    };
    // An index over values takes any attribute as it is.
    let values = of.tables.iter().flat_map(|table| &table.indexes).filter(|index| !index.has_forms);
    let bytes_max = |index: &DrawnIndex| if index.sk.is_empty() { PARTITION_KEY_BYTES_MAX } else { SORT_KEY_BYTES_MAX };
    let fits_values = values.map(bytes_max).all(|bytes_max| text.len() <= bytes_max);
    fits_values
        && of.entities.iter().enumerate().all(|(at, entity)| {
            let form = &of.tables[entity.table];
            let is_counted = of.rules.iter().any(|rule| match &rule.what {
                What::Count(rule) => rule.to == at,
                What::RollUp(rule) => rule.to == at,
                What::Extreme { to, .. } => *to == at,
                _ => false,
            });
            let beside = if is_counted { COUNTER_BYTES_MAX } else { 0 };
            let keys = entity.index_keys.iter().all(|key| fits((&key.pk, &key.sk), true, 0));
            keys && fits((&entity.pk, &entity.sk), form.has_forms || is_counted, beside)
        })
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
