//! Days, for keys that contain a day.
//!
//! Only the day at the beginning of a time is parsed; the rest is compared as text, as in the keys.

use jiff::{ToSpan as _, civil::Date};

/// A day of the years 0000 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(Date);

impl Day {
    /// The day at the beginning of a time such as `2024-01-15T10:30:00.000Z`; `None` if there is none.
    pub(super) fn of(time: &str) -> Option<Self> {
        let (day, rest) = time.split_at_checked(10)?;
        if !(rest.is_empty() || rest.starts_with('T')) {
            return None;
        }
        let date: Date = day.parse().ok()?;
        // A day has only one text; keys use no other form of ISO 8601.
        (date.to_string() == day).then_some(Self(date))
    }

    /// Number of days from this one to another, both included.
    pub(super) fn n_to(self, last: Self) -> u32 {
        u32::try_from(self.0.duration_until(last.0).as_hours() / 24 + 1).unwrap_or(0)
    }

    /// The days from this one to another.
    pub(super) fn to(self, last: Self) -> impl DoubleEndedIterator<Item = Self> {
        (0..self.n_to(last)).map(move |n_days| Self(self.0.saturating_add(i64::from(n_days).days())))
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(from: &str, to: &str) -> Vec<String> {
        Day::of(from).unwrap().to(Day::of(to).unwrap()).map(|day| day.to_string()).collect()
    }

    #[test]
    fn days_follow_each_other_over_months_years_and_leap_days() {
        assert_eq!(days("2024-02-28T23:00:00.000Z", "2024-03-01"), ["2024-02-28", "2024-02-29", "2024-03-01"]);
        assert_eq!(days("2023-02-28", "2023-03-01"), ["2023-02-28", "2023-03-01"]);
        assert_eq!(days("1999-12-31", "2000-01-01"), ["1999-12-31", "2000-01-01"]);
        assert_eq!(Day::of("2024-01-01").unwrap().n_to(Day::of("2024-12-31").unwrap()), 366);
        assert_eq!(days("2024-01-02", "2024-01-01"), [""; 0]);
        assert_eq!(Day::of("0000-01-01").unwrap().n_to(Day::of("9999-12-31").unwrap()), 3_652_425);
    }

    #[test]
    fn what_begins_with_no_day_is_none() {
        for text in [
            "",
            "2024",
            "2024-1-15",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-15 10",
            "yesterday!!",
            "20240115",
            "20240115T1",
            "2024-W03-1",
            "-001-01-01",
            "+2024-01-0",
        ] {
            assert_eq!(Day::of(text), None, "{text}");
        }
    }

    /// Days since 1970-01-01 of the Gregorian calendar. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
    /// Algorithms", `days_from_civil`.
    fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
        let year = if month <= 2 { year - 1 } else { year };
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(400) * 146_097 + day_of_era - 719_468
    }

    proptest::proptest! {
        #[test]
        fn days_are_those_of_the_gregorian_calendar(year in 0i64..=9999, month in 1i64..=12, day in 1i64..=31) {
            let text = format!("{year:04}-{month:02}-{day:02}");
            let (epoch, number) = (Day::of("1970-01-01").unwrap(), days_from_civil(year, month, day));
            match Day::of(&text) {
                Some(found) => {
                    proptest::prop_assert_eq!(found.to_string(), text);
                    let since = epoch.0.duration_until(found.0).as_hours() / 24;
                    proptest::prop_assert_eq!(since, number);
                }
                // The day is after the last one of the month. That never happens in December, so the next month exists.
                None => proptest::prop_assert!(days_from_civil(year, month + 1, 1) <= number),
            }
        }
    }
}
