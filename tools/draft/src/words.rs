//! Which parts of keys are constant, such as `USER` in `USER#123`, when nothing names the kind of an item.
//!
//! A key is divided at `#`. A part is a *word* if it has no digit; a *prefix* is a word with a separator in front of a
//! value, such as `user_` in `user_123`. A word or prefix is constant if few different ones stand at its place.

use std::collections::{BTreeMap, BTreeSet};

use keys::item::{Item, text};

use crate::shape::TableShape;

/// Most different words at one place. A table with more kinds of items than this is rare, and a place with more
/// different words contains values.
const WORDS_MAX: usize = 64;

/// Words at one place of which more may be constant than their number allows: tiny samples have few items of each kind.
const WORDS_FREE: usize = 3;

/// Fewest items for each different word in lower case, on average.
const ITEMS_PER_WORD: usize = 4;

/// Most different words between two parts of a key, such as `POST` in `LIKE#POST#123`.
const MIDDLE_WORDS_MAX: usize = 8;

/// Characters between a prefix and a value.
const SEPARATORS: [char; 9] = ['_', '|', ':', '=', '@', '~', '-', '/', '.'];

/// The parts of a key's text.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    text.split('#').collect()
}

/// True for letters, and `_`, `-` and `$` between them.
pub(crate) fn is_word(part: &str) -> bool {
    let has_letter = part.chars().any(char::is_alphabetic);
    has_letter && part.chars().all(|it| it.is_alphabetic() || ['_', '-', '$'].contains(&it))
}

/// True for a word without small letters.
fn is_upper(part: &str) -> bool {
    is_word(part) && !part.chars().any(char::is_lowercase)
}

/// The prefix of a part with a value, with its separator.
pub(crate) fn prefix(part: &str) -> &str {
    // `_` may be within the prefix too, so the last separator in front of the value counts.
    let end = part.char_indices().take_while(|(_, it)| it.is_alphabetic() || *it == '$' || SEPARATORS.contains(it));
    let end = end.filter(|(_, it)| SEPARATORS.contains(it)).map(|(at, it)| at + it.len_utf8()).last();
    let found = end.and_then(|end| part.get(..end)).unwrap_or_default();
    if found.chars().any(char::is_alphabetic) && found.len() < part.len() { found } else { "" }
}

/// A place of a key: 0 for the partition key or 1 for the sort key, the number of the part, and whether others follow.
type Place = (usize, usize, bool);

/// How often each word stands at each place of a table's keys.
#[derive(Debug, Default)]
pub(crate) struct Words {
    words: BTreeMap<Place, BTreeMap<String, usize>>,
    n_at: BTreeMap<Place, usize>,
}

impl Words {
    /// Counts the words of keys.
    pub(crate) fn of<'a>(keys: impl Iterator<Item = [&'a str; 2]>) -> Self {
        let mut counted = Self::default();
        for key in keys {
            for (side, text) in key.into_iter().enumerate() {
                let parts = parts(text);
                for (at, part) in parts.iter().enumerate() {
                    let place = (side, at, at + 1 < parts.len());
                    *counted.n_at.entry(place).or_default() += 1;
                    let word = if is_word(part) { part } else { prefix(part) };
                    if !word.is_empty() {
                        *counted.words.entry(place).or_default().entry(word.to_owned()).or_default() += 1;
                    }
                }
            }
        }
        counted
    }

    /// The constant parts of a key, with `*` for each value: what items of one kind have in common.
    pub(crate) fn skeleton(&self, key: [&str; 2]) -> String {
        let mut sides = Vec::new();
        let mut is_composed = false;
        for (side, text) in key.into_iter().enumerate() {
            let all = parts(text);
            let mut after_constant = false;
            let mut skeleton = Vec::new();
            for (at, part) in all.iter().enumerate() {
                let place = (side, at, at + 1 < all.len());
                let is_constant = self.is_constant(place, part, after_constant, is_composed);
                after_constant = is_constant && is_word(part);
                skeleton.push(match (is_constant, is_word(part)) {
                    (false, _) => "*".to_owned(),
                    (true, true) => (*part).to_owned(),
                    (true, false) => format!("{}*", prefix(part)),
                });
                is_composed |= is_constant;
            }
            sides.push(skeleton.join("#"));
        }
        sides.join(" / ")
    }

    fn is_constant(&self, place: Place, part: &str, after_constant: bool, is_composed: bool) -> bool {
        let (side, at, has_next) = place;
        let word = if is_word(part) { part } else { prefix(part) };
        let Some(words) = self.words.get(&place).filter(|_| !word.is_empty()) else { return false };
        let (n_words, n_items) = (words.len(), self.n_at.get(&place).copied().unwrap_or_default());
        let n_of_it = words.get(word).copied().unwrap_or_default();
        let are_few = n_words <= WORDS_MAX && n_words <= WORDS_FREE.max(n_items / ITEMS_PER_WORD);
        if !is_word(part) {
            // A prefix such as `user_`; `well-known` and `2024-01` have none.
            return at == 0 && are_few && n_of_it > 1;
        }
        if at > 0 {
            // `DE` in `COUNTRY#DE` is a value, `POST` in `LIKE#POST#123` is constant.
            return is_upper(part) && has_next && (!after_constant || n_words <= MIDDLE_WORDS_MAX);
        }
        if has_next {
            return if is_upper(part) { n_words <= WORDS_MAX } else { are_few };
        }
        // A whole partition key is seldom constant. A whole sort key is, if the partition key has a form.
        let is_often = n_of_it > 1 || n_words <= WORDS_FREE;
        match (side, is_upper(part)) {
            (0, is_upper) => is_upper && n_words <= WORDS_FREE && n_of_it > 1,
            (_, true) => n_words <= WORDS_MAX && is_often,
            (_, false) => is_composed && are_few && n_of_it > 1,
        }
    }
}

// ---- the form of the keys of one kind of items: which parts are constant, and which are values of fields ----

/// Items from which on a part that never changes is taken for constant, whatever it looks like. A value that 20 items of
/// a sample share is rare unless they are of one partition.
const UNIFORM_ITEMS: usize = 20;

/// A part of a key between two `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot<'a> {
    /// The constant text in front.
    pub(crate) text: String,
    /// The values of a field behind it, one an item; `None` if the whole part is constant.
    pub(crate) values: Option<Vec<&'a str>>,
}

/// Divides texts of one form into parts; `None` if they do not have the same number of parts, or if a value is empty.
/// `is_value` says that an attribute of the items has these values. `is_of_table` is true for the table's partition key,
/// which is seldom constant as a whole.
pub(crate) fn slots<'a>(
    texts: &[&'a str],
    is_of_table: bool,
    is_value: impl Fn(&[&str]) -> bool,
) -> Option<Vec<Slot<'a>>> {
    let rows: Vec<Vec<&str>> = texts.iter().map(|text| parts(text)).collect();
    let n_parts = rows.first()?.len();
    if rows.iter().any(|row| row.len() != n_parts) {
        return None;
    }
    let mut found: Vec<Slot<'a>> = Vec::new();
    for at in 0..n_parts {
        let column: Vec<&str> = rows.iter().filter_map(|row| row.get(at).copied()).collect();
        let has_next = at + 1 < n_parts;
        let after_constant = found.last().is_some_and(|slot| slot.values.is_none());
        let is_seldom = is_of_table && n_parts == 1 && (column.len() == 1 || !column.iter().all(|part| is_upper(part)));
        let may_be_value = is_seldom || after_constant && !(has_next && column.iter().all(|part| is_upper(part)));
        let text = constant(&column, at == 0 && has_next, may_be_value, &is_value);
        let values: Option<Vec<&str>> = column.iter().map(|part| part.get(text.len()..)).collect();
        let values = values?;
        let is_constant = values.iter().all(|value| value.is_empty());
        if !is_constant && values.iter().any(|value| value.is_empty()) {
            return None;
        }
        found.push(Slot { text, values: (!is_constant).then_some(values) });
    }
    Some(found)
}

/// The constant text at the start of a column of parts. `is_first` of several parts, capitals are constant.
fn constant(column: &[&str], is_first: bool, may_be_value: bool, is_value: impl Fn(&[&str]) -> bool) -> String {
    let Some(first) = column.first().copied() else { return String::new() };
    if column.iter().all(|part| part == &first) {
        let is_constant = first.is_empty()
            || is_first && is_upper(first)
            || !is_value(column) && (column.len() >= UNIFORM_ITEMS || is_word(first) && !may_be_value);
        return if is_constant { first.to_owned() } else { String::new() };
    }
    let shared = prefix(first);
    if column.iter().all(|part| prefix(part) == shared) { shared.to_owned() } else { String::new() }
}

/// The number of parts that most of these keys have.
pub(crate) fn usual_parts<'a>(keys: impl Iterator<Item = &'a [String; 2]>) -> [usize; 2] {
    let mut counts = std::collections::BTreeMap::<[usize; 2], usize>::new();
    for [pk, sk] in keys {
        *counts.entry([parts(pk).len(), parts(sk).len()]).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map_or([1, 1], |(usual, _)| usual)
}

// ---- which attribute names the kind of an item ----

/// Usual names of such an attribute, the most certain first. In small letters.
const NAMES: [&str; 12] = [
    "__typename",
    "__edb_e__",
    "_et",
    "entitytype",
    "entity_type",
    "_type",
    "itemtype",
    "recordtype",
    "entity",
    "type",
    "objecttype",
    "kind",
];

/// The names of which nothing but the kind of an item is usual, so that keys without a form do not speak against them.
const N_CERTAIN: usize = 6;

/// Smallest share of the items that have the attribute. Some tables have an item for locks or migrations without it.
const SHARE_MIN: f64 = 0.95;

/// Smallest share of the items of one form of keys that have the same value of it.
const AGREEING_MIN: f64 = 0.99;

/// Most kinds of items. An attribute with more different values is rather a name or a date.
const KINDS_MAX: usize = 64;

/// Fewest items that show that an attribute with an unusual name is the type.
const ITEMS_MIN: usize = 20;

/// Finds the attribute. `skeletons` are the constant parts of each item's key.
pub(crate) fn type_attribute(shape: &TableShape, items: &[&Item], skeletons: &[String]) -> Option<String> {
    let mut names: BTreeSet<&str> = items.iter().flat_map(|item| item.keys()).collect();
    names.retain(|name| !shape.is_key(name));
    let rank = |name: &str| NAMES.iter().position(|it| *it == name.to_lowercase());
    let mut candidates: Vec<(usize, &str)> =
        names.into_iter().map(|name| (rank(name).unwrap_or(NAMES.len()), name)).collect();
    candidates.sort_unstable();
    let found = candidates.into_iter().find(|(rank, name)| names_kinds(name, *rank, items, skeletons));
    found.map(|(_, name)| name.to_owned())
}

fn names_kinds(name: &str, rank: usize, items: &[&Item], skeletons: &[String]) -> bool {
    let mut by_skeleton = BTreeMap::<&str, BTreeMap<&str, usize>>::new();
    let mut kinds = BTreeSet::new();
    let mut n_with = 0;
    for (item, skeleton) in items.iter().zip(skeletons) {
        let Some(kind) = text(item, name) else { continue };
        n_with += 1;
        kinds.insert(kind);
        *by_skeleton.entry(skeleton).or_default().entry(kind).or_default() += 1;
    }
    let is_known = rank < NAMES.len();
    let is_few = kinds.len() <= KINDS_MAX && kinds.iter().all(|kind| !kind.is_empty() && kind.len() <= 64);
    if n_with == 0 || share(n_with, items.len()) < SHARE_MIN || !is_few {
        return false;
    }
    if !is_known && (n_with < ITEMS_MIN || kinds.len() < 2 || by_skeleton.len() != kinds.len()) {
        return false;
    }
    if rank < N_CERTAIN {
        return true;
    }
    // A subtype, such as the kinds of a notification, varies within a form.
    let n_agreeing: usize = by_skeleton.values().filter_map(|kinds| kinds.values().max()).sum();
    share(n_agreeing, n_with) >= AGREEING_MIN
}

/// A part of a number of things, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than the 15 digits that stay exact")]
pub(crate) fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &[[&str; 2]], skeletons: &[&str]) {
        let words = Words::of(keys.iter().copied());
        assert_eq!(keys.iter().map(|key| words.skeleton(*key)).collect::<Vec<_>>(), skeletons);
    }

    #[test]
    fn words_in_capitals_are_constant_and_what_follows_one_is_a_value() {
        check(
            &[["USER#ada", "PROFILE"], ["USER#bob", "LIKE#POST#1"], ["COUNTRY#DE", "CITY#Berlin"]],
            &["USER#* / PROFILE", "USER#* / LIKE#POST#*", "COUNTRY#* / CITY#*"],
        );
    }

    #[test]
    fn small_letters_are_constant_where_they_repeat() {
        check(
            &[["user#1", "profile"], ["user#2", "profile"], ["user#2", "order#2024-01-01"]],
            &["user#* / profile", "user#* / profile", "user#* / order#*"],
        );
        check(&[["ada", "bob"], ["bob", "ada"], ["cid", "ada"]], &["* / *"; 3]);
    }

    #[test]
    fn a_prefix_ends_with_its_separator() {
        check(
            &[["$app#userid_1", "$user_1#at_5"], ["$app#userid_2", "$user_1#at_6"]],
            &["$app#* / $user_*#*", "$app#* / $user_*#*"],
        );
        assert_eq!([prefix("user_12"), prefix("2024-01"), prefix("user-")], ["user_", "", ""]);
    }

    #[track_caller]
    fn divided(texts: &[&str], form: &str) {
        let slots = slots(texts, false, |_| false);
        let text = slots.map(|slots| {
            let part = |slot: &Slot<'_>| format!("{}{}", slot.text, if slot.values.is_some() { "*" } else { "" });
            slots.iter().map(part).collect::<Vec<_>>().join("#")
        });
        assert_eq!(text.as_deref().unwrap_or("none"), form, "{texts:?}");
    }

    #[test]
    fn what_items_have_in_common_is_constant() {
        divided(&["USER#1", "USER#2"], "USER#*");
        divided(&["PROFILE", "PROFILE"], "PROFILE");
        divided(&["LIKE#POST#a", "LIKE#POST#b"], "LIKE#POST#*");
        divided(&["user_1", "user_22"], "user_*");
        divided(&["2024-01-01", "2024-01-02"], "*");
    }

    #[test]
    fn one_item_shows_a_value_behind_a_word() {
        divided(&["USER#ada"], "USER#*");
        divided(&["PROFILE"], "PROFILE");
        divided(&["42"], "*");
        divided(&["TEAM#core#MEMBER#ada"], "TEAM#*#MEMBER#*");
    }

    #[test]
    fn texts_without_a_common_form_have_none() {
        divided(&["USER#1", "USER"], "none");
        divided(&["USER#1", "USER#"], "none");
        divided(&["USER#%", "USER#%"], "USER#*");
    }
}
