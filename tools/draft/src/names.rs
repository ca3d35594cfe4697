//! Names of fields and entities.

use std::collections::BTreeSet;

use keys::item::{Item, text};

/// How the attributes of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// `userId`
    Camel,
    /// `UserId`
    Pascal,
    /// `user_id`
    Snake,
}

impl Case {
    /// The case of most of these names. Names of keys and of Ripple's own attributes say little, so pass others.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let (mut n_pascal, mut n_snake, mut n) = (0, 0, 0);
        for name in names {
            n += 1;
            n_snake += usize::from(name.trim_start_matches('_').contains('_'));
            n_pascal += usize::from(name.starts_with(char::is_uppercase));
        }
        if n_pascal * 2 > n {
            Self::Pascal
        } else if n_snake * 3 > n {
            Self::Snake
        } else {
            Self::Camel
        }
    }

    /// A name of these words.
    pub(crate) fn name(self, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().flat_map(|word| split(word)).collect();
        match self {
            Self::Snake => words.join("_"),
            Self::Pascal => words.iter().map(|word| capital(word)).collect(),
            Self::Camel => {
                let mut words = words.iter();
                let first = words.next().cloned().unwrap_or_default();
                words.fold(first, |name, word| name + &capital(word))
            }
        }
    }
}

/// The words of a text such as `ORDER_LINE` or `orderLine`, in small letters.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_small = false;
    for it in text.chars() {
        let starts = !it.is_alphanumeric() || was_small && it.is_uppercase();
        if starts {
            words.push(String::new());
        }
        was_small = it.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| it.is_alphanumeric()) {
            word.extend(it.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A word with its first letter as a capital.
pub(crate) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The name of an entity of these words.
pub(crate) fn entity(words: &[&str]) -> String {
    let name = Case::Pascal.name(words);
    if name.is_empty() { "Item".to_owned() } else { name }
}

/// A name that is not taken: the given one, or with a number.
pub(crate) fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    [name.to_owned()].into_iter().chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// True for a name that a manifest cannot take for a path or a form.
pub(crate) fn is_whole_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '[', ']', '{', '}', '"', '#', '%', '/'])
}

/// The attribute whose text equals a value in every item. `hint` is the constant word in front of the value.
pub(crate) fn equal_attribute<'a>(
    items: &[&'a Item],
    values: &[&str],
    hint: &str,
    is_excluded: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let first = items.first()?;
    let equals = |name: &str| items.iter().zip(values).all(|(item, value)| text(item, name) == Some(*value));
    let n_values = values.iter().collect::<BTreeSet<_>>().len();
    let hint = hint.to_lowercase();
    let rank = |name: &str| {
        let small = name.to_lowercase();
        let is_of_hint = !hint.is_empty() && small.contains(&hint);
        (!is_of_hint, !small.ends_with("id"), name.len())
    };
    // One value may equal an unrelated attribute by chance, unless the name fits.
    let is_likely = |name: &str| {
        let (is_foreign, is_no_id, _) = rank(name);
        n_values > 1 || !is_foreign || !is_no_id
    };
    let found =
        first.keys().filter(|name| is_whole_name(name) && !is_excluded(name) && equals(name) && is_likely(name));
    found.min_by_key(|name| (rank(name), *name))
}

/// Text behind the name of a field for these values: `At` for times, `On` for dates, `Id` for others.
pub(crate) fn suffix(values: &[&str]) -> &'static str {
    let is_date = |value: &&str| {
        let bytes = value.as_bytes();
        let shape = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let dashes = [4, 7].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        dashes && [0, 1, 2, 3, 5, 6, 8, 9].iter().all(|at| shape(*at))
    };
    match values {
        [] => "Id",
        _ if !values.iter().all(is_date) => "Id",
        _ if values.iter().all(|value| value.len() == 10) => "On",
        _ => "At",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_the_table_writes_its_own() {
        assert_eq!(Case::of(["UserId", "Name"].into_iter()).name(&["ORDER_LINE", "Id"]), "OrderLineId");
        assert_eq!(Case::of(["user_id", "name"].into_iter()).name(&["ORDER", "Id"]), "order_id");
        assert_eq!(Case::of(["userId", "name"].into_iter()).name(&["orderLine", "Id"]), "orderLineId");
    }

    #[test]
    fn a_date_and_a_time_are_no_ids() {
        let suffixes = [["2024-01-01"], ["2024-01-01T10:00:00Z"], ["o1"]].map(|values| suffix(&values));
        assert_eq!(suffixes, ["On", "At", "Id"]);
    }
}
