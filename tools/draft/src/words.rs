//! Which parts of keys are constant, such as `USER` in `USER#123`, when nothing names the kind of an item.
//!
//! A key is divided at `#`. A part is a *word* if it has no digit; a *prefix* is a word with a separator in front of a
//! value, such as `user_` in `user_123`. A word or prefix is constant if few different ones stand at its place.

use std::collections::BTreeMap;

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
pub(crate) fn is_upper(part: &str) -> bool {
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
}
