//! Finds key forms that the same key can match, without comparing all pairs.
//!
//! A key begins with the text before the first field of its form. So two forms can only meet if one beginning is a
//! prefix of the other.

use std::collections::BTreeMap;

use crate::{entity::KeyTemplate, template::Template};

/// Values by the beginning of their form.
type ByBeginning<'a, T> = BTreeMap<&'a str, T>;

/// Key forms, each with its owner.
#[derive(Debug)]
pub struct KeyForms<'a, T> {
    /// By the beginning of the partition key, then of the sort key.
    forms: ByBeginning<'a, ByBeginning<'a, Vec<(&'a KeyTemplate, T)>>>,
}

impl<T> Default for KeyForms<'_, T> {
    fn default() -> Self {
        Self { forms: BTreeMap::new() }
    }
}

impl<'a, T> KeyForms<'a, T> {
    /// Adds a form.
    pub fn insert(&mut self, form: &'a KeyTemplate, of: T) {
        let by_sort_key = self.forms.entry(form.pk.beginning()).or_default();
        by_sort_key.entry(form.sk.beginning()).or_default().push((form, of));
    }

    /// The owners of the forms that a key of this form could match too.
    pub fn meeting<'f>(&'f self, form: &'f KeyTemplate) -> impl Iterator<Item = &'f T> {
        self.alike(form).filter(|(other, _)| other.meets(form)).map(|(_, of)| of)
    }

    /// The forms to compare with this one.
    fn alike<'f>(&'f self, form: &'f KeyTemplate) -> impl Iterator<Item = &'f (&'a KeyTemplate, T)> {
        let by_sort_key = alike(&self.forms, &form.pk);
        by_sort_key.flat_map(|forms| alike(forms, &form.sk)).flatten()
    }
}

/// The values whose beginnings are prefixes of the form's beginning, or have it as a prefix.
fn alike<'f, T>(by: &'f ByBeginning<'_, T>, form: &'f Template) -> impl Iterator<Item = &'f T> {
    let beginning = form.beginning();
    let shorter = beginning.char_indices().filter_map(move |(end, _)| by.get(beginning.get(..end)?));
    let longer = by.range(beginning..).take_while(move |(other, _)| other.starts_with(beginning));
    shorter.chain(longer.map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Many entities, each with its own partition or sort key.
    const MANY: usize = 2_000;

    fn form(pk: &str, sk: &str) -> KeyTemplate {
        KeyTemplate::parse(pk, sk).unwrap()
    }

    proptest! {
        #[test]
        fn the_forms_that_meet_are_found(parts in proptest::collection::vec((0..8usize, 0..8usize), 1..12)) {
            let texts = ["A", "A#{a}", "A#B#{b}", "{a}", "{a}#B", "{a*}#X#{b:2}", "A#{a}#{b}", "B#{b:2}"];
            let forms: Vec<KeyTemplate> = parts.iter().map(|(pk, sk)| form(texts[*pk], texts[*sk])).collect();
            let mut all = KeyForms::default();
            for (at, form) in forms.iter().enumerate() {
                let mut found: Vec<usize> = all.meeting(form).copied().collect();
                found.sort_unstable();
                let compared: Vec<usize> = (0..at).filter(|other| forms[*other].meets(form)).collect();
                prop_assert_eq!(found, compared, "{:?}", form);
                all.insert(form, at);
            }
        }
    }

    #[test]
    fn forms_that_begin_otherwise_are_not_compared() {
        let one_table = |at: usize| form("USER#{userId}", &format!("KIND{at}#{{id}}"));
        let partitions = |at: usize| form(&format!("KIND{at}#{{id}}"), "ITEM");
        for forms in [(0..MANY).map(one_table).collect::<Vec<_>>(), (0..MANY).map(partitions).collect()] {
            let mut all = KeyForms::default();
            let mut n_compared = 0;
            for form in &forms {
                n_compared += all.alike(form).count();
                all.insert(form, ());
            }
            assert_eq!(n_compared, 0);
        }
    }
}
