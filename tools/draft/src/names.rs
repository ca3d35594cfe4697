//! Names of fields and entities, and pieces of the draft's text.

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

// ---- pieces of the draft's text ----

/// Longest name of a derivation, in characters. Source: the reference of manifests.
const NAME_CHARS_MAX: usize = 64;

/// A key of TOML, in quotes if it needs them.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { string(name) }
}

/// A string of TOML.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for it in text.chars() {
        match it {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            it if it.is_control() => quoted.extend(format!("\\u{:04X}", u32::from(it)).chars()),
            it => quoted.push(it),
        }
    }
    quoted + "\""
}

/// A list of strings of TOML, in one line.
pub(crate) fn list(names: &[&str]) -> String {
    format!("[{}]", names.iter().map(|name| string(name)).collect::<Vec<_>>().join(", "))
}

/// Lines as comments. A line break within a name must not end the comment.
pub(crate) fn commented(lines: &[String]) -> Vec<String> {
    let of = |line: &String| {
        let line: String = line.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        format!("# {line}").trim_end().to_owned()
    };
    lines.iter().map(of).collect()
}

/// Sentences as comments of at most 110 characters a line.
pub(crate) fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 108 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    commented(&lines)
}

/// The name of a derivation of these words.
pub(crate) fn kebab(words: &[&str]) -> String {
    let mut name = String::new();
    for word in words {
        let mut was_small = false;
        if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        for it in word.chars() {
            if it.is_ascii_alphanumeric() {
                if it.is_ascii_uppercase() && was_small {
                    name.push('-');
                }
                name.push(it.to_ascii_lowercase());
            } else if !name.is_empty() && !name.ends_with('-') {
                name.push('-');
            }
            was_small = it.is_ascii_lowercase() || it.is_ascii_digit();
        }
    }
    name.truncate(NAME_CHARS_MAX);
    let name = name.trim_matches('-');
    if name.is_empty() { "derived".to_owned() } else { name.to_owned() }
}

/// A number with a comma at each thousand.
pub(crate) fn thousands(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or_default().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, never rounded up to 100.
pub(crate) fn percent(share: f64) -> String {
    let percent = (share * 100.0 + 0.000_001).floor();
    format!("{percent:.0} %")
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

    #[test]
    fn names_and_numbers_are_written_for_toml_and_for_people() {
        assert_eq!([key("a-b_1"), key("a.b"), key("")], ["a-b_1", "\"a.b\"", "\"\""]);
        assert_eq!(string("a\"\\\n"), "\"a\\\"\\\\\\u000A\"");
        assert_eq!(kebab(&["OrderLine", "user_name"]), "order-line-user-name");
        assert_eq!([thousands(7_u64), thousands(1_234_567_u64)], ["7", "1,234,567"]);
        assert_eq!([percent(0.9999), percent(1.0), percent(0.29)], ["99 %", "100 %", "29 %"]);
        assert_eq!(commented(&["a\nb".to_owned(), String::new()]), ["# a b", "#"]);
    }
}
