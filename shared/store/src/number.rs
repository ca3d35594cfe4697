//! Numbers as DynamoDB holds them: decimals of 38 digits, in one form.

use std::str::FromStr;

use bigdecimal::{BigDecimal, num_bigint::Sign};

/// Most significant digits of a number. Source: DynamoDB, "Supported data types".
pub const DIGITS_MAX: u64 = 38;

/// Smallest exponent of a number's first digit: 1E-130. Source: DynamoDB, "Supported data types".
const EXPONENT_MIN: i128 = -130;

/// Largest exponent of a number's first digit: 9.99…E+125. Source: DynamoDB, "Supported data types".
const EXPONENT_MAX: i128 = 125;

/// Longest text of a number that is read, in characters: ample for 130 zeros and 38 digits, and no text makes a huge
/// number.
const TEXT_MAX: usize = 512;

/// The number in the form in which DynamoDB gives it back: `1.50` is `1.5`, `1E3` is `1000`; `None` when it is none, or
/// out of range.
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    read(text).map(|number| number.to_plain_string())
}

/// The exact sum; `None` when it is out of range, or a text is no number.
#[must_use]
pub fn sum(text: &str, amount: &str) -> Option<String> {
    in_range(&(read(text)? + read(amount)?)).map(|number| number.to_plain_string())
}

/// What a number takes in an item, in bytes: a byte, a byte for every two digits on either side of the point, and one
/// for the minus. Zeros before and after the other digits take nothing.
#[must_use]
pub fn bytes(text: &str) -> usize {
    let Some(number) = read(text) else {
        return 1 + text.len().div_ceil(2);
    };
    if number.sign() == Sign::NoSign {
        return 1;
    }
    let (_, scale) = number.as_bigint_and_exponent();
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    let whole = digits.saturating_sub(scale).clamp(0, digits);
    let half = |digits: i64| usize::try_from(digits).unwrap_or(0).div_ceil(2);
    1 + half(whole) + half(digits - whole) + usize::from(number.sign() == Sign::Minus)
}

fn read(text: &str) -> Option<BigDecimal> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if text.len() > TEXT_MAX || !text.chars().all(is_number) {
        return None;
    }
    in_range(&BigDecimal::from_str(text).ok()?)
}

fn in_range(number: &BigDecimal) -> Option<BigDecimal> {
    let number = number.normalized();
    if number.sign() == Sign::NoSign {
        return Some(BigDecimal::from(0));
    }
    let (_, scale) = number.as_bigint_and_exponent();
    let exponent = i128::from(number.digits()) - i128::from(scale) - 1;
    (number.digits() <= DIGITS_MAX && (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent)).then_some(number)
}

#[cfg(test)]
mod tests {
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
    }
}
