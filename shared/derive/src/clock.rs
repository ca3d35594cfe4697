//! The clock: an item with the current hour, for what is derived of the last hours or days.
//!
//! *Keeps true*: derived data depend on stored items alone. Which buckets a [window](crate::kinds::window) adds up
//! depends on the time; the time is an item too, so a refresh that read an old hour is corrected as one that read any
//! other old source, and the definition is the same for everybody who reads the table.
//!
//! The engine moves the clock on before it refreshes an item that depends on it. It never goes back. If the item is
//! missing or has no hour, the engine takes the hour to which it moved the clock last.

use jiff::Timestamp;
use keys::{item::Item, job, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    expression::time::TimeSpan,
    guard::{Ask, Guard, Purpose},
    schema::Unreadable,
    write::{Action, Table, Update, Write},
};

/// Its key, and the prefix of its partition key, are those of no job. Stored, so they are stable.
const CLOCK: &str = "CLOCK";

/// Attribute with the hours since 1970. Stored, so it is stable.
const HOUR: &str = "Hour";

/// Milliseconds of an hour.
pub const HOUR_MS: u64 = 3_600 * 1_000;

/// Its key.
#[must_use]
pub fn key() -> Key {
    Key::new(format!("{}{CLOCK}", job::PARTITION), CLOCK)
}

/// The hour that a clock shows, in hours since 1970.
#[must_use]
pub fn hour(clock: &Item) -> Option<u64> {
    match clock.get(HOUR) {
        Some(AttributeValue::N(hour)) => hour.parse().ok(),
        _ => None,
    }
}

/// A clock that shows this hour.
#[must_use]
pub fn showing(hour: u64) -> Item {
    Item::from([(HOUR.to_owned(), AttributeValue::N(hour.to_string()))])
}

/// What is wrong with an item at this hour, if it is the clock and no function corrects it.
#[must_use]
pub fn flaw(of: &Key, item: &Item, now: u64) -> Option<Unreadable> {
    if of.sk != CLOCK || *of != key() {
        return None;
    }
    let why = match hour(item) {
        None => "is not a number of hours since 1970",
        Some(hour) if hour > now + 1 => "is in the future",
        Some(_) => return None,
    };
    let why = format!(
        "{why}, so sums of the last hours and days are wrong: delete the item, and the functions write it again within an hour"
    );
    Some(Unreadable { attribute: HOUR.to_owned(), why })
}

/// The write that moves it on to this hour, unless it shows this hour or a later one.
#[must_use]
pub fn moves_to(hour: u64) -> Write {
    let shown = AttributeValue::N(hour.to_string());
    let guard = Guard { purpose: Purpose::Clock, asks: vec![Ask::LacksOrBelow(HOUR.to_owned(), shown)] };
    let action = Action::Update(Update::set(showing(hour)));
    Write { table: Table::Main, key: key(), action, guard: Some(guard) }
}

/// Hours of a span of time that has a fixed number of them.
#[must_use]
pub fn hours(span: TimeSpan) -> Option<u64> {
    match span {
        TimeSpan::Hour => Some(1),
        TimeSpan::Day => Some(24),
        TimeSpan::Week | TimeSpan::Month => None,
    }
}

/// The text of the hour or day in UTC that contains this hour, such as `2024-01-15T10` or `2024-01-15`; `None` for
/// another span, or a year after 9999.
#[must_use]
pub fn text(hour: u64, span: TimeSpan) -> Option<String> {
    let seconds = i64::try_from(hour).ok()?.checked_mul(3_600)?;
    let time = Timestamp::from_second(seconds).ok()?;
    hours(span)?;
    Some(time.strftime(if span == TimeSpan::Hour { "%Y-%m-%dT%H" } else { "%Y-%m-%d" }).to_string())
}

/// The first hour of an hour or day with this text; `None` if it is none since 1970.
#[must_use]
pub fn first_hour(bucket: &str, span: TimeSpan) -> Option<u64> {
    let time = if span == TimeSpan::Hour { format!("{bucket}:00Z") } else { format!("{bucket}T00:00Z") };
    let hour = u64::try_from(time.parse::<Timestamp>().ok()?.as_second()).ok()? / 3_600;
    (text(hour, span)? == bucket).then_some(hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_and_a_day_have_the_texts_of_buckets() {
        let hour = first_hour("2024-01-15T10", TimeSpan::Hour).unwrap();
        assert_eq!(text(hour, TimeSpan::Hour).as_deref(), Some("2024-01-15T10"));
        assert_eq!(text(hour, TimeSpan::Day).as_deref(), Some("2024-01-15"));
        assert_eq!(first_hour("2024-01-15", TimeSpan::Day), Some(hour - 10));
        for (other, span) in [
            ("2024-01-15", TimeSpan::Hour),
            ("2024-01-15T10", TimeSpan::Day),
            ("2024-1-15", TimeSpan::Day),
            ("1969-12-31", TimeSpan::Day),
            ("tea", TimeSpan::Day),
            ("2024-W03", TimeSpan::Week),
        ] {
            assert_eq!(first_hour(other, span), None, "{other}");
        }
    }

    #[test]
    fn a_clock_moves_on_and_never_back() {
        let clock = showing(12);
        assert_eq!(hour(&clock), Some(12));
        let lands = |hour| moves_to(hour).guard.unwrap().holds(Some(&clock));
        assert!(lands(13) && !lands(12) && !lands(11));
        assert!(moves_to(1).guard.unwrap().holds(None));
    }

    #[test]
    fn a_clock_that_no_function_corrects_has_a_flaw() {
        let flaw_of = |clock: &Item| flaw(&key(), clock, 20).map(|why| why.why);
        assert_eq!([flaw_of(&showing(3)), flaw_of(&showing(21))], [None, None]);
        assert_eq!(flaw(&Key::new("SHOP#1", "CLOCK"), &Item::new(), 20), None);
        assert!(flaw_of(&showing(22)).unwrap().starts_with("is in the future"));
        let text = Item::from([(HOUR.to_owned(), AttributeValue::S("noon".to_owned()))]);
        assert!(flaw_of(&text).unwrap().starts_with("is not a number of hours since 1970"));
    }
}
