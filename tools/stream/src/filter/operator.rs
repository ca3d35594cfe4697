//! What one value of a record may be. Pure.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds as _};

use keys::number;
use serde_json::value::RawValue;

use super::pattern::shortened;

const ANYTHING_BUT: &str = "anything-but";
const EQUALS_IGNORE_CASE: &str = "equals-ignore-case";
const EXISTS: &str = "exists";
const NUMERIC: &str = "numeric";
const PREFIX: &str = "prefix";
const SUFFIX: &str = "suffix";

/// Names that cannot be fields within `$or`. Source: `event-ruler`.
pub(super) const RESERVED: [&str; 9] =
    [ANYTHING_BUT, EQUALS_IGNORE_CASE, EXISTS, NUMERIC, PREFIX, SUFFIX, "exactly", "cidr", "wildcard"];

/// The largest number, either way, that numeric operators take. Source: `EventBridge`'s page on event patterns.
const NUMERIC_MAX: f64 = 5.0e9;

/// A value that is neither an object nor a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    /// As it is written.
    Number(String),
    /// `true`, `false` or `null`.
    Word(String),
}

impl Scalar {
    /// A value, unless it is an object or a list.
    pub(super) fn of(value: &RawValue) -> Option<Self> {
        let text = value.get();
        match text.chars().next()? {
            '{' | '[' => None,
            '"' => serde_json::from_str(text).ok().map(Self::Text),
            't' | 'f' | 'n' => Some(Self::Word(text.to_owned())),
            _ => Some(Self::Number(text.to_owned())),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Word(_) => None,
        }
    }

    /// The same, numbers by value.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => number::same(one, other),
            _ => self == other,
        }
    }
}

/// Text to compare with, as it is written or upper and lower case alike.
#[derive(Debug, Clone)]
pub(super) struct ComparedText {
    text: String,
    ignores_case: bool,
}

impl ComparedText {
    fn compares(&self, text: &str, compare: impl Fn(&str, &str) -> bool) -> bool {
        if self.ignores_case { compare(&text.to_lowercase(), &self.text) } else { compare(text, &self.text) }
    }
}

/// What a value may be.
#[derive(Debug, Clone)]
pub(super) enum Operator {
    Is(Scalar),
    Equals(ComparedText),
    Prefix(ComparedText),
    Suffix(ComparedText),
    AnythingBut(Vec<Scalar>),
    Numeric((Bound<f64>, Bound<f64>)),
    Exists(bool),
}

impl Operator {
    /// Reads an element of a list, or says what is wrong with it.
    pub(super) fn of(value: &RawValue) -> Result<Self, String> {
        if let Some(scalar) = Scalar::of(value) {
            return Ok(Self::Is(scalar));
        }
        let operators: BTreeMap<String, &RawValue> = parsed(value, "a value or an operator")?;
        let mut operators = operators.into_iter();
        let (Some((name, value)), None) = (operators.next(), operators.next()) else {
            return Err(format!("{} must have one operator", shortened(value)));
        };
        match name.as_str() {
            EQUALS_IGNORE_CASE => ignoring_case(value).map(Self::Equals),
            PREFIX => wanted(value).map(Self::Prefix),
            SUFFIX => wanted(value).map(Self::Suffix),
            ANYTHING_BUT => anything_but(value).map(Self::AnythingBut),
            NUMERIC => range(value).map(Self::Numeric),
            EXISTS => parsed(value, "true or false").map(Self::Exists),
            _ => Err(format!("{name} is no operator of Lambda's filters")),
        }
    }

    /// Whether it wants that there is no value.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Exists(false))
    }

    /// Whether a value that is there is one of what it may be.
    pub(super) fn matches(&self, value: &Scalar) -> bool {
        let compares = |wanted: &ComparedText, compare: fn(&str, &str) -> bool| {
            value.text().is_some_and(|text| wanted.compares(text, compare))
        };
        match self {
            Self::Is(scalar) => scalar == value,
            Self::Equals(wanted) => compares(wanted, |text, wanted| text == wanted),
            Self::Prefix(wanted) => compares(wanted, |text, wanted| text.starts_with(wanted)),
            Self::Suffix(wanted) => compares(wanted, |text, wanted| text.ends_with(wanted)),
            Self::AnythingBut(unwanted) => !unwanted.iter().any(|unwanted| unwanted.is(value)),
            Self::Numeric(range) => match value {
                Scalar::Number(text) => text.parse().is_ok_and(|number: f64| range.contains(&number)),
                Scalar::Text(_) | Scalar::Word(_) => false,
            },
            Self::Exists(exists) => *exists,
        }
    }
}

fn parsed<'a, T: serde::Deserialize<'a>>(value: &'a RawValue, wanted: &str) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|_| format!("{} is not {wanted}", shortened(value)))
}

fn ignoring_case(value: &RawValue) -> Result<ComparedText, String> {
    let text: String = parsed(value, "text")?;
    Ok(ComparedText { text: text.to_lowercase(), ignores_case: true })
}

/// The text of a prefix or suffix.
fn wanted(value: &RawValue) -> Result<ComparedText, String> {
    if !value.get().starts_with('{') {
        return Ok(ComparedText { text: parsed(value, "text")?, ignores_case: false });
    }
    let mut inner: BTreeMap<String, &RawValue> = parsed(value, "an object")?;
    match (inner.remove(EQUALS_IGNORE_CASE), inner.is_empty()) {
        (Some(value), true) => ignoring_case(value),
        _ => Err(format!("{} must be text or have {EQUALS_IGNORE_CASE} alone", shortened(value))),
    }
}

/// Texts or numbers, one or a list, and never both kinds.
fn anything_but(value: &RawValue) -> Result<Vec<Scalar>, String> {
    let refused = || format!("{ANYTHING_BUT} wants texts or numbers, not {}", shortened(value));
    let scalars: Option<Vec<Scalar>> = if value.get().starts_with('[') {
        let elements: Vec<&RawValue> = parsed(value, "a list")?;
        elements.into_iter().map(Scalar::of).collect()
    } else {
        Scalar::of(value).map(|scalar| vec![scalar])
    };
    let scalars = scalars.filter(|scalars| !scalars.is_empty()).ok_or_else(refused)?;
    let are_texts = scalars.iter().all(|scalar| matches!(scalar, Scalar::Text(_)));
    let are_numbers = scalars.iter().all(|scalar| matches!(scalar, Scalar::Number(_)));
    if are_texts || are_numbers { Ok(scalars) } else { Err(refused()) }
}

/// One comparison, or a lower bound and an upper one behind it.
fn range(value: &RawValue) -> Result<(Bound<f64>, Bound<f64>), String> {
    use Bound::{Excluded, Included, Unbounded};
    let terms: Vec<&RawValue> = parsed(value, "a list of comparisons")?;
    let comparisons: Vec<(String, f64)> = terms
        .chunks(2)
        .map(|pair| match pair {
            [operator, number] => Ok((parsed(operator, "a comparison")?, bound(number)?)),
            _ => Err(format!("{} lacks a number", shortened(value))),
        })
        .collect::<Result<_, _>>()?;
    let upper = |operator: &str, number| match operator {
        "<" => Some(Excluded(number)),
        "<=" => Some(Included(number)),
        _ => None,
    };
    let lower = |operator: &str, number| match operator {
        ">" => Some(Excluded(number)),
        ">=" => Some(Included(number)),
        _ => None,
    };
    let range = match comparisons.as_slice() {
        [(operator, number)] if operator == "=" => Some((Included(*number), Included(*number))),
        [(operator, number)] => {
            let above = lower(operator, *number).map(|lower| (lower, Unbounded));
            above.or_else(|| upper(operator, *number).map(|upper| (Unbounded, upper)))
        }
        [(from, least), (to, most)] if least < most => lower(from, *least).zip(upper(to, *most)),
        _ => None,
    };
    range.ok_or_else(|| {
        format!("{} is neither one of = < <= > >= with a number, nor a range from low to high", shortened(value))
    })
}

fn bound(value: &RawValue) -> Result<f64, String> {
    let number: f64 = parsed(value, "a number")?;
    if number.abs() > NUMERIC_MAX {
        return Err(format!("{} is not between -{NUMERIC_MAX} and {NUMERIC_MAX}", shortened(value)));
    }
    Ok(number)
}
