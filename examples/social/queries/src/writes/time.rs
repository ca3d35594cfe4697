//! Times of items: ISO 8601 UTC in milliseconds, so that the order of the texts is the order of time.

use crate::{Queries, write_error::WriteError};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// The last millisecond of the year 9999: a year of five digits would not be in order.
const TIME_MS_MAX: u64 = 253_402_300_799_999;

/// The text of a time, such as `2024-01-15T10:30:00.000Z`.
///
/// # Errors
///
/// [`WriteError::Time`] past the year 9999.
pub(super) fn text(ms: u64) -> Result<String, WriteError> {
    if ms > TIME_MS_MAX {
        return Err(WriteError::Time { at_ms: ms });
    }
    let (year, month, day) = date(ms / DAY_MS);
    let (seconds, millis) = (ms % DAY_MS / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

/// Year, month and day of a day since the epoch, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is a year's last; 400 of them are 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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

    #[test]
    fn times_are_told_in_utc_to_the_millisecond() {
        for (ms, told) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_705_314_600_417, "2024-01-15T10:30:00.417Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (TIME_MS_MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(ms).unwrap(), told);
        }
        assert!(matches!(text(TIME_MS_MAX + 1), Err(WriteError::Time { .. })));
    }
}
