//! Texts that commands print and read: sentences, objects of `--json`, and times.

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use operate::objects::with_version;
use serde_json::Value;

use crate::exit::print;

pub(crate) use operate::words::{counted, time};

/// Maximum number of names in a sentence.
const NAMED_MAX: usize = 3;

/// The first of these names, and how many more there are.
pub(crate) fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

// ---- Prints the objects of `--json` ----

/// Prints an object, with the version of the output added.
pub(crate) fn print_json(object: Value) {
    print(&with_version(object).to_string());
}

// ---- Times, as captured records contain them ----

/// Parses an ISO 8601 time with its offset as seconds since the epoch. A space may replace the `T`, as Python prints
/// it.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let text = text.replacen(' ', "T", 1);
    DateTime::from_str(&text, DateTimeFormat::DateTimeWithOffset).ok().map(|time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_offset() {
        for same in [
            "2024-01-15T10:30:00Z",
            "2024-01-15T10:30:00.000Z",
            "2024-01-15T10:30:00+00:00",
            "2024-01-15T11:30:00+01:00",
            "2024-01-15 05:00:00-05:30",
        ] {
            assert_eq!(seconds(same), Some(1_705_314_600.0), "{same}");
        }
        assert_eq!(seconds("2024-01-15T10:30:00.500000+00:00"), Some(1_705_314_600.5));
        for none in ["", "noon", "2024-01-15", "2024-01-15T10:30:00", "1705314600"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }
}
