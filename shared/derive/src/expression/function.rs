//! The functions and operators of expressions: what each takes, and what it gives.

use std::borrow::Cow;

use keys::number::Decimal;
use serde_dynamo::AttributeValue;

use crate::expression::time::{self, TimeSpan};

/// A function or an operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
    /// `a || b`: one text behind the other.
    Join,
    /// `size(a)`
    Size,
    /// `if_not_exists(a, b)`
    IfNotExists,
    /// `number(a)`
    Number,
    /// `text(a)`
    Text,
    /// `lower(a)`
    Lower,
    /// `upper(a)`
    Upper,
    /// `trim(a)`
    Trim,
    /// `before(a, '::')`
    Before,
    /// `after(a, '::')`
    After,
    /// `seconds(a)`
    Seconds,
    /// `millis(a)`
    Millis,
    /// `hour(a)`, `day(a)`, `week(a)`, `month(a)`
    Span(TimeSpan),
}

/// The second parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    /// It has none.
    None,
    /// A value like the first.
    Value,
    /// A text that is not empty, written out.
    Separator,
    /// An offset from UTC such as `'+02:00'`, written out; it may be left out.
    Offset,
}

/// What a function takes and gives.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The function.
    pub function: Function,
    /// Its name, or its sign between two values.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// The types of values that it takes; any, if there are none.
    pub takes: &'static [&'static str],
    pub(super) second: Second,
    /// The type of value that it gives; `None` if that depends on the values.
    pub gives: Option<&'static str>,
    /// What it gives, for the reference.
    pub meaning: &'static str,
}

const fn of(
    function: Function,
    (name, form): (&'static str, &'static str),
    takes: &'static [&'static str],
    second: Second,
    gives: Option<&'static str>,
    meaning: &'static str,
) -> Signature {
    Signature { function, name, form, takes, second, gives, meaning }
}

/// All functions and operators; a longer sign stands before a shorter one.
pub const SIGNATURES: [Signature; 20] = [
    of(
        Function::Join,
        ("||", "a || b"),
        &["S"],
        Second::Value,
        Some("S"),
        "the two texts, one directly behind the other",
    ),
    of(Function::Add, ("+", "a + b"), &["N"], Second::Value, Some("N"), "the exact sum"),
    of(Function::Subtract, ("-", "a - b"), &["N"], Second::Value, Some("N"), "the exact difference"),
    of(Function::Multiply, ("*", "a * b"), &["N"], Second::Value, Some("N"), "the exact product"),
    of(
        Function::Divide,
        ("/", "a / b"),
        &["N"],
        Second::Value,
        Some("N"),
        "the quotient, rounded to 6 digits behind the point, a half to the even digit; missing where `b` is 0",
    ),
    of(
        Function::Size,
        ("size", "size(a)"),
        &[],
        Second::None,
        Some("N"),
        "as DynamoDB says: the UTF-16 code units of a text, the bytes of a binary value, the elements of a set, a list \
         or a map; missing for a value of another type",
    ),
    of(
        Function::IfNotExists,
        ("if_not_exists", "if_not_exists(a, b)"),
        &[],
        Second::Value,
        None,
        "`a`, or `b` where `a` is missing",
    ),
    of(
        Function::Number,
        ("number", "number(a)"),
        &["S", "N"],
        Second::None,
        Some("N"),
        "the number that a text contains; a number as it is",
    ),
    of(
        Function::Text,
        ("text", "text(a)"),
        &["N", "S"],
        Second::None,
        Some("S"),
        "a number as text, without an exponent or needless zeros; a text as it is",
    ),
    of(Function::Lower, ("lower", "lower(a)"), &["S"], Second::None, Some("S"), "the text in lower case"),
    of(Function::Upper, ("upper", "upper(a)"), &["S"], Second::None, Some("S"), "the text in upper case"),
    of(
        Function::Trim,
        ("trim", "trim(a)"),
        &["S"],
        Second::None,
        Some("S"),
        "the text without white space at its ends",
    ),
    of(
        Function::Before,
        ("before", "before(a, '::')"),
        &["S"],
        Second::Separator,
        Some("S"),
        "the text before the first `::`, or the whole text if it has no `::`",
    ),
    of(
        Function::After,
        ("after", "after(a, '::')"),
        &["S"],
        Second::Separator,
        Some("S"),
        "what is behind the first `::`; missing if the text has none",
    ),
    of(
        Function::Seconds,
        ("seconds", "seconds(a)"),
        &["N"],
        Second::None,
        Some("S"),
        "the time of a number of seconds since 1970, such as `2024-01-15T10:30:00Z`",
    ),
    of(
        Function::Millis,
        ("millis", "millis(a)"),
        &["N"],
        Second::None,
        Some("S"),
        "the time of a number of milliseconds since 1970, such as `2024-01-15T10:30:00.000Z`",
    ),
    of(
        Function::Span(TimeSpan::Hour),
        ("hour", "hour(a)"),
        &["S"],
        Second::Offset,
        Some("S"),
        "the hour of a time in ISO 8601, such as `2024-01-15T10`: in UTC, or at the offset in `hour(a, '+02:00')`",
    ),
    of(
        Function::Span(TimeSpan::Day),
        ("day", "day(a)"),
        &["S"],
        Second::Offset,
        Some("S"),
        "the day of a time, such as `2024-01-15`; an offset as for `hour`",
    ),
    of(
        Function::Span(TimeSpan::Week),
        ("week", "week(a)"),
        &["S"],
        Second::Offset,
        Some("S"),
        "the ISO week of a time, such as `2024-W03`; an offset as for `hour`",
    ),
    of(
        Function::Span(TimeSpan::Month),
        ("month", "month(a)"),
        &["S"],
        Second::Offset,
        Some("S"),
        "the month of a time, such as `2024-01`; an offset as for `hour`",
    ),
];

/// Why a function gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The value at this position has a type that it does not take.
    Type(usize),
    /// The value has the problem.
    Value(&'static str),
}

impl Function {
    pub(super) fn signature(self) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|signature| signature.function == self)
    }

    /// What makes a value that it takes from one of this type, for a message.
    pub(super) fn hint(self, of: &str) -> &'static str {
        match (self, of, self.signature().map(|signature| signature.takes)) {
            (Self::Span(_), "N", _) => ": write millis(…) or seconds(…) for an epoch number",
            (_, "S", Some(["N"])) => ": write number(…) for a number that is stored as text",
            (_, "N", Some(["S"])) => ": write text(…) for the text of a number",
            _ => "",
        }
    }

    /// The result for these arguments, all of which are present; `None` if there is no result.
    pub(super) fn apply(self, values: &[Cow<'_, AttributeValue>]) -> Result<Option<AttributeValue>, Refused> {
        let text = |at: usize| match values.get(at).map(AsRef::as_ref) {
            Some(AttributeValue::S(text)) => Ok(text.as_str()),
            _ => Err(Refused::Type(at)),
        };
        let number = |at: usize| match values.get(at).map(AsRef::as_ref) {
            Some(AttributeValue::N(number)) => Decimal::parse(number).ok_or(Refused::Value(NO_NUMBER)),
            _ => Err(Refused::Type(at)),
        };
        let calculated = |by: fn(&Decimal, &Decimal) -> Option<Decimal>| {
            by(&number(0)?, &number(1)?).ok_or(Refused::Value(TOO_LONG)).map(|number| n(&number))
        };
        let value = match self {
            Self::Add => calculated(Decimal::plus)?,
            Self::Subtract => calculated(Decimal::minus)?,
            Self::Multiply => calculated(Decimal::times)?,
            Self::Divide if number(1)?.is_zero() => return number(0).map(|_| None),
            Self::Divide => calculated(Decimal::divided_by)?,
            Self::Join => s([text(0)?, text(1)?].concat()),
            Self::Size => {
                return Ok(values
                    .first()
                    .and_then(|value| size(value))
                    .map(|size| AttributeValue::N(size.to_string())));
            }
            Self::Number => n(&match text(0) {
                Ok(text) => Decimal::parse(text).ok_or(Refused::Value(NO_NUMBER))?,
                Err(_) => number(0)?,
            }),
            Self::Text => s(match number(0) {
                Err(Refused::Type(_)) => text(0)?.to_owned(),
                number => number?.to_string(),
            }),
            Self::Lower => s(text(0)?.to_lowercase()),
            Self::Upper => s(text(0)?.to_uppercase()),
            Self::Trim => s(text(0)?.trim().to_owned()),
            Self::Before => s(text(0)?.split_once(text(1)?).map_or(text(0)?, |(before, _)| before).to_owned()),
            Self::After => match text(0)?.split_once(text(1)?) {
                Some((_, after)) => s(after.to_owned()),
                None => return Ok(None),
            },
            Self::Seconds => s(time::of_epoch(&number(0)?, 1).ok_or(Refused::Value(NO_SECONDS))?),
            Self::Millis => s(time::of_epoch(&number(0)?, 1000).ok_or(Refused::Value(NO_MILLIS))?),
            Self::Span(span) => {
                let offset = if values.len() > 1 { text(1)? } else { "" };
                s(time::span(text(0)?, span, offset).ok_or(Refused::Value(no_time(span)))?)
            }
            // It takes a missing value too, so the expression evaluates it.
            Self::IfNotExists => return Ok(None),
        };
        Ok(Some(value))
    }
}

const fn no_time(span: TimeSpan) -> &'static str {
    match span {
        TimeSpan::Hour => "is not an ISO 8601 time with an hour, which hour(…) needs",
        TimeSpan::Day => "is not an ISO 8601 time with a day, which day(…) needs",
        TimeSpan::Week => "is not an ISO 8601 time with a day, which week(…) needs",
        TimeSpan::Month => "is not an ISO 8601 time with a month, which month(…) needs",
    }
}

const NO_NUMBER: &str = "is no number that DynamoDB holds";
const TOO_LONG: &str =
    "leads to a number that DynamoDB does not hold: it has more than 38 digits, or is too large or too small";
const NO_SECONDS: &str = "is no number of seconds since 1970 of a year from 0 to 9999";
const NO_MILLIS: &str = "is no number of milliseconds since 1970 of a year from 0 to 9999";

fn s(text: String) -> AttributeValue {
    AttributeValue::S(text)
}

fn n(number: &Decimal) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn size(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::S(text) => Some(text.encode_utf16().count()),
        AttributeValue::B(bytes) => Some(bytes.len()),
        AttributeValue::Ss(elements) | AttributeValue::Ns(elements) => Some(elements.len()),
        AttributeValue::Bs(elements) => Some(elements.len()),
        AttributeValue::L(elements) => Some(elements.len()),
        AttributeValue::M(map) => Some(map.len()),
        AttributeValue::N(_) | AttributeValue::Bool(_) | AttributeValue::Null(_) => None,
    }
}
