//! Pieces of the draft's text.

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
    fn names_and_numbers_are_written_for_toml_and_for_people() {
        assert_eq!([key("a-b_1"), key("a.b"), key("")], ["a-b_1", "\"a.b\"", "\"\""]);
        assert_eq!(string("a\"\\\n"), "\"a\\\"\\\\\\u000A\"");
        assert_eq!(kebab(&["OrderLine", "user_name"]), "order-line-user-name");
        assert_eq!([thousands(7_u64), thousands(1_234_567_u64)], ["7", "1,234,567"]);
        assert_eq!([percent(0.9999), percent(1.0), percent(0.29)], ["99 %", "100 %", "29 %"]);
        assert_eq!(commented(&["a\nb".to_owned(), String::new()]), ["# a b", "#"]);
    }
}
