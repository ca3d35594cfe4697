//! The forms that a field of a template has in the key.

use smol_str::{SmolStr, ToSmolStr};

use crate::{error::Problem, escape, fields::Fields, path::Path};

/// Most digits of a padded or inverted number: what DynamoDB's own numbers hold.
const DIGITS_MAX: usize = 38;

/// How a field's value stands in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Path,
    LastSegment,
    Padded { digits: usize },
    Inverted { digits: usize },
    Spread { suffixes: u32 },
    Raw,
}

impl Form {
    /// The name and the form of what stands between braces.
    pub(super) fn parse(field: &str) -> Option<(&str, Self)> {
        let digits = |text: &str| text.parse().ok().filter(|digits| (1..=DIGITS_MAX).contains(digits));
        let (name, form) = if let Some(inverted) = field.strip_prefix("MAX-") {
            let (name, width) = inverted.split_once(':')?;
            (name, Self::Inverted { digits: digits(width)? })
        } else if let Some((name, width)) = field.split_once(':') {
            (name, Self::Padded { digits: digits(width)? })
        } else if let Some((name, suffixes)) = field.split_once('%') {
            (name, Self::Spread { suffixes: suffixes.parse().ok().filter(|suffixes| (1..=100).contains(suffixes))? })
        } else if let Some(name) = field.strip_suffix("/last") {
            (name, Self::LastSegment)
        } else if let Some(name) = field.strip_suffix('/') {
            (name, Self::Path)
        } else if let Some(name) = field.strip_suffix('*') {
            (name, Self::Raw)
        } else {
            (field, Self::Text)
        };
        let named = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        named.then_some((name, form))
    }

    /// Adds a value to a key.
    pub(super) fn build(self, value: &str, key: &mut String) -> Result<(), Problem> {
        if value.is_empty() {
            return Err(Problem::Empty);
        }
        match self {
            Self::Text if !value.contains(['#', '%']) => key.push_str(value),
            Self::Text => key.push_str(&escape::value(value)),
            Self::Raw => key.push_str(value),
            Self::Path => key.push_str(&path(value)?.to_string()),
            Self::LastSegment => {
                key.push_str(&escape::value(path(value)?.segments().last().map_or("", String::as_str)));
            }
            Self::Padded { digits } => key.push_str(&padded(whole(value, digits)?, digits)),
            Self::Inverted { digits } => key.push_str(&padded(highest(digits) - whole(value, digits)?, digits)),
            Self::Spread { suffixes } => {
                key.push_str(&padded(u128::from(crc32fast::hash(value.as_bytes()) % suffixes), 2));
            }
        }
        Ok(())
    }

    /// Reads a value back into the fields; false when it is not of this form.
    pub(super) fn read(self, name: &SmolStr, value: &str, fields: &mut Fields) -> bool {
        let number = |digits: usize| {
            let all = value.len() == digits && value.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| value.parse::<u128>().ok()).flatten()
        };
        let read = match self {
            Self::Text => (!value.is_empty() && !value.contains('#')).then(|| restored(value)),
            Self::Path => path(value).ok().map(|_| value.into()),
            Self::Padded { digits } => number(digits).map(|number| number.to_smolstr()),
            Self::Inverted { digits } => number(digits).map(|number| (highest(digits) - number).to_smolstr()),
            Self::Raw => Some(value.into()),
            Self::LastSegment => return !value.is_empty(),
            Self::Spread { suffixes } => return number(2).is_some_and(|suffix| suffix < u128::from(suffixes)),
        };
        // A field may occur twice; then both must say the same.
        read.is_some_and(|value| fields.agrees(name, value))
    }
}

/// Most values hold no escape, and need no text of their own.
fn restored(value: &str) -> SmolStr {
    if value.contains('%') { escape::restored(value).into() } else { value.into() }
}

fn path(value: &str) -> Result<Path, Problem> {
    value.parse().map_err(|_| Problem::NotAPath)
}

fn whole(value: &str, digits: usize) -> Result<u128, Problem> {
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::NotANumber);
    }
    let number = value.parse().map_err(|_| Problem::DoesNotFit { digits })?;
    if number > highest(digits) { Err(Problem::DoesNotFit { digits }) } else { Ok(number) }
}

fn padded(number: u128, digits: usize) -> String {
    format!("{number:0digits$}")
}

/// The largest number of so many digits; at most 38, which a `u128` holds.
fn highest(digits: usize) -> u128 {
    (0..digits).fold(0, |number, _| number * 10 + 9)
}
