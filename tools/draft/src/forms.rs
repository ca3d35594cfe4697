//! The form of the keys of one kind of items: which parts are constant, and which are values of fields.

use crate::words::{is_upper, is_word, parts, prefix};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], form: &str) {
        let slots = slots(texts, false, |_| false);
        let text = slots.map(|slots| {
            let part = |slot: &Slot<'_>| format!("{}{}", slot.text, if slot.values.is_some() { "*" } else { "" });
            slots.iter().map(part).collect::<Vec<_>>().join("#")
        });
        assert_eq!(text.as_deref().unwrap_or("none"), form, "{texts:?}");
    }

    #[test]
    fn what_items_have_in_common_is_constant() {
        check(&["USER#1", "USER#2"], "USER#*");
        check(&["PROFILE", "PROFILE"], "PROFILE");
        check(&["LIKE#POST#a", "LIKE#POST#b"], "LIKE#POST#*");
        check(&["user_1", "user_22"], "user_*");
        check(&["2024-01-01", "2024-01-02"], "*");
    }

    #[test]
    fn one_item_shows_a_value_behind_a_word() {
        check(&["USER#ada"], "USER#*");
        check(&["PROFILE"], "PROFILE");
        check(&["42"], "*");
        check(&["TEAM#core#MEMBER#ada"], "TEAM#*#MEMBER#*");
    }

    #[test]
    fn texts_without_a_common_form_have_none() {
        check(&["USER#1", "USER"], "none");
        check(&["USER#1", "USER#"], "none");
        check(&["USER#%", "USER#%"], "USER#*");
    }
}
