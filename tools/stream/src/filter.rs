//! Selects the records that a mapping delivers: `FilterCriteria`.
//!
//! A record is delivered if at least one filter matches it, or if there are no filters. Other records are passed over:
//! the function does not get them, and the checkpoint moves past them.
//!
//! A pattern has the structure of the record. Its leaves are lists of accepted values:
//!
//! | in a list | matches |
//! |---|---|
//! | `"text"`, `""`, `true`, `null` | the same value |
//! | `300` | a number that is written the same: not `300.0` |
//! | `{"equals-ignore-case": "text"}` | text, in upper or lower case |
//! | `{"prefix": "text"}`, `{"suffix": "text"}` | text with this prefix or suffix; also `{"prefix": {"equals-ignore-case": "text"}}` |
//! | `{"anything-but": "text"}`, or a number, or a list of either | an existing value that is none of these |
//! | `{"numeric": [">", 0, "<=", 5]}`, or one of `=`, `<`, `<=`, `>`, `>=` | a JSON number, by value |
//! | `{"exists": true}`, `{"exists": false}` | an existing value, a missing value |
//!
//! At least one element of a list must match, and all fields of an object. `"$or": [{…}, {…}]` requires that one of its
//! objects matches.
//!
//! Special cases, each with its test below:
//!
//! - A number attribute is text in a record (`{"N": "5"}`), so `"5"` matches it and no numeric operator does.
//! - `exists` tests leaves only: a field that is an object counts as missing.
//! - If a key occurs twice, the last one counts.
//! - A list in the record matches if one of its elements does. In a list of objects, one object must match as a whole.
//!
//! Operators that only `EventBridge` documents are refused (`wildcard`, `cidr`, and `anything-but` with a prefix, a
//! suffix or ignored case). Lambda's page does not list them, and Lambda must accept each pattern that is accepted
//! here.
//!
//! Source: U7, U7b, LS; AWS's `event-ruler` for invalid patterns.
//!
//! # Pattern
//!
//! A pattern: what an object must contain. Pure.
//!
//! Records are matched as raw JSON text, one level at a time, because numbers compare as they are written.

use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds as _},
};

use keys::number;
use serde_json::value::RawValue;
use thiserror::Error;

/// The most characters of a pattern. Source: `CreateEventSourceMapping`, `Filter.Pattern`.
pub const PATTERN_CHARS_MAX: usize = 4_096;

/// The most filters of a mapping, with a raised quota. Source: Lambda's quotas.
pub const FILTERS_MAX: usize = 10;

/// The most filters of a mapping, without a raised quota. Source: Lambda's quotas.
pub const FILTERS_DEFAULT_MAX: usize = 5;

/// The filters of a mapping. Without filters, every record is delivered.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// The patterns as written.
    texts: Vec<String>,
    patterns: Vec<Pattern>,
}

impl PartialEq for Filters {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Filters {}

/// Filters that Lambda would refuse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// An invalid pattern. The first sentence of the message is Lambda's.
    #[error("Invalid filter pattern definition. Pattern {number}: {why}")]
    Pattern {
        /// The filter's position, from 1.
        number: usize,
        /// What is wrong with the pattern.
        why: String,
    },
    /// A pattern that is too long.
    #[error("filter pattern {number} has {n_chars} characters: it may have {PATTERN_CHARS_MAX}")]
    Length {
        /// The filter's position, from 1.
        number: usize,
        /// The pattern's length in characters.
        n_chars: usize,
    },
    /// Too many filters.
    #[error(
        "there are {n_filters} filters: a mapping may have {FILTERS_DEFAULT_MAX}, or {FILTERS_MAX} with a raised quota"
    )]
    Count {
        /// The number of filters.
        n_filters: usize,
    },
}

impl Filters {
    /// Compiles these patterns.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if Lambda would refuse the filters.
    pub fn new<T: Into<String>>(patterns: impl IntoIterator<Item = T>) -> Result<Self, FilterError> {
        let texts: Vec<String> = patterns.into_iter().map(Into::into).collect();
        if texts.len() > FILTERS_MAX {
            return Err(FilterError::Count { n_filters: texts.len() });
        }
        let compiled = |(at, text): (usize, &String)| {
            let (number, n_chars) = (at + 1, text.chars().count());
            if n_chars > PATTERN_CHARS_MAX {
                return Err(FilterError::Length { number, n_chars });
            }
            Pattern::compile(text).map_err(|why| FilterError::Pattern { number, why })
        };
        let patterns = texts.iter().enumerate().map(compiled).collect::<Result<_, _>>()?;
        Ok(Self { texts, patterns })
    }

    /// The number of filters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether there are no filters, so that every record is delivered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a record is delivered. `record` is its JSON text in the Lambda event. Text that is not JSON matches no
    /// filter.
    #[must_use]
    pub fn matches(&self, record: &str) -> bool {
        if self.is_empty() {
            return true;
        }
        let Ok(record) = serde_json::from_str::<&RawValue>(record) else { return false };
        self.patterns.iter().any(|pattern| pattern.matches(Some(record)))
    }
}

// ---- Operators on a value of a record. Pure ----

const ANYTHING_BUT: &str = "anything-but";
const EQUALS_IGNORE_CASE: &str = "equals-ignore-case";
const EXISTS: &str = "exists";
const NUMERIC: &str = "numeric";
const PREFIX: &str = "prefix";
const SUFFIX: &str = "suffix";

/// Names that cannot be fields within `$or`. Source: `event-ruler`.
const RESERVED: [&str; 9] =
    [ANYTHING_BUT, EQUALS_IGNORE_CASE, EXISTS, NUMERIC, PREFIX, SUFFIX, "exactly", "cidr", "wildcard"];

/// The largest absolute value of a number in numeric operators. Source: `EventBridge`'s page on event patterns.
const NUMERIC_MAX: f64 = 5.0e9;

/// A value that is neither an object nor a list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scalar {
    Text(String),
    /// As written.
    Number(String),
    /// `true`, `false` or `null`.
    Word(String),
}

impl Scalar {
    /// The value; `None` for an object or a list.
    fn of(value: &RawValue) -> Option<Self> {
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

    /// Equality, with numbers by value.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => number::same(one, other),
            _ => self == other,
        }
    }
}

/// Text to compare with, with or without regard to case.
#[derive(Debug, Clone)]
struct ComparedText {
    text: String,
    ignores_case: bool,
}

impl ComparedText {
    fn compares(&self, text: &str, compare: impl Fn(&str, &str) -> bool) -> bool {
        if self.ignores_case { compare(&text.to_lowercase(), &self.text) } else { compare(text, &self.text) }
    }
}

/// A condition on a value.
#[derive(Debug, Clone)]
enum Operator {
    Is(Scalar),
    Equals(ComparedText),
    Prefix(ComparedText),
    Suffix(ComparedText),
    AnythingBut(Vec<Scalar>),
    Numeric((Bound<f64>, Bound<f64>)),
    Exists(bool),
}

impl Operator {
    /// Parses an element of a list. The error says what is wrong with it.
    fn of(value: &RawValue) -> Result<Self, String> {
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

    /// Whether the operator requires that the value is missing.
    fn is_absence(&self) -> bool {
        matches!(self, Self::Exists(false))
    }

    /// Whether an existing value satisfies the operator.
    fn matches(&self, value: &Scalar) -> bool {
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

/// Parses the text of a prefix or suffix.
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

/// Parses texts or numbers: one or a list, but never both types.
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

/// Parses one comparison, or a lower bound followed by an upper bound.
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

// ---- A pattern: what an object must contain. Pure ----

/// The key that requires one of several objects.
const OR: &str = "$or";

/// The fewest objects in [`OR`]. Source: `event-ruler`.
const OR_OBJECTS_MIN: usize = 2;

/// What an object must contain: all of these parts.
#[derive(Debug, Clone)]
struct Pattern(Vec<PatternPart>);

#[derive(Debug, Clone)]
enum PatternPart {
    Field { name: String, wanted: FieldPattern },
    AnyOf(Vec<Pattern>),
}

#[derive(Debug, Clone)]
enum FieldPattern {
    /// An object that matches this pattern.
    Object(Pattern),
    /// A value that one of these operators matches.
    OneOf(Vec<Operator>),
}

/// The fields of an object. If a key occurs twice, the last one counts.
type RawFields<'a> = BTreeMap<String, &'a RawValue>;

fn fields(value: &RawValue) -> Option<RawFields<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

impl Pattern {
    /// Parses a pattern. The error says what is wrong with it.
    fn compile(text: &str) -> Result<Self, String> {
        let pattern: &RawValue = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        Self::of(pattern, false)
    }

    fn of(object: &RawValue, is_in_or: bool) -> Result<Self, String> {
        let fields = fields(object).ok_or_else(|| format!("{} is no object", shortened(object)))?;
        if fields.is_empty() {
            return Err("an object must have a field".to_owned());
        }
        let condition = |(name, value): (String, &RawValue)| match name.as_str() {
            OR => any_of(value).map(PatternPart::AnyOf),
            name if is_in_or && RESERVED.contains(&name) => Err(format!("{name} cannot be a field within {OR}")),
            _ => Ok(PatternPart::Field { wanted: FieldPattern::of(&name, value, is_in_or)?, name }),
        };
        fields.into_iter().map(condition).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a value matches. A missing value counts as an object without fields. In a list, one element must match
    /// the whole pattern.
    fn matches(&self, value: Option<&RawValue>) -> bool {
        if let Some(elements) = value.and_then(elements).filter(|elements| !elements.is_empty()) {
            return elements.into_iter().any(|element| self.matches(Some(element)));
        }
        let fields = value.and_then(fields).unwrap_or_default();
        self.0.iter().all(|condition| condition.holds(&fields))
    }
}

fn any_of(objects: &RawValue) -> Result<Vec<Pattern>, String> {
    match elements(objects) {
        Some(objects) if objects.len() >= OR_OBJECTS_MIN => {
            objects.into_iter().map(|object| Pattern::of(object, true)).collect()
        }
        _ => Err(format!("{OR} wants a list of {OR_OBJECTS_MIN} objects or more")),
    }
}

impl PatternPart {
    fn holds(&self, fields: &RawFields<'_>) -> bool {
        match self {
            Self::Field { name, wanted } => wanted.matches(fields.get(name).copied()),
            // `$or` is not a level of the record: its objects match this same level.
            Self::AnyOf(patterns) => patterns.iter().any(|pattern| pattern.0.iter().all(|one| one.holds(fields))),
        }
    }
}

impl FieldPattern {
    fn of(name: &str, value: &RawValue, is_in_or: bool) -> Result<Self, String> {
        if value.get().starts_with('{') {
            return Pattern::of(value, is_in_or).map(Self::Object);
        }
        let wanted = elements(value).ok_or_else(|| format!("{name} wants an object or a list"))?;
        if wanted.is_empty() {
            return Err(format!("the list of {name} is empty"));
        }
        wanted.into_iter().map(Operator::of).collect::<Result<_, _>>().map(Self::OneOf)
    }

    fn matches(&self, value: Option<&RawValue>) -> bool {
        match self {
            Self::Object(pattern) => pattern.matches(value),
            Self::OneOf(operators) => {
                let scalars = value.map(scalars).unwrap_or_default();
                if scalars.is_empty() {
                    return operators.iter().any(Operator::is_absence);
                }
                operators.iter().any(|operator| scalars.iter().any(|scalar| operator.matches(scalar)))
            }
        }
    }
}

/// The leaves of a value: the value itself, or those of a list's elements. An object has none, because it is not a
/// leaf.
fn scalars(value: &RawValue) -> Vec<Scalar> {
    match elements(value) {
        Some(elements) => elements.into_iter().flat_map(scalars).collect(),
        None => Scalar::of(value).into_iter().collect(),
    }
}

/// The beginning of a value, enough to find it in the pattern.
fn shortened(value: &RawValue) -> String {
    const CHARS_MAX: usize = 40;
    let text = value.get();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
