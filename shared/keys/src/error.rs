//! Why a key cannot be built.

use std::fmt;

/// A key that cannot be built, because the caller's value is wrong. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct KeyError {
    /// The entity, if it is known.
    pub entity: Option<String>,
    /// The attribute whose value is at fault.
    pub attribute: String,
    /// The problem with it.
    pub problem: Problem,
}

impl KeyError {
    pub(crate) fn new(attribute: &str, problem: Problem) -> Self {
        Self { entity: None, attribute: attribute.to_owned(), problem }
    }

    /// The same error, naming the entity.
    #[must_use]
    pub fn of(mut self, entity: &str) -> Self {
        self.entity = Some(entity.to_owned());
        self
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entity) = &self.entity {
            write!(f, "{entity}.")?;
        }
        write!(f, "{} {}", self.attribute, self.problem)
    }
}

/// A problem with a value for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no value.
    #[error("is missing; the key needs it")]
    Missing,
    /// The value is the empty text, which no key may contain.
    #[error("is empty; a key value must not be")]
    Empty,
    /// The finished key is longer than DynamoDB allows.
    #[error("makes a key of {bytes} bytes; the limit is {bytes_max}")]
    TooLong {
        /// Length of the resulting key.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The value should be a whole number that is not negative.
    #[error("is not a whole number from 0 up")]
    NotANumber,
    /// The value should be a decimal number that is not negative.
    #[error("is not a number from 0 up, of at most 38 digits")]
    NotADecimal,
    /// The number has more digits than the key has room for.
    #[error("does not fit in {digits} digits")]
    DoesNotFit {
        /// Width of the field.
        digits: usize,
    },
    /// The number has more digits than the key has room for, before or after the decimal point.
    #[error("does not fit in {digits} digits, {places} of them behind the point")]
    DoesNotFitDecimal {
        /// Width of the field.
        digits: usize,
        /// Number of decimal places among them.
        places: u32,
    },
    /// The value should be a number that a key can contain.
    #[error("is not a number with at most 99 digits before the point")]
    NotSortable,
    /// The value should be bytes in hexadecimal digits.
    #[error("is not bytes in hexadecimal digits")]
    NotBytes,
    /// The value contains the separator of key parts, in a table whose keys escape nothing.
    #[error("holds `#`, which a key of this table cannot hold in a value")]
    HoldsSeparator,
    /// With the value, the key could be read in two ways.
    #[error(
        "makes a key that can be read in two ways, as `{text}` separates its values: use `#` there, or mark one field whose values hold it with `*`, as in {{name*}}"
    )]
    InDoubt {
        /// The text that separates values.
        text: String,
    },
    /// The value should be a path such as `/a/b`.
    #[error("is not a path: it starts with `/`, and no segment is empty or holds `#`")]
    NotAPath,
}

/// A template that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key template `{template}`: {problem}")]
pub struct TemplateError {
    /// The whole template.
    pub template: String,
    /// The problem.
    pub problem: &'static str,
}
