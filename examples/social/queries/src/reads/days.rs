//! Days, for what is partitioned by them.
//!
//! Only the day that a time begins with is looked at; what is behind it is compared as text, as the keys are.

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(i64);

impl Day {
    /// The day that a time begins with, such as `2024-01-15T10:30:00.000Z`; `None` when it begins with none.
    pub(super) fn of(time: &str) -> Option<Self> {
        let (day, rest) = time.split_at_checked(10)?;
        if !(rest.is_empty() || rest.starts_with('T')) {
            return None;
        }
        let mut parts = day.split('-').map(|part| part.parse::<i64>().ok().filter(|number| *number >= 0));
        let day_number = Self(days_from_civil(parts.next()??, parts.next()??, parts.next()??));
        // A day that there is not, such as the 30th of February, comes out as another.
        (day_number.to_string() == day).then_some(day_number)
    }

    /// How many days from this one to another, both counted.
    pub(super) fn n_to(self, last: Self) -> u32 {
        u32::try_from(last.0 - self.0 + 1).unwrap_or(0)
    }

    /// The days from this one to another.
    pub(super) fn to(self, last: Self) -> impl DoubleEndedIterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = civil_from_days(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Days since 1970-01-01 of the Gregorian calendar. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `days_from_civil`; years are counted from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The other way round: `civil_from_days` of the same source.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
        assert_eq!(Day::of("1970-01-01"), Some(Day(0)));
    }

    #[test]
    fn what_begins_with_no_day_is_none() {
        for text in ["", "2024", "2024-1-15", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-15 10", "yesterday!!"]
        {
            assert_eq!(Day::of(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_day_reads_back_as_it_was_written(days in -700_000i64..2_900_000) {
            proptest::prop_assert_eq!(Day::of(&Day(days).to_string()), Some(Day(days)));
        }
    }
}
