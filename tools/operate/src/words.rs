//! Text formatting that the command line and the console share.

use std::borrow::Cow;

use derive::change::Images;
use jiff::Timestamp;
use keys::key::is_hidden;

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

/// The text with characters that would control a terminal as JSON escapes, so JSON stays JSON.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if is_escaped(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// DynamoDB's name of the event.
#[must_use]
pub fn event(images: &Images) -> &'static str {
    match images {
        Images::Inserted(_) => "INSERT",
        Images::Modified { .. } => "MODIFY",
        Images::Removed(_) | Images::Expired(_) => "REMOVE",
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
