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

/// Filters that Lambda would refuse. The text says why; for an invalid pattern, its first sentence is Lambda's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FilterError(String);

impl Filters {
    /// Compiles these patterns.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if Lambda would refuse the filters.
    pub fn new<T: Into<String>>(patterns: impl IntoIterator<Item = T>) -> Result<Self, FilterError> {
        let texts: Vec<String> = patterns.into_iter().map(Into::into).collect();
        if texts.len() > FILTERS_MAX {
            return Err(FilterError(format!(
                "there are {} filters: a mapping may have {FILTERS_DEFAULT_MAX}, or {FILTERS_MAX} with a raised quota",
                texts.len()
            )));
        }
        let compiled = |(at, text): (usize, &String)| {
            let (number, n_chars) = (at + 1, text.chars().count());
            if n_chars > PATTERN_CHARS_MAX {
                let why = format!("filter pattern {number} has {n_chars} characters: it may have {PATTERN_CHARS_MAX}");
                return Err(FilterError(why));
            }
            Pattern::compile(text)
                .map_err(|why| FilterError(format!("Invalid filter pattern definition. Pattern {number}: {why}")))
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
mod tests {
    use serde_json::{Value, json};

    use super::{FILTERS_MAX, Filters, PATTERN_CHARS_MAX};

    fn filters(patterns: &[Value]) -> Filters {
        Filters::new(patterns.iter().map(Value::to_string)).unwrap()
    }

    /// Whether one pattern matches a record.
    fn matches(pattern: &Value, record: &Value) -> bool {
        filters(std::slice::from_ref(pattern)).matches(&record.to_string())
    }

    /// The values of a field that match this list.
    fn matched<'a>(wanted: &Value, values: &'a [Value]) -> Vec<&'a Value> {
        values.iter().filter(|value| matches(&json!({ "a": wanted }), &json!({ "a": value }))).collect()
    }

    fn refused(pattern: &str) -> String {
        Filters::new([pattern]).unwrap_err().to_string()
    }

    /// A record with these attributes.
    fn record(image: &Value) -> Value {
        json!({ "eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": { "NewImage": image } })
    }

    /// A pattern for one attribute.
    fn attribute(name: &str, wanted: &Value) -> Value {
        json!({ "dynamodb": { "NewImage": { name: wanted } } })
    }

    /// Source: U7b, the list of operators (Null, Empty).
    #[test]
    fn null_and_empty_match_what_is_so_and_not_what_is_missing() {
        let values = [json!(null), json!(""), json!("null"), json!(0), json!({})];
        assert_eq!(matched(&json!([null]), &values), [&json!(null)]);
        assert_eq!(matched(&json!([""]), &values), [&json!("")]);
        assert!(!matches(&json!({ "a": [null] }), &json!({})));
        assert!(!matches(&json!({ "a": [""] }), &json!({})));
    }

    /// Source: U7b: "Equals", and strings match exactly, case included.
    #[test]
    fn text_matches_exactly() {
        let values = [json!("Alice"), json!("alice"), json!("Alice "), json!(["Alice"]), json!(true), json!("true")];
        assert_eq!(matched(&json!(["Alice"]), &values), [&json!("Alice"), &json!(["Alice"])]);
        assert_eq!(matched(&json!([true]), &values), [&json!(true)]);
        assert!(matches(&json!({ "a": ["\u{e9}\n"] }), &serde_json::from_str(r#"{"a":"\u00e9\u000a"}"#).unwrap()));
    }

    /// Source: U7b: "300, 300.0, and 3.0e2 are not considered equal".
    #[test]
    fn numbers_compare_as_they_are_written() {
        let pattern = Filters::new([r#"{"a":[300]}"#]).unwrap();
        assert!(pattern.matches(r#"{"a":300}"#));
        for written in ["300.0", "3.0e2", "\"300\""] {
            assert!(!pattern.matches(&format!(r#"{{"a":{written}}}"#)), "{written}");
        }
    }

    /// Source: U7b, "Equals (ignore case)".
    #[test]
    fn equals_ignore_case_matches_upper_and_lower_case() {
        let values = [json!("alice"), json!("ALICE"), json!("alic"), json!(null)];
        assert_eq!(matched(&json!([{ "equals-ignore-case": "aLice" }]), &values), [&json!("alice"), &json!("ALICE")]);
    }

    /// Source: U7b, "Not".
    #[test]
    fn anything_but_matches_what_is_there_and_is_none_of_these() {
        let values = [json!("a"), json!("b"), json!("c"), json!(1), json!(null), json!({})];
        assert_eq!(matched(&json!([{ "anything-but": "a" }]), &values).len(), 4, "an object is no leaf");
        assert_eq!(matched(&json!([{ "anything-but": ["a", "b"] }]), &values), [&json!("c"), &json!(1), &json!(null)]);
        assert!(!matches(&json!({ "a": [{ "anything-but": ["a"] }] }), &json!({})), "nothing is there");
        let numbers = [json!(1), json!(1.0), json!(2), json!("1")];
        assert_eq!(matched(&json!([{ "anything-but": 1 }]), &numbers), [&json!(2), &json!("1")]);
        assert_eq!(matched(&json!([{ "anything-but": [1, 2] }]), &numbers), [&json!("1")]);
    }

    /// Source: U7b, "Numeric (equals)" and "Numeric (range)".
    #[test]
    fn numeric_compares_by_value() {
        let values = [json!(-1), json!(0), json!(5.0), json!(10), json!("5"), json!(null)];
        let matched = |terms: Value| matched(&json!([{ "numeric": terms }]), &values).len();
        assert_eq!(matched(json!(["=", 5])), 1);
        assert_eq!(matched(json!(["<", 5])), 2);
        assert_eq!(matched(json!(["<=", 5])), 3);
        assert_eq!(matched(json!([">", 0])), 2);
        assert_eq!(matched(json!([">=", 0])), 3);
        assert_eq!(matched(json!([">", 0, "<=", 10])), 2);
        assert_eq!(matched(json!([">=", -1, "<", 10])), 3);
    }

    /// Source: U7; LS `numeric_filter`, where neither operator matches the second item, 101.
    #[test]
    fn numeric_never_matches_a_number_attribute() {
        let pattern = attribute("n", &json!({ "N": [{ "numeric": [">", 100] }, { "anything-but": "101" }] }));
        assert!(matches(&pattern, &record(&json!({ "n": { "N": "42" } }))));
        assert!(!matches(&pattern, &record(&json!({ "n": { "N": "101" } }))));
        assert!(matches(&attribute("n", &json!({ "N": ["101"] })), &record(&json!({ "n": { "N": "101" } }))));
    }

    /// Source: LS `date_time_conversion`: filters see the time as a number.
    #[test]
    fn numeric_matches_the_creation_time() {
        let pattern = json!({ "dynamodb": { "ApproximateCreationDateTime": [{ "numeric": [">", 0] }] } });
        assert!(matches(&pattern, &json!({ "dynamodb": { "ApproximateCreationDateTime": 1_480_642_020.0 } })));
    }

    /// Source: U7b, "Exists" and "Does not exist".
    #[test]
    fn exists_asks_whether_there_is_a_value() {
        let values = [json!("a"), json!(null), json!(""), json!(0), json!([]), json!(["a"])];
        assert_eq!(matched(&json!([{ "exists": true }]), &values).len(), 5, "an empty list has no value");
        assert_eq!(matched(&json!([{ "exists": false }]), &values), [&json!([])]);
        let not_there = json!({ "a": { "b": { "S": [{ "exists": false }] } } });
        assert!(matches(&not_there, &json!({})), "nor is there anything on the way");
        assert!(matches(&not_there, &json!({ "a": { "b": { "N": "1" } } })));
        assert!(!matches(&not_there, &json!({ "a": { "b": { "S": "1" } } })));
    }

    /// Source: LS `exists_false_filter`, which matched an item with the attribute; LS `exists_filter_type`.
    #[test]
    fn exists_looks_at_leaves_only() {
        let has_it = record(&json!({ "presentKey": { "S": "presentValue" } }));
        assert!(matches(&attribute("presentKey", &json!([{ "exists": false }])), &has_it));
        assert!(!matches(&attribute("presentKey", &json!([{ "exists": true }])), &has_it));
        assert!(matches(&attribute("presentKey", &json!({ "S": [{ "exists": true }] })), &has_it));
        let has_not = record(&json!({ "id": { "S": "x" } }));
        assert!(!matches(&attribute("presentKey", &json!({ "S": [{ "exists": true }] })), &has_not));
    }

    /// Source: LS `content_filter_type`: "Omitting the S does NOT match".
    #[test]
    fn an_attribute_is_matched_by_its_type() {
        let record = record(&json!({ "k": { "S": "v" } }));
        assert!(matches(&attribute("k", &json!({ "S": ["v"] })), &record));
        assert!(!matches(&attribute("k", &json!(["v"])), &record));
    }

    /// Source: U7b, "Begins with" and "Ends with"; LS `prefix_filter`. For ignored case: the table of operators in
    /// `EventBridge`'s guide, for pipes, which use the same pollers.
    #[test]
    fn prefix_and_suffix_match_text() {
        let values = [json!("us-1-other"), json!("other-us-1"), json!("US-1"), json!(1)];
        assert_eq!(matched(&json!([{ "prefix": "us-1" }]), &values), [&values[0]]);
        assert_eq!(matched(&json!([{ "suffix": "us-1" }]), &values), [&values[1]]);
        assert_eq!(
            matched(&json!([{ "prefix": { "equals-ignore-case": "Us-1" } }]), &values),
            [&values[0], &values[2]]
        );
        assert_eq!(
            matched(&json!([{ "suffix": { "equals-ignore-case": "Us-1" } }]), &values),
            [&values[1], &values[2]]
        );
    }

    /// Source: U7b, "Or (multiple fields)".
    #[test]
    fn or_wants_one_of_its_objects() {
        let pattern = json!({ "c": ["x"], "$or": [{ "a": ["1"] }, { "b": ["2"], "d": ["4"] }] });
        assert!(matches(&pattern, &json!({ "c": "x", "a": "1" })));
        assert!(matches(&pattern, &json!({ "c": "x", "b": "2", "d": "4" })));
        assert!(!matches(&pattern, &json!({ "c": "x", "b": "2" })));
        assert!(!matches(&pattern, &json!({ "a": "1" })));
        let nested = json!({ "dynamodb": { "$or": [{ "NewImage": { "a": { "S": ["1"] } } }, { "OldImage": { "a": { "S": ["1"] } } }] } });
        assert!(matches(&nested, &json!({ "dynamodb": { "OldImage": { "a": { "S": "1" } } } })));
    }

    /// Source: U7b, "Or" and "And"; LS `content_or_filter`, `content_multiple_filters`.
    #[test]
    fn values_of_a_list_are_or_and_fields_are_and() {
        let pattern = json!({ "eventName": ["INSERT", "MODIFY"], "eventSource": ["aws:dynamodb"] });
        assert!(matches(&pattern, &json!({ "eventName": "MODIFY", "eventSource": "aws:dynamodb" })));
        assert!(!matches(&pattern, &json!({ "eventName": "REMOVE", "eventSource": "aws:dynamodb" })));
        assert!(!matches(&pattern, &json!({ "eventName": "MODIFY", "eventSource": "aws:sqs" })));
        assert!(!matches(&pattern, &json!({ "eventName": "MODIFY" })));
    }

    /// Source: U7b: "If an event satisfies any one of these filters, Lambda sends the event to your function."
    #[test]
    fn several_filters_are_or_and_none_lets_all_through() {
        let two = filters(&[json!({ "eventName": ["INSERT"] }), json!({ "eventName": ["REMOVE"] })]);
        let through = |name: &str| two.matches(&json!({ "eventName": name }).to_string());
        assert!(through("INSERT") && through("REMOVE") && !through("MODIFY"));
        assert!(Filters::default().matches(r#"{"eventName":"MODIFY"}"#));
    }

    /// Source: LS (filters on `eventName` match); the TTL guide for `userIdentity`. U7 says "only the `dynamodb` key".
    #[test]
    fn metadata_at_the_top_of_a_record_is_matched() {
        let by_ttl = json!({ "userIdentity": { "type": ["Service"], "principalId": ["dynamodb.amazonaws.com"] } });
        let removed = |identity: Value| json!({ "eventName": "REMOVE", "userIdentity": identity });
        assert!(matches(&by_ttl, &removed(json!({ "type": "Service", "principalId": "dynamodb.amazonaws.com" }))));
        assert!(!matches(&by_ttl, &json!({ "eventName": "REMOVE" })));
        assert!(matches(&json!({ "eventName": ["REMOVE"] }), &removed(json!(null))));
    }

    /// Source: U7b: "the last one is used"; U7's own example of AND repeats `dynamodb`.
    #[test]
    fn of_a_key_that_is_written_twice_the_last_counts() {
        let pattern = Filters::new([r#"{"a":["1"],"a":["2"]}"#]).unwrap();
        assert!(pattern.matches(r#"{"a":"2"}"#));
        assert!(!pattern.matches(r#"{"a":"1"}"#));
        assert!(pattern.matches(r#"{"a":"1","a":"2"}"#));
    }

    /// Source: U7b, the table of what happens to incoming data.
    #[test]
    fn a_record_that_is_no_json_is_dropped() {
        let pattern = filters(&[json!({ "a": [{ "exists": false }] })]);
        assert!(pattern.matches("{}"));
        assert!(!pattern.matches("not json"));
    }

    /// Our decision, after `event-ruler`'s "JSON array matching": a set or list attribute is an array in a record.
    #[test]
    fn a_list_matches_by_one_element_and_objects_in_it_whole() {
        let tags = attribute("tags", &json!({ "SS": ["a"] }));
        assert!(matches(&tags, &record(&json!({ "tags": { "SS": ["b", "a"] } }))));
        assert!(!matches(&tags, &record(&json!({ "tags": { "SS": ["b"] } }))));
        let lines = attribute("lines", &json!({ "L": { "M": { "x": { "S": ["1"] }, "y": { "S": ["2"] } } } }));
        let line = |x: &str, y: &str| json!({ "M": { "x": { "S": x }, "y": { "S": y } } });
        assert!(matches(&lines, &record(&json!({ "lines": { "L": [line("0", "0"), line("1", "2")] } }))));
        assert!(!matches(&lines, &record(&json!({ "lines": { "L": [line("1", "0"), line("0", "2")] } }))));
    }

    /// Source: LS for the first two; `event-ruler` for the others. The first sentence of the message is AWS's.
    #[test]
    fn an_invalid_pattern_is_refused_with_the_words_of_aws() {
        for pattern in [
            "single-string",
            r#"[{"eventName": ["INSERT"=123}]"#,
            "",
            "{}",
            "[]",
            "\"text\"",
            r#"{"a":"b"}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a":[["b"]]}"#,
            r#"{"a":[{}]}"#,
            r#"{"a":[{"prefix":1}]}"#,
            r#"{"a":[{"prefix":"a","suffix":"b"}]}"#,
            r#"{"a":[{"exists":"true"}]}"#,
            r#"{"a":[{"anything-but":[]}]}"#,
            r#"{"a":[{"anything-but":["a",1]}]}"#,
            r#"{"a":[{"anything-but":null}]}"#,
            r#"{"a":[{"numeric":[">"]}]}"#,
            r#"{"a":[{"numeric":["!=",1]}]}"#,
            r#"{"a":[{"numeric":["<",1,">",2]}]}"#,
            r#"{"a":[{"numeric":[">",2,"<",1]}]}"#,
            r#"{"a":[{"numeric":["=","1"]}]}"#,
            r#"{"a":[{"numeric":[">",6000000000]}]}"#,
            r#"{"$or":[{"a":["b"]}]}"#,
            r#"{"$or":{"a":["b"]}}"#,
            r#"{"$or":[{"prefix":["b"]},{"a":["b"]}]}"#,
        ] {
            assert!(refused(pattern).starts_with("Invalid filter pattern definition. Pattern 1: "), "{pattern}");
        }
    }

    /// Source: the table of operators in `EventBridge`'s guide. Pipes do not have these operators, and Lambda's page lists
    /// none of them.
    #[test]
    fn what_only_event_buses_have_is_refused() {
        for operator in [
            r#"{"wildcard":"a*"}"#,
            r#"{"cidr":"10.0.0.0/24"}"#,
            r#"{"anything-but":{"prefix":"a"}}"#,
            r#"{"anything-but":{"suffix":"a"}}"#,
            r#"{"anything-but":{"equals-ignore-case":"a"}}"#,
        ] {
            assert!(refused(&format!(r#"{{"a":[{operator}]}}"#)).starts_with("Invalid filter pattern"), "{operator}");
        }
        let text = "Invalid filter pattern definition. Pattern 1: wildcard is no operator of Lambda's filters";
        assert_eq!(refused(r#"{"a":[{"wildcard":"a*"}]}"#), text);
    }

    /// Source: BC, `Filter.Pattern` and Lambda's quotas: 5 filters, 10 on request.
    #[test]
    fn a_pattern_has_4096_characters_and_a_mapping_ten_filters_at_most() {
        let pattern = |n_chars: usize| format!(r#"{{"a":["{}"]}}"#, "é".repeat(n_chars - 10));
        assert!(Filters::new([pattern(PATTERN_CHARS_MAX)]).is_ok());
        let text = "filter pattern 1 has 4097 characters: it may have 4096";
        assert_eq!(Filters::new([pattern(PATTERN_CHARS_MAX + 1)]).unwrap_err().to_string(), text);
        let many = |n: usize| Filters::new(std::iter::repeat_n(r#"{"a":["b"]}"#, n));
        assert_eq!(many(FILTERS_MAX).unwrap().len(), 10);
        let text = "there are 11 filters: a mapping may have 5, or 10 with a raised quota";
        assert_eq!(many(FILTERS_MAX + 1).unwrap_err().to_string(), text);
    }
}
