//! Tallies: a count and a sum.
//!
//! Sums are exact. DynamoDB numbers have up to 38 digits, and so has each summed number. Intermediate sums may have
//! more, and are kept in full until they are written. So the order of adding does not matter.

use std::{fmt, str::FromStr};

use bigdecimal::{BigDecimal, RoundingMode, Zero};
use keys::number::{DIGITS, Decimal, QUOTIENT_PLACES};
use serde_dynamo::AttributeValue;

use crate::schema::Unreadable;

/// An exact sum of numbers.
///
/// ```
/// use derive::tally::Sum;
/// use serde_dynamo::AttributeValue;
///
/// let number = |text: &str| AttributeValue::N(text.to_owned());
/// let mut sum = Sum::of(&number("0.1")).unwrap();
/// sum.add(&Sum::of(&number("2E-1")).unwrap());
/// assert_eq!(sum.to_value(), number("0.3"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum(BigDecimal);

impl FromStr for Sum {
    type Err = bigdecimal::ParseBigDecimalError;

    /// Parses a number with any number of digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A count and a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The count.
    pub count: i64,
    /// The sum; 0 if nothing is summed.
    pub sum: Sum,
}

impl Sum {
    /// The number in a value; `None` if it is not a number that DynamoDB can store.
    #[must_use]
    pub fn of(value: &AttributeValue) -> Option<Self> {
        let AttributeValue::N(text) = value else { return None };
        Decimal::parse(text).map(|number| Self(number.into()))
    }

    /// The number in an attribute, if the attribute exists.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it has another type, or is not a number that DynamoDB can store.
    pub fn read(name: &str, value: Option<&AttributeValue>) -> Result<Option<Self>, Unreadable> {
        let read = |value: &AttributeValue| match value {
            AttributeValue::N(_) => Self::of(value).ok_or_else(|| Unreadable {
                attribute: name.to_owned(),
                why: "is no number that DynamoDB holds".to_owned(),
            }),
            _ => Err(Unreadable::type_of(name, value, "N is wanted")),
        };
        value.map(read).transpose()
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        if !other.is_zero() {
            self.0 += &other.0;
        }
    }

    /// Takes another away.
    pub fn subtract(&mut self, other: &Self) {
        if !other.is_zero() {
            self.0 -= &other.0;
        }
    }

    /// True if it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// The sum as an attribute, in the form that DynamoDB returns. A sum of more than 38 digits is refused when it is
    /// written.
    #[must_use]
    pub fn to_value(&self) -> AttributeValue {
        AttributeValue::N(self.to_string())
    }
}

/// In the form that DynamoDB returns.
impl fmt::Display for Tally {
    /// The count, with its sign if the format requests it, and the sum if it is not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.sign_plus() {
            write!(f, "{:+}", self.count)?;
        } else {
            write!(f, "{}", self.count)?;
        }
        if self.sum.is_zero() { Ok(()) } else { write!(f, ", sum {}", self.sum) }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.normalized().to_plain_string())
    }
}

impl Tally {
    /// A count without a sum.
    #[must_use]
    pub fn of(count: i64) -> Self {
        Self { count, sum: Sum::default() }
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum.add(&other.sum);
    }

    /// Takes another away.
    pub fn subtract(&mut self, other: &Self) {
        self.count = self.count.saturating_sub(other.count);
        self.sum.subtract(&other.sum);
    }

    /// True if count and sum are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.count == 0 && self.sum.is_zero()
    }

    /// The sum divided by the count, rounded to 6 decimal places and 38 digits in all, half to even; `None` for a count
    /// of 0.
    ///
    /// ```
    /// use derive::tally::Tally;
    ///
    /// let tally = Tally { count: 3, sum: "20".parse().unwrap() };
    /// assert_eq!(tally.average(), "6.666667".parse().ok());
    /// assert_eq!(Tally::default().average(), None);
    /// ```
    #[must_use]
    pub fn average(&self) -> Option<Sum> {
        if self.count == 0 {
            return None;
        }
        let average = &self.sum.0 / BigDecimal::from(self.count);
        let average = average.with_scale_round(QUOTIENT_PLACES, RoundingMode::HalfEven);
        Some(Sum(average.with_precision_round(DIGITS, RoundingMode::HalfEven)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::n;

    #[test]
    fn what_dynamodb_cannot_hold_is_no_number() {
        let digits_39 = "1".repeat(39);
        for text in ["", "x", "1_0", "NaN", "1e126", "1e-131", "1e999999999", digits_39.as_str()] {
            assert_eq!(Sum::of(&n(text)), None, "{text}");
        }
        assert_eq!(Sum::of(&AttributeValue::S("1".to_owned())), None);
        for (text, form) in [("0.00", "0"), ("1.50", "1.5"), ("-1E3", "-1000"), ("9.9e125", ""), ("1e-130", "")] {
            let sum = Sum::of(&n(text)).unwrap().to_value();
            assert!(form.is_empty() || sum == n(form), "{text}");
        }
    }

    #[test]
    fn a_sum_that_passes_38_digits_on_the_way_is_exact() {
        let [large, small] = ["1e38", "1e-38"].map(|text| Sum::of(&n(text)).unwrap());
        let mut sum = large.clone();
        sum.add(&small);
        sum.subtract(&large);
        assert_eq!(sum.to_value(), small.to_value());
    }

    proptest! {
        #[test]
        fn decimals_of_38_digits_sum_exactly(
            numbers in prop::collection::vec((any::<bool>(), "[0-9]{1,37}", 0usize..=37), 1..20)
        ) {
            // In units of 1E-37, added as whole numbers, digit by digit in two halves.
            let mut sum = Sum::default();
            let (mut high, mut low) = (0i128, 0i128);
            for (is_negative, digits, places) in &numbers {
                let places = (*places).min(digits.len());
                let (whole, part) = digits.split_at(digits.len() - places);
                let sign = if *is_negative { "-" } else { "" };
                sum.add(&Sum::of(&n(&format!("{sign}0{whole}.{part}0"))).unwrap());
                let sign = if *is_negative { -1 } else { 1 };
                high += sign * format!("0{whole}").parse::<i128>().unwrap();
                low += sign * format!("{part:0<37}").parse::<i128>().unwrap();
            }
            let mut wanted = Sum(BigDecimal::new(low.into(), 37));
            wanted.add(&Sum(BigDecimal::new(high.into(), 0)));
            prop_assert_eq!(sum, wanted);
        }
    }

    #[test]
    fn an_average_is_rounded_to_six_digits_and_a_half_to_the_even_one() {
        let average = |sum: &str, count: i64| {
            let tally = Tally { count, sum: sum.parse().unwrap() };
            tally.average().map(|average| average.to_value())
        };
        let number = |text: &str| Some(AttributeValue::N(text.to_owned()));
        assert_eq!(average("9", 2), number("4.5"));
        assert_eq!(average("-20", 3), number("-6.666667"));
        assert_eq!(average("1", 2_000_000), number("0"));
        assert_eq!(average("3", 2_000_000), number("0.000002"));
        assert_eq!(average("0", 7), number("0"));
        assert_eq!(average("7", 0), None);
        let large = "9".repeat(38);
        assert_eq!(average(&large, 1), number(&large));
    }
}
