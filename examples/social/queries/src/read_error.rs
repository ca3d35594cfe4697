//! Why a read failed.

use keys::{
    error::{EntityError, KeyError},
    key::Key,
};
use store::StoreError;

use crate::cursor::CursorError;

/// A failed read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The cursor cannot be used.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The inputs give no valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The limit of the page is 0 or too large.
    #[error("a page of {limit} items was asked for; ask for 1 to {limit_max}")]
    Limit {
        /// The given limit.
        limit: u32,
        /// The greatest limit.
        limit_max: u32,
    },
    /// The first time is after the last.
    #[error("the first time is after the last; ask the other way round, and give the order beside them")]
    TimesReversed,
    /// A time does not begin with a day, which the pattern needs.
    #[error("a time does not begin with a day such as 2024-01-15; give both times in ISO 8601")]
    NoDay,
    /// The times are too far apart.
    #[error("the times span {days} days; ask for at most {days_max} at once")]
    TooManyDays {
        /// The given number of days.
        days: u32,
        /// The greatest number of days.
        days_max: u32,
    },
    /// The requested item does not fit its declaration.
    #[error("{key}: the item cannot be read")]
    Item {
        /// Its key.
        key: Key,
        /// How it does not fit.
        #[source]
        source: EntityError,
    },
    /// The store did not respond, or refused the read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReadError {
    /// Can a retry succeed?
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retry())
    }
}
