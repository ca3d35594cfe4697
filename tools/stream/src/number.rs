//! `DynamoDB` numbers by value: `2.0`, `2` and `0.2E1` are one number.

/// A number in the one form it has: `0.DIGITS × 10^exponent`, the digits without zeros at either end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Number {
    is_negative: bool,
    exponent: i64,
    digits: String,
}

impl Number {
    /// Reads a decimal number, with or without an exponent. `None` when it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let significant = all.trim_start_matches('0');
        let n_leading_zeros = all.len() - significant.len();
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { is_negative: false, exponent: 0, digits });
        }
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(n_leading_zeros).ok()?;
        Some(Self { is_negative, exponent: exponent.checked_add(point)?, digits })
    }

    /// The bytes that the number counts in an item's size: one, one for two digits on each side of the point, and one
    /// for a minus (measured on AWS; see the reference, A1).
    pub(crate) fn size_bytes(&self) -> usize {
        let n_digits = self.digits.len();
        let n_whole = usize::try_from(self.exponent.max(0)).unwrap_or(n_digits).min(n_digits);
        1 + n_whole.div_ceil(2) + (n_digits - n_whole).div_ceil(2) + usize::from(self.is_negative)
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn numbers_that_are_written_differently_are_equal_by_value() {
        for (a, b) in [("2", "2.0"), ("0.2E1", "2"), ("-0", "0"), ("1e-3", "0.001"), ("100", "1E2"), ("+7", "007")] {
            assert_eq!(Number::parse(a), Number::parse(b), "{a} = {b}");
            assert!(Number::parse(a).is_some());
        }
        assert_ne!(Number::parse("2"), Number::parse("-2"));
        assert_ne!(Number::parse("2"), Number::parse("20"));
        assert_eq!(Number::parse("two"), None);
        assert_eq!(Number::parse(""), None);
    }

    #[test]
    fn a_number_counts_the_bytes_that_were_measured_on_aws() {
        let measured = [
            ("1", 2),
            ("123", 3),
            ("12345678901234567890123456789012345678", 20),
            ("100", 2),
            ("1010", 3),
            ("0.0000001", 2),
            ("0", 1),
            ("1E125", 2),
            ("1.5", 3),
            ("1.200", 3),
            ("3.14159", 5),
            ("100.5", 4),
            ("-42", 3),
            ("-0", 1),
        ];
        for (text, size) in measured {
            assert_eq!(Number::parse(text).unwrap().size_bytes(), size, "{text}");
        }
    }
}
