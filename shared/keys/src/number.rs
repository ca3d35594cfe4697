//! Numbers as DynamoDB stores them: decimals of 38 digits, in canonical form.
//!
//! They are text throughout, and never binary floating point, so they are written and read exactly.

use std::{fmt, num::NonZeroU64, str::FromStr};

use bigdecimal::{
    BigDecimal, RoundingMode, ToPrimitive, Zero,
    num_bigint::{BigInt, Sign},
};

/// Most significant digits of a number. Source: DynamoDB, "Supported data types".
pub const DIGITS_MAX: u64 = 38;

/// The same, for rounding.
pub const DIGITS: NonZeroU64 = NonZeroU64::new(DIGITS_MAX).unwrap();

/// Smallest exponent of a number's first digit: 1E-130. Source: DynamoDB, "Supported data types".
const EXPONENT_MIN: i128 = -130;

/// Largest exponent of a number's first digit: 9.99…E+125. Source: DynamoDB, "Supported data types".
const EXPONENT_MAX: i128 = 125;

/// Most decimal places of a quotient, such as an average.
pub const QUOTIENT_PLACES: i64 = 6;

/// Longest text of a number that is parsed, in characters: enough for 130 zeros and 38 digits, and a bound on the size
/// of the number.
const TEXT_MAX: usize = 512;

/// Most digits before the decimal point, so that their number has two digits.
const WHOLE_DIGITS_MAX: usize = 99;

/// A number that DynamoDB can store: at most 38 significant digits, 1E-130 to 9.9E+125 in size, or 0.
///
/// Compared by value, and written in the form that DynamoDB returns.
///
/// ```
/// use keys::number::Decimal;
///
/// let price = Decimal::parse("19.90").unwrap();
/// assert_eq!(price.to_string(), "19.9");
/// assert_eq!(price.plus(&Decimal::from(1)), Decimal::parse("2.09E1"));
/// assert_eq!(Decimal::parse("1E126"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(BigDecimal);

impl Decimal {
    /// Parses a number; `None` if it is not a number, or out of range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        if text.len() > TEXT_MAX || !text.chars().all(is_number) {
            return None;
        }
        Self::in_range(&BigDecimal::from_str(text).ok()?)
    }

    /// The exact sum; `None` if it is out of range.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        Self::in_range(&(&self.0 + &other.0))
    }

    /// The exact difference; `None` if it is out of range.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        Self::in_range(&(&self.0 - &other.0))
    }

    /// The exact product; `None` if it is out of range.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        Self::in_range(&(&self.0 * &other.0))
    }

    /// The quotient, rounded to 6 digits behind the point and 38 digits in all, a half to the even digit; `None` if the
    /// other is 0, or the quotient is out of range.
    #[must_use]
    pub fn divided_by(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let quotient = (&self.0 / &other.0).with_scale_round(QUOTIENT_PLACES, RoundingMode::HalfEven);
        Self::in_range(&quotient.with_precision_round(DIGITS, RoundingMode::HalfEven))
    }

    /// The greatest integer that is not above it; `None` if that is too large.
    #[must_use]
    pub fn floor(&self) -> Option<i64> {
        self.0.with_scale_round(0, RoundingMode::Floor).to_i64()
    }

    /// True if it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// True if it has no decimal places.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.is_integer()
    }

    /// The number as an integer; `None` if it is not whole, or too large.
    #[must_use]
    pub fn whole(&self) -> Option<i64> {
        // It has no decimal places, so nothing is truncated.
        self.is_whole().then(|| self.0.to_i64()).flatten()
    }

    /// The number times ten to the power of `places`; `None` if that is not whole, is negative, or too large.
    pub(crate) fn scaled(&self, places: u32) -> Option<u128> {
        let scaled = &self.0 * BigDecimal::new(BigInt::from(1), -i64::from(places));
        scaled.is_integer().then(|| scaled.to_u128()).flatten()
    }

    /// The inverse of [`scaled`](Self::scaled).
    pub(crate) fn from_scaled(scaled: u128, places: u32) -> Option<Self> {
        Self::in_range(&BigDecimal::new(BigInt::from(scaled), i64::from(places)))
    }

    /// True if it is below 0.
    pub(crate) fn is_negative(&self) -> bool {
        self.0.sign() == Sign::Minus
    }

    fn in_range(number: &BigDecimal) -> Option<Self> {
        let number = number.normalized();
        if number.is_zero() {
            return Some(Self::default());
        }
        let (_, scale) = number.as_bigint_and_exponent();
        let exponent = i128::from(number.digits()) - i128::from(scale) - 1;
        let fits = number.digits() <= DIGITS_MAX && (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent);
        fits.then_some(Self(number))
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self(BigDecimal::from(number).normalized())
    }
}

/// The number for arithmetic whose intermediate results may exceed 38 digits.
impl From<Decimal> for BigDecimal {
    fn from(number: Decimal) -> Self {
        number.0
    }
}

/// In the form that DynamoDB returns: without an exponent, and without redundant zeros.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_plain_string())
    }
}

/// The number in the form that DynamoDB returns: `1.50` is `1.5`, `1E3` is `1000`; `None` if it is not a number, or out
/// of range.
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    Decimal::parse(text).map(|number| number.to_string())
}

/// The exact sum; `None` if it is out of range, or a text is not a number.
#[must_use]
pub fn sum(text: &str, amount: &str) -> Option<String> {
    Decimal::parse(text)?.plus(&Decimal::parse(amount)?).map(|number| number.to_string())
}

/// True if these two texts are the same number, or the same text.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    if let (Some(a), Some(b)) = (plain(a), plain(b)) {
        return a == b;
    }
    a == b || matches!((Decimal::parse(a), Decimal::parse(b)), (Some(a), Some(b)) if a == b)
}

/// The whole number in a text; `None` if it is another number, not a number, or too large for a count.
#[must_use]
pub fn whole(text: &str) -> Option<i64> {
    plain(text).or_else(|| Decimal::parse(text)?.whole())
}

/// A whole number in its usual form, which needs no arbitrary-precision arithmetic.
fn plain(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.len() <= TEXT_MAX)
}

/// The size of a number in an item, in bytes: a byte, a byte for every two digits on either side of the decimal point,
/// and one for the minus sign. Leading and trailing zeros take no bytes.
#[must_use]
pub fn bytes(text: &str) -> usize {
    let Some(Decimal(number)) = Decimal::parse(text) else {
        return 1 + text.len().div_ceil(2);
    };
    if number.is_zero() {
        return 1;
    }
    let (_, scale) = number.as_bigint_and_exponent();
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    let whole = digits.saturating_sub(scale).clamp(0, digits);
    let half = |digits: i64| usize::try_from(digits).unwrap_or(0).div_ceil(2);
    1 + half(whole) + half(digits - whole) + usize::from(number.sign() == Sign::Minus)
}

// ---- Numbers as text that sorts by value ----

/// The text of a number that sorts by value; `None` if it is not a number, or has more than 99 digits before the decimal
/// point.
///
/// A sort key of type N is ordered by value. Everything else here compares keys as text, so this text begins with the
/// number of digits before the decimal point: `13:1700000000000` is after `03:999`, and `01:0.5` before both. A negative
/// number has the digits of its complement, between `-` and `~`, so that the least is first.
///
/// ```
/// use keys::number::{from_sortable, sortable};
///
/// assert_eq!(sortable("1.7E12").as_deref(), Some("13:1700000000000"));
/// assert_eq!(from_sortable("13:1700000000000").as_deref(), Some("1700000000000"));
/// assert!(sortable("-20") < sortable("-3") && sortable("-3") < sortable("0.5") && sortable("0.5") < sortable("12"));
/// ```
#[must_use]
pub fn sortable(number: &str) -> Option<String> {
    let number = canonical(number)?;
    let (is_negative, digits) = number.strip_prefix('-').map_or((false, number.as_str()), |digits| (true, digits));
    let n_whole = digits.find('.').unwrap_or(digits.len());
    if n_whole > WHOLE_DIGITS_MAX {
        return None;
    }
    let text = format!("{n_whole:02}:{digits}");
    Some(if is_negative { format!("-{}~", complement(&text)) } else { text })
}

/// The number of a [sortable] text, in the form that DynamoDB returns; `None` if it is none.
#[must_use]
pub fn from_sortable(sortable: &str) -> Option<String> {
    let negative = sortable.strip_prefix('-').and_then(|rest| rest.strip_suffix('~'));
    let plain = negative.map_or_else(|| sortable.to_owned(), complement);
    let (_, digits) = plain.split_once(':')?;
    let number = if negative.is_some() { format!("-{digits}") } else { digits.to_owned() };
    let number = canonical(&number)?;
    // Only the one text of a number is accepted, so that no two keys are one item.
    (self::sortable(&number).as_deref() == Some(sortable)).then_some(number)
}

/// Each digit subtracted from 9.
fn complement(text: &str) -> String {
    let of = |c: char| c.to_digit(10).and_then(|digit| char::from_digit(9 - digit, 10)).unwrap_or(c);
    text.chars().map(of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (text, form) in [
            ("0042", "42"),
            ("1.50", "1.5"),
            ("1E3", "1000"),
            ("-0", "0"),
            ("0.00", "0"),
            ("1e-3", "0.001"),
            ("1E-8", "0.00000001"),
            ("+7", "7"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(form), "{text}");
        }
        let longest = "12345678901234567890123456789012345678";
        assert_eq!(canonical(longest).as_deref(), Some(longest));
    }

    #[test]
    fn what_dynamodb_cannot_hold_is_no_number() {
        let digits_39 = "123456789012345678901234567890123456789";
        for text in
            ["", "x", "1_0", "NaN", "--1", "1e126", "1e-131", "1e999999999", "1e99999999999999999999", digits_39]
        {
            assert_eq!(canonical(text), None, "{text}");
        }
        assert!(canonical("9.9e125").is_some());
        assert!(canonical("1e-130").is_some());
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(sum("0.1", "2").as_deref(), Some("2.1"));
        assert_eq!(
            sum("99999999999999999999999999999999999998", "1").as_deref(),
            Some("99999999999999999999999999999999999999")
        );
        assert_eq!(sum("0.12345678901234567890123456789012345678", "1"), None, "39 digits");
        assert_eq!(sum("x", "1"), None);
    }

    #[test]
    fn a_number_takes_a_byte_for_two_digits() {
        // The sizes are dynoxide's, which bisected them on AWS at the 400 KB limit.
        for (text, size) in
            [("0", 1), ("-0", 1), ("7", 2), ("42", 2), ("-42", 3), ("123", 3), ("1000", 2), ("1.5", 3), ("0.001", 2)]
        {
            assert_eq!(bytes(text), size, "{text}");
        }
        // These were measured on AWS: see the reference, A1.
        for (text, size) in [
            ("12345678901234567890123456789012345678", 20),
            ("100", 2),
            ("1010", 3),
            ("0.0000001", 2),
            ("1E125", 2),
            ("1.200", 3),
            ("3.14159", 5),
            ("100.5", 4),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (a, b) in
            [("2", "2.0"), ("0.2E1", "2"), ("-0", "0"), ("1e-3", "0.001"), ("100", "1E2"), ("+7", "007"), ("x", "x")]
        {
            assert!(same(a, b), "{a} {b}");
        }
        for (a, b) in [("2", "-2"), ("2", "20"), ("0.1", "0.10000000000000000000000000000000000001"), ("x", "0")] {
            assert!(!same(a, b), "{a} {b}");
        }
        let number = |text| Decimal::parse(text).unwrap();
        assert!(number("-10") < number("-9.5") && number("9.5") < number("10") && number("1E-130") > number("0"));
    }

    #[test]
    fn a_whole_number_is_read_whatever_its_form() {
        for (text, number) in [("2.0", 2), ("-3E2", -300), ("0.00", 0), ("9223372036854775807", i64::MAX)] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in ["0.5", "1e30", "1e999999999", "9223372036854775808", "", "x"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_of_38_digits_reads_back_from_its_text(digits in "[1-9][0-9]{0,36}[1-9]?", exponent in -130i32..88) {
            let number = Decimal::parse(&format!("{digits}E{exponent}")).unwrap();
            prop_assert_eq!(canonical(&number.to_string()), Some(number.to_string()));
            prop_assert_eq!(Decimal::parse(&number.to_string()), Some(number));
        }
    }

    fn number() -> impl Strategy<Value = String> {
        let digits = prop_oneof!["[0-9]{1,3}", "[0-9]{1,38}"];
        (prop::bool::ANY, digits, -20i32..40).prop_map(|(negative, digits, exponent)| {
            let sign = if negative { "-" } else { "" };
            format!("{sign}{digits}E{exponent}")
        })
    }

    proptest! {
        #[test]
        fn texts_sort_as_their_numbers_and_read_back(a in number(), b in number()) {
            let [one, other] = [&a, &b].map(|number| sortable(number).unwrap());
            let [of_one, of_other] = [&a, &b].map(|number| Decimal::parse(number).unwrap());
            prop_assert_eq!(one.cmp(&other), of_one.cmp(&of_other), "{} {}", one, other);
            prop_assert_eq!(from_sortable(&one), canonical(&a));
            prop_assert!(!one.contains(['#', '%']));
        }

        #[test]
        fn what_is_the_text_of_no_number_is_none(text in "[-0-9:.~a#]{0,6}") {
            prop_assert!(from_sortable(&text).is_none_or(|number| sortable(&number) == Some(text)));
        }
    }

    #[test]
    fn a_number_has_one_text_and_what_is_no_number_has_none() {
        assert_eq!(sortable("0").as_deref(), Some("01:0"));
        assert_eq!(sortable("-1.5").as_deref(), Some("-98:8.4~"));
        assert_eq!(sortable("1.50"), sortable("15E-1"));
        for wrong in ["", "x", "1E99", "1E126"] {
            assert_eq!(sortable(wrong), None, "{wrong}");
        }
        for wrong in ["", "5", "02:5", "01:05", "01:5.0", "-98:8.4", "01:"] {
            assert_eq!(from_sortable(wrong), None, "{wrong}");
        }
    }
}
