//! Times in expressions: the time of an epoch number, and the hour, day, week or month of a time.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime},
};
use keys::number::Decimal;

/// A span of time that a time is cut to. Its names and the texts that it gives are stored, so they are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeSpan {
    /// An hour, such as `2024-01-15T10`.
    Hour,
    /// A day, such as `2024-01-15`.
    Day,
    /// A week of ISO 8601, which begins on Monday, such as `2024-W03`.
    Week,
    /// A month, such as `2024-01`.
    Month,
}

impl TimeSpan {
    /// Its name in the keys of buckets.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
        }
    }
}

/// The time of an epoch number with so many units a second, rounded down; `None` if it is not of a year from 0 to 9999.
pub(super) fn of_epoch(number: &Decimal, units: i64) -> Option<String> {
    let whole = number.floor()?;
    let time = if units == 1 { Timestamp::from_second(whole) } else { Timestamp::from_millisecond(whole) }.ok()?;
    let places = if units == 1 { 0 } else { 3 };
    (0..=9999).contains(&time.to_zoned(jiff::tz::TimeZone::UTC).year()).then(|| format!("{time:.places$}"))
}

/// The span of a time in ISO 8601, at an offset such as `+02:00`; in UTC if the offset is empty. A time without an
/// offset of its own is in UTC. `None` if the text is no such time, or is a day alone where its hour counts.
pub(crate) fn span(text: &str, span: TimeSpan, offset: &str) -> Option<String> {
    let (day, clock) = text.split_once(['T', 't', ' ']).map_or((text, None), |(day, clock)| (day, Some(clock)));
    let day: Date = day.parse().ok()?;
    let at = match clock {
        None if span == TimeSpan::Hour || !offset.is_empty() => return None,
        None => DateTime::from(day),
        Some(clock) => {
            let (clock, own) = clock.split_at(clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len()));
            let moved = offset_seconds(offset)? - offset_seconds(own)?;
            let at = day.to_datetime(clock.parse().ok()?);
            at.checked_add(SignedDuration::from_secs(moved)).ok()?
        }
    };
    if at.year() < 0 {
        return None;
    }
    Some(match span {
        TimeSpan::Hour => format!("{}T{:02}", at.date(), at.hour()),
        TimeSpan::Day => at.date().to_string(),
        TimeSpan::Month => format!("{:04}-{:02}", at.year(), at.month()),
        TimeSpan::Week => {
            let week = at.date().iso_week_date();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
    })
}

/// The seconds of an offset from UTC: none, `Z`, `+02`, `+0200` or `+02:00`.
pub(crate) fn offset_seconds(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = if digits.len() == 5 { digits.replacen(':', "", 1) } else { digits.to_owned() };
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    let (hours, minutes): (i64, i64) =
        (hours.parse().ok()?, if minutes.is_empty() { 0 } else { minutes.parse().ok()? });
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}
