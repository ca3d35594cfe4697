//! Words that the command line and the console share.

use derive::change::Images;
use jiff::Timestamp;

/// A number of things, in the singular or the plural.
#[must_use]
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A time in UTC, from milliseconds since the epoch, such as `2024-01-15T10:30:00.417Z`.
#[must_use]
pub fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms"), |time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
}

/// What became of an item, as DynamoDB says it.
#[must_use]
pub fn event(images: &Images) -> &'static str {
    match images {
        Images::Inserted(_) => "INSERT",
        Images::Modified { .. } => "MODIFY",
        Images::Removed(_) => "REMOVE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time(1_705_314_600_417), "2024-01-15T10:30:00.417Z");
        assert_eq!(time(1_705_314_600_000), "2024-01-15T10:30:00.000Z");
        assert_eq!(time(u64::MAX), format!("{} ms", u64::MAX));
    }
}
