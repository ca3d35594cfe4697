//! The primary key of an item.

use std::fmt::{self, Write as _};

/// Longest partition key, in bytes. Source: DynamoDB service quotas.
pub const PARTITION_KEY_BYTES_MAX: usize = 2_048;

/// Longest sort key, in bytes. Source: DynamoDB service quotas.
pub const SORT_KEY_BYTES_MAX: usize = 1_024;

/// A partition key and a sort key, as they are in the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

impl Key {
    /// A key of two texts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// The key for a log, `PK / SK`, without what [`for_log`] leaves out.
    #[must_use]
    pub fn for_log(&self) -> String {
        format!("{} / {}", for_log(&self.pk), for_log(&self.sk))
    }
}

/// The text of a key for a log.
///
/// Logs contain keys to identify items. But a part between two `#` that is not a plain id or number, such as an address
/// or words with spaces, may be about a person, and is replaced by `…`.
#[must_use]
pub fn for_log(text: &str) -> String {
    let is_plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c));
    let parts: Vec<&str> = text.split('#').map(|part| if is_plain(part) { part } else { "…" }).collect();
    parts.join("#")
}

/// Characters that a part of a key may have in logs, besides letters and digits of ASCII: those of times, paths and
/// escapes, and of keys that the service builds from several keys.
const PLAIN: &str = "-_.:%/~|*+";

/// Characters that are not control characters, but break a line or change its direction: line and paragraph separators,
/// and marks of bidirectional text. Source: Unicode, UAX #9 and #14.
const TURNING: [char; 14] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
    '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// True if a terminal would interpret this character instead of displaying it.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control() || TURNING.contains(&c)
}

impl fmt::Display for Key {
    /// `PK / SK` on one line, for messages to the user; logs use [`for_log`](Key::for_log). Characters that are
    /// [hidden](is_hidden) are escaped, such as `\n`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.pk.as_str(), " / ", self.sk.as_str()] {
            for c in part.chars() {
                if is_hidden(c) { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_without_what_controls_a_terminal() {
        assert_eq!(Key::new("USER#a\nb", "\u{1b}[2J\u{9b}\t").to_string(), r"USER#a\nb / \u{1b}[2J\u{9b}\t");
        assert_eq!(Key::new("a\u{202e}b", "\u{2028}").to_string(), r"a\u{202e}b / \u{2028}");
        assert_eq!(Key::new("USER#Åsa", "PROFILE").to_string(), "USER#Åsa / PROFILE");
    }

    #[test]
    fn a_log_has_ids_times_and_paths_of_a_key_and_nothing_else() {
        let logged = |pk: &str, sk: &str| Key::new(pk, sk).for_log();
        assert_eq!(logged("EMAIL#ada@example.org", "CLAIM"), "EMAIL#… / CLAIM");
        assert_eq!(
            logged("USER#u7%23x", "POST#2024-03-01T12:00:00.000Z#p-1"),
            "USER#u7%23x / POST#2024-03-01T12:00:00.000Z#p-1"
        );
        assert_eq!(logged("ORG#o", "EMP#e1/e2_3"), "ORG#o / EMP#e1/e2_3");
        assert_eq!(logged("FOLDER#Ada Lovelace#f1", "Ångström"), "FOLDER#…#f1 / …");
        assert_eq!(logged("AGAIN#05", "8:EMAIL|ada@example.org"), "AGAIN#05 / …");
    }
}
