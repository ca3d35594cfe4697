//! Numbers as text that sorts by value.
//!
//! A sort key of type N is ordered by value. Everything else here compares keys as text, so the text of a number begins
//! with its number of digits before the decimal point: `13:1700000000000` is after `03:999`, and `01:0.5` before both.
//! A negative number has the digits of its complement, between `-` and `~`, so that the least is first.
//!
//! ```
//! use keys::sortable::{restored, text};
//!
//! assert_eq!(text("1.7E12").as_deref(), Some("13:1700000000000"));
//! assert_eq!(restored("13:1700000000000").as_deref(), Some("1700000000000"));
//! assert!(text("-20") < text("-3") && text("-3") < text("0.5") && text("0.5") < text("12"));
//! ```

use crate::number::canonical;

/// Most digits before the decimal point, so that their number has two digits.
const WHOLE_DIGITS_MAX: usize = 99;

/// The text of a number; `None` if it is not a number, or has more than 99 digits before the decimal point.
#[must_use]
pub fn text(number: &str) -> Option<String> {
    let number = canonical(number)?;
    let (is_negative, digits) = number.strip_prefix('-').map_or((false, number.as_str()), |digits| (true, digits));
    let n_whole = digits.find('.').unwrap_or(digits.len());
    if n_whole > WHOLE_DIGITS_MAX {
        return None;
    }
    let text = format!("{n_whole:02}:{digits}");
    Some(if is_negative { format!("-{}~", complement(&text)) } else { text })
}

/// The number of a text, in the form that DynamoDB returns; `None` if it is not the text of a number.
#[must_use]
pub fn restored(sortable: &str) -> Option<String> {
    let negative = sortable.strip_prefix('-').and_then(|rest| rest.strip_suffix('~'));
    let plain = negative.map_or_else(|| sortable.to_owned(), complement);
    let (_, digits) = plain.split_once(':')?;
    let number = if negative.is_some() { format!("-{digits}") } else { digits.to_owned() };
    let number = canonical(&number)?;
    // Only the one text of a number is accepted, so that no two keys are one item.
    (text(&number).as_deref() == Some(sortable)).then_some(number)
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
    use crate::number::Decimal;

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
            let [one, other] = [&a, &b].map(|number| text(number).unwrap());
            let [of_one, of_other] = [&a, &b].map(|number| Decimal::parse(number).unwrap());
            prop_assert_eq!(one.cmp(&other), of_one.cmp(&of_other), "{} {}", one, other);
            prop_assert_eq!(restored(&one), canonical(&a));
            prop_assert!(!one.contains(['#', '%']));
        }

        #[test]
        fn what_is_the_text_of_no_number_is_none(text in "[-0-9:.~a#]{0,6}") {
            prop_assert!(restored(&text).is_none_or(|number| super::text(&number) == Some(text)));
        }
    }

    #[test]
    fn a_number_has_one_text_and_what_is_no_number_has_none() {
        assert_eq!(text("0").as_deref(), Some("01:0"));
        assert_eq!(text("-1.5").as_deref(), Some("-98:8.4~"));
        assert_eq!(text("1.50"), text("15E-1"));
        for wrong in ["", "x", "1E99", "1E126"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
        for wrong in ["", "5", "02:5", "01:05", "01:5.0", "-98:8.4", "01:"] {
            assert_eq!(restored(wrong), None, "{wrong}");
        }
    }
}
