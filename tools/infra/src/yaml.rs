//! A text as a scalar of YAML.
//!
//! *Keeps true*: every reader of YAML, of version 1.1 or 1.2, reads the same text again, and reads it as a text.
//! `CloudFormation` reads YAML 1.1, where `on` is a truth and `0x10` a number.

use std::fmt::Write as _;

/// Words that YAML 1.1 does not read as texts, in lower case. Source: <https://yaml.org/type/bool.html> and `null.html`.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// The text, quoted if it could be read as anything else.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    if text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        // Writing to a text does not fail.
        let _is_written = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            _ if is_printable(character) => write!(quoted, "{character}"),
            _ => write!(quoted, "\\U{:08x}", u32::from(character)),
        };
    }
    quoted + "\""
}

/// True for a word that begins with a letter: it is no number, no time and no sign of YAML.
fn is_plain(text: &str) -> bool {
    let is_of_word = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_of_word)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// True if a quoted text may contain the character as it is. Line breaks would be folded.
fn is_printable(character: char) -> bool {
    let is_break = matches!(character, '\u{2028}' | '\u{2029}');
    let is_allowed = matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        || character >= '\u{10000}';
    is_allowed && !is_break
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_could_be_read_as_anything_else_is_quoted() {
        for plain in ["PK", "GSI1PK", "by-author", "a_b.c", "nope", "e3"] {
            assert_eq!(scalar(plain), plain);
        }
        for (text, written) in [
            ("", "''"),
            ("@type", "'@type'"),
            ("#pk", "'#pk'"),
            ("a: b", "'a: b'"),
            ("on", "'on'"),
            ("No", "'No'"),
            ("0x10", "'0x10'"),
            ("null", "'null'"),
            ("1e3", "'1e3'"),
            ("=", "'='"),
            ("~", "'~'"),
            ("2024-01-15", "'2024-01-15'"),
            ("it's", "'it''s'"),
            ("${AWS::Region}", "'${AWS::Region}'"),
            ("a\"b\nc", "\"a\\\"b\\U0000000ac\""),
            ("\u{feff}", "\"\\U0000feff\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }
}
