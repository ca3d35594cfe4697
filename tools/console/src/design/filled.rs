//! Texts of recorded requests, with values in place of their placeholders such as `{UserId}`.
//!
//! A value in a key is escaped with [`keys::escape`], as a template would do: `#` and `%`, and in a segment of a path
//! also `/`.

use std::collections::BTreeMap;

use keys::escape::{segment, value};

/// Values by the names of the placeholders.
pub(super) type PlaceholderValues = BTreeMap<String, String>;

/// A part of a text.
enum TextPart<'a> {
    Fixed(&'a str),
    Placeholder(&'a str),
}

fn parts(text: &str) -> Vec<TextPart<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, (name, after))) = rest
        .split_once('{')
        .and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
        .filter(|(_, (name, _))| !name.is_empty())
    {
        parts.extend([TextPart::Fixed(before), TextPart::Placeholder(name)]);
        rest = after;
    }
    parts.push(TextPart::Fixed(rest));
    parts
}

/// The names of the placeholders in a text, in order.
pub(super) fn placeholders(text: &str) -> Vec<String> {
    let name = |part: TextPart<'_>| match part {
        TextPart::Placeholder(name) => Some(name.to_owned()),
        TextPart::Fixed(_) => None,
    };
    parts(text).into_iter().filter_map(name).collect()
}

/// The value of a placeholder. The queries put an email into lower case, and its placeholder `{email}` is in lower case
/// too.
fn of(values: &PlaceholderValues, name: &str) -> Option<String> {
    if name != name.to_lowercase() {
        return values.get(name).cloned();
    }
    let same = || values.iter().find(|(other, _)| other.to_lowercase() == name).map(|(_, value)| value);
    values.get(name).or_else(same).map(|value| value.to_lowercase())
}

/// Fills a text that is not a key.
pub(super) fn in_text(text: &str, values: &PlaceholderValues) -> String {
    filled(text, values, |_, value| value.to_owned())
}

/// Fills a key, or the beginning of one.
pub(super) fn in_key(text: &str, values: &PlaceholderValues) -> String {
    filled(text, values, |before, it| if before.ends_with('/') { segment(it) } else { value(it) })
}

/// `escaped` receives the text before the value, and the value.
fn filled(text: &str, values: &PlaceholderValues, escaped: impl Fn(&str, &str) -> String) -> String {
    let mut filled = String::new();
    for part in parts(text) {
        match part {
            TextPart::Fixed(fixed) => filled.push_str(fixed),
            TextPart::Placeholder(name) => match of(values, name) {
                Some(value) => {
                    let value = escaped(&filled, &value);
                    filled.push_str(&value);
                }
                None => filled.extend(["{", name, "}"]),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_a_key_is_escaped_as_the_template_does_it() {
        let values = [("UserId", "a#b%c/d"), ("Manager", "x/y"), ("Email", "Ann@Example.org"), ("PostId", "p{UserId}")];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(in_key("USER#{UserId}", &values), "USER#a%23b%25c/d");
        assert_eq!(in_key("EMP#/{Manager}/", &values), "EMP#/x%2Fy/");
        assert_eq!(in_key("EMAIL#{email}", &values), "EMAIL#ann@example.org");
        assert_eq!(in_key("POST#{PostId}#{Other}", &values), "POST#p{UserId}#{Other}");
        assert_eq!(in_text("{UserId}", &values), "a#b%c/d");
        let template = keys::template::Template::parse("USER#{UserId}").unwrap();
        let of = |name: &str| (name == "UserId").then_some("a#b%c/d");
        assert_eq!(template.build_of(of).unwrap(), in_key("USER#{UserId}", &values));
        assert_eq!(placeholders("POST#{CreatedAt}#{PostId} {} {a"), ["CreatedAt", "PostId"]);
    }
}
