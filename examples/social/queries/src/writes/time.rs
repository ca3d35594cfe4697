//! Times in items: ISO 8601 UTC in milliseconds, so that the order of the texts is the order of the times.

use jiff::{SignedDuration, civil::DateTime};

use crate::{Queries, write_error::WriteError};

/// The start of the count of milliseconds.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The text of a time, such as `2024-01-15T10:30:00.000Z`.
///
/// # Errors
///
/// [`WriteError::Time`] after the year 9999, because a year of five digits would not be in order.
pub fn text(ms: u64) -> Result<String, WriteError> {
    let since = i64::try_from(ms).ok().map(SignedDuration::from_millis);
    let time = since.and_then(|since| EPOCH.checked_add(since).ok());
    time.map(|time| format!("{time:.3}Z")).ok_or(WriteError::Time { at_ms: ms })
}

impl<S> Queries<S> {
    /// Milliseconds since the epoch.
    pub(super) fn now_ms(&self) -> u64 {
        (self.now_ms)()
    }

    /// The time of a write, as text.
    pub(super) fn now(&self) -> Result<String, WriteError> {
        text(self.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last millisecond of the year 9999.
    const TIME_MS_MAX: u64 = 253_402_300_799_999;

    #[test]
    fn times_are_in_utc_to_the_millisecond() {
        for (ms, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_705_314_600_417, "2024-01-15T10:30:00.417Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (TIME_MS_MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(ms).unwrap(), shown);
        }
        for ms in [TIME_MS_MAX + 1, u64::MAX] {
            assert!(matches!(text(ms), Err(WriteError::Time { at_ms }) if at_ms == ms));
        }
    }
}
