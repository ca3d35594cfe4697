//! Which records a mapping delivers: `FilterCriteria`.
//!
//! A record is delivered if one of the filters matches it, or where there is none. What no filter matches is passed over:
//! no function sees it, and the checkpoint moves behind it.
//!
//! A pattern has the form of the record. Its leaves are lists of what a value may be:
//!
//! | in a list | matches |
//! |---|---|
//! | `"text"`, `""`, `true`, `null` | the same value |
//! | `300` | the same number as it is written: not `300.0` |
//! | `{"equals-ignore-case": "text"}` | text, upper or lower case |
//! | `{"prefix": "text"}`, `{"suffix": "text"}` | text that begins or ends so; also `{"prefix": {"equals-ignore-case": "text"}}` |
//! | `{"anything-but": "text"}`, or a number, or a list of either | a value that is there and none of these |
//! | `{"numeric": [">", 0, "<=", 5]}`, or one of `=`, `<`, `<=`, `>`, `>=` | a JSON number, by value |
//! | `{"exists": true}`, `{"exists": false}` | a value that is there, or is not |
//!
//! One of a list is enough; all fields of an object must match; `"$or": [{…}, {…}]` wants one of its objects.
//!
//! Corners, each with its test below:
//!
//! - An attribute's number is text in a record (`{"N": "5"}`), so no numeric operator matches it, and `"5"` does.
//! - `exists` looks at leaves only: a field that is an object is not there.
//! - Of a key that is written twice the last counts.
//! - A list in the record matches if one of its elements does; through a list of objects, one of them must match whole.
//!
//! What `EventBridge` alone has (`wildcard`, `cidr`, `anything-but` of a prefix, a suffix or ignoring case) is refused:
//! Lambda's page does not list it, and what is accepted here must be accepted there.
//!
//! Source: reference B6; Lambda's pages on event filtering; AWS's `event-ruler` for what makes a pattern invalid.

use serde_json::value::RawValue;
use thiserror::Error;

mod operator;
mod pattern;

use pattern::Pattern;

/// The most characters of a pattern. Source: `CreateEventSourceMapping`, `Filter.Pattern`.
pub const PATTERN_CHARS_MAX: usize = 4_096;

/// The most filters of a mapping in an account whose quota was raised. Source: Lambda's quotas.
pub const FILTERS_MAX: usize = 10;

/// The most filters of a mapping in an account as it comes. Source: Lambda's quotas.
pub const FILTERS_DEFAULT_MAX: usize = 5;

/// The filters of a mapping; without any, every record is delivered.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// As they were written.
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
    /// A pattern that has no meaning. The first sentence is Lambda's.
    #[error("Invalid filter pattern definition. Pattern {number}: {why}")]
    Pattern {
        /// Which of the filters, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A pattern that is too long.
    #[error("filter pattern {number} has {n_chars} characters: it may have {PATTERN_CHARS_MAX}")]
    Length {
        /// Which of the filters, from 1.
        number: usize,
        /// Its characters.
        n_chars: usize,
    },
    /// Too many filters.
    #[error(
        "there are {n_filters} filters: a mapping may have {FILTERS_DEFAULT_MAX}, or {FILTERS_MAX} with a raised quota"
    )]
    Count {
        /// How many there are.
        n_filters: usize,
    },
}

impl Filters {
    /// Filters of these patterns.
    ///
    /// # Errors
    ///
    /// [`FilterError`] for what Lambda would refuse.
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether there are none, so that every record is delivered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a record is delivered. The JSON text is that of the Lambda event; what is no JSON is not delivered, where
    /// there are filters.
    #[must_use]
    pub fn matches(&self, record: &str) -> bool {
        if self.is_empty() {
            return true;
        }
        let Ok(record) = serde_json::from_str::<&RawValue>(record) else { return false };
        self.patterns.iter().any(|pattern| pattern.matches(Some(record)))
    }
}

#[cfg(test)]
mod tests;
