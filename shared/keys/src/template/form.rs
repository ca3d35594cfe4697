//! The forms of a template's fields in the key.

use smol_str::{SmolStr, ToSmolStr};

use crate::{
    error::Problem,
    escape,
    fields::Fields,
    number::{Decimal, from_sortable, sortable},
};

/// Most digits of a padded or inverted number: those of DynamoDB's own numbers.
const DIGITS_MAX: usize = 38;

/// Form of a field's value in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{UserId}`: any text, with `#` and `%` escaped.
    Text,
    /// `{UserId!}`: any text without `#`, as it is.
    Plain,
    /// `{lower(Email)}`: any text, in one case.
    Cased(Casing),
    /// `{Path/}`: a path.
    Path,
    /// `{Path/last}`: the last segment of a path; not read back.
    LastSegment,
    /// `{Shard:2}`: a number, padded with zeros.
    Padded(Width),
    /// `{MAX-Shard:2}`: a number in descending order, padded.
    Inverted(Width),
    /// `{UserId%8}`: a suffix that spreads a partition key; not read back.
    Spread {
        /// Number of suffixes, 1 to 100.
        suffixes: u32,
    },
    /// `{Target*}`: any text, as it is; it may contain what separates fields.
    Raw,
    /// `{CreatedAt:N}`: any number, as text that [sorts](crate::number::sortable) by value.
    Number,
    /// `{Id:B}`: bytes, each as two hexadecimal digits; the field's value is that text too.
    Bytes,
}

/// Number of digits of a number in the key: in all, and after the decimal point, which is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Digits in all, 1 to 38.
    pub digits: usize,
    /// Decimal places.
    pub places: u32,
}

/// The case of a text in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Casing {
    /// True for upper case, false for lower case.
    pub is_upper: bool,
    /// True if `#` and `%` are escaped; otherwise a `#` is refused.
    pub is_escaped: bool,
}

impl Casing {
    /// The text in this case.
    #[must_use]
    pub fn of(self, text: &str) -> String {
        if self.is_upper { text.to_uppercase() } else { text.to_lowercase() }
    }

    /// The form of the text, apart from its case.
    fn form(self) -> Form {
        if self.is_escaped { Form::Text } else { Form::Plain }
    }
}

impl Form {
    /// The name and the form of a field, from the text between braces.
    pub(super) fn parse(field: &str) -> Option<(&str, Self)> {
        let (name, form) = if let Some(inverted) = field.strip_prefix("MAX-") {
            let (name, width) = inverted.split_once(':')?;
            (name, Self::Inverted(Width::parse(width)?))
        } else if let Some(name) = field.strip_suffix(":N") {
            (name, Self::Number)
        } else if let Some(name) = field.strip_suffix(":B") {
            (name, Self::Bytes)
        } else if let Some((name, width)) = field.split_once(':') {
            (name, Self::Padded(Width::parse(width)?))
        } else if let Some((name, suffixes)) = field.split_once('%') {
            (name, Self::Spread { suffixes: suffixes.parse().ok().filter(|suffixes| (1..=100).contains(suffixes))? })
        } else if let Some(name) = field.strip_suffix("/last") {
            (name, Self::LastSegment)
        } else if let Some(name) = field.strip_suffix('/') {
            (name, Self::Path)
        } else if let Some((function @ ("lower" | "upper"), argument)) = field.split_once('(') {
            (argument.strip_suffix(')')?, Self::Cased(Casing { is_upper: function == "upper", is_escaped: true }))
        } else if let Some(name) = field.strip_suffix('!') {
            (name, Self::Plain)
        } else if let Some(name) = field.strip_suffix('*') {
            (name, Self::Raw)
        } else {
            (field, Self::Text)
        };
        let named = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        named.then_some((name, form))
    }

    /// True if the key contains the value as a number.
    #[must_use]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Padded(_) | Self::Inverted(_) | Self::Number)
    }

    /// Adds a value to a key.
    pub(super) fn build(self, value: &str, key: &mut String) -> Result<(), Problem> {
        if value.is_empty() {
            return Err(Problem::Empty);
        }
        match self {
            Self::Text if !value.contains(['#', '%']) => key.push_str(value),
            Self::Text => key.push_str(&escape::value(value)),
            Self::Cased(casing) => casing.form().build(&casing.of(value), key)?,
            Self::Plain if value.contains('#') => return Err(Problem::HoldsSeparator),
            Self::Plain | Self::Raw => key.push_str(value),
            Self::Number => key.push_str(&sortable(value).ok_or(Problem::NotSortable)?),
            Self::Bytes => key.push_str(bytes(value).ok_or(Problem::NotBytes)?),
            Self::Path => key.push_str(&path_of(&segments(value)?)),
            Self::LastSegment => {
                key.push_str(&escape::value(segments(value)?.last().map_or("", String::as_str)));
            }
            Self::Padded(width) => key.push_str(&padded(width.scaled(value)?, width.digits)),
            Self::Inverted(width) => key.push_str(&padded(width.highest() - width.scaled(value)?, width.digits)),
            Self::Spread { suffixes } => {
                key.push_str(&padded(u128::from(crc32fast::hash(value.as_bytes()) % suffixes), 2));
            }
        }
        Ok(())
    }

    /// Reads a value back into the fields; false if it does not have this form.
    pub(super) fn read(self, name: &SmolStr, value: &str, fields: &mut Fields) -> bool {
        let number = |digits: usize| {
            let all = value.len() == digits && value.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| value.parse::<u128>().ok()).flatten()
        };
        let read = match self {
            Self::Text => (!value.is_empty() && !value.contains('#')).then(|| restored(value)).flatten(),
            Self::Plain => (!value.is_empty() && !value.contains('#')).then(|| value.into()),
            Self::Path => segments(value).ok().filter(|all| path_of(all) == value).map(|_| value.into()),
            Self::Padded(width) => number(width.digits).and_then(|number| width.text(number)),
            Self::Inverted(width) => number(width.digits).and_then(|number| width.text(width.highest() - number)),
            Self::Raw => (!value.is_empty()).then(|| value.into()),
            Self::Number => from_sortable(value).map(SmolStr::from),
            Self::Bytes => bytes(value).map(SmolStr::from),
            // In another case, two keys would have the same fields.
            Self::Cased(casing) => {
                return casing.form().read(name, value, fields)
                    && fields.get(name).is_some_and(|text| casing.of(text) == text);
            }
            Self::LastSegment => return !value.is_empty(),
            Self::Spread { suffixes } => return number(2).is_some_and(|suffix| suffix < u128::from(suffixes)),
        };
        // A field may occur twice; then both values must be equal.
        read.is_some_and(|value| fields.agrees(name, value))
    }
}

/// The text whose escaped form is this value; `None` if there is none: two keys would have the same fields. Most values
/// have no escapes, and need no new text.
fn restored(value: &str) -> Option<SmolStr> {
    if !value.contains('%') {
        return Some(value.into());
    }
    let text = escape::restored(value);
    (escape::value(&text) == value).then(|| text.into())
}

/// The value, if it is bytes in hexadecimal digits.
fn bytes(value: &str) -> Option<&str> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (!value.is_empty() && value.len().is_multiple_of(2) && value.bytes().all(is_digit)).then_some(value)
}

/// The segments of a path such as `/ceo/vp/engineer`, unescaped, from the root down. A segment is any text that is not
/// empty.
fn segments(path: &str) -> Result<Vec<String>, Problem> {
    let segments = path.strip_prefix('/').filter(|all| !all.contains('#') && !all.split('/').any(str::is_empty));
    Ok(segments.ok_or(Problem::NotAPath)?.split('/').map(escape::restored).collect())
}

/// The path of these segments, in which `/`, `#` and `%` are escaped: it is a prefix of the path of everything below it,
/// up to the next `/`.
fn path_of(segments: &[String]) -> String {
    segments.iter().flat_map(|segment| ["/".to_owned(), escape::segment(segment)]).collect()
}

impl Width {
    /// Reads `12` or `14.2`.
    fn parse(text: &str) -> Option<Self> {
        let (digits, places) = match text.split_once('.') {
            Some((digits, places)) => (digits, places.parse().ok().filter(|places| *places > 0)?),
            None => (text, 0),
        };
        let digits = digits.parse().ok().filter(|digits| (1..=DIGITS_MAX).contains(digits))?;
        usize::try_from(places).is_ok_and(|places| places <= digits).then_some(Self { digits, places })
    }

    /// The value as a whole number of its smallest unit.
    fn scaled(self, value: &str) -> Result<u128, Problem> {
        let scaled = if self.places == 0 && value.bytes().all(|byte| byte.is_ascii_digit()) {
            // The usual form, which needs no arbitrary-precision arithmetic.
            value.parse().ok()
        } else {
            let number = Decimal::parse(value).filter(|number| !number.is_negative());
            let number = number.filter(|number| self.places > 0 || number.is_whole()).ok_or(self.no_number())?;
            number.scaled(self.places)
        };
        scaled.filter(|number| *number <= self.highest()).ok_or(self.does_not_fit())
    }

    /// The text of a number given in its smallest unit.
    fn text(self, scaled: u128) -> Option<SmolStr> {
        if self.places == 0 {
            return Some(scaled.to_smolstr());
        }
        Decimal::from_scaled(scaled, self.places).map(|number| number.to_smolstr())
    }

    /// The largest number of this many digits; at most 38, which a `u128` can represent.
    fn highest(self) -> u128 {
        (0..self.digits).fold(0, |number, _| number * 10 + 9)
    }

    fn no_number(self) -> Problem {
        if self.places == 0 { Problem::NotANumber } else { Problem::NotADecimal }
    }

    fn does_not_fit(self) -> Problem {
        match self {
            Self { digits, places: 0 } => Problem::DoesNotFit { digits },
            Self { digits, places } => Problem::DoesNotFitDecimal { digits, places },
        }
    }
}

fn padded(number: u128, digits: usize) -> String {
    format!("{number:0digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_path_reads_back_as_it_was_built(all in proptest::collection::vec(".+", 1..5)) {
            proptest::prop_assert_eq!(segments(&path_of(&all)).unwrap(), all);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "/", "a/b", "/a//b", "/a#b"] {
            assert!(segments(text).is_err(), "{text}");
        }
    }
}
