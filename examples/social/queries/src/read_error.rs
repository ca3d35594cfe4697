//! Why a read gives no answer.

use keys::{
    error::{EntityError, KeyError},
    key::Key,
};
use store::StoreError;

use crate::cursor::CursorError;

/// A read that gave no answer. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The cursor cannot be gone on from.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A key cannot be built from what was asked for.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The page is to have no items, or too many.
    #[error("a page of {limit} items was asked for; ask for 1 to {limit_max}")]
    Limit {
        /// What was asked for.
        limit: u32,
        /// The most.
        limit_max: u32,
    },
    /// The first time is after the last.
    #[error("the first time is after the last; ask the other way round, and give the order beside them")]
    TimesReversed,
    /// A time does not begin with a day, and the pattern goes from day to day.
    #[error("a time does not begin with a day such as 2024-01-15; give both times in ISO 8601")]
    NoDay,
    /// The times are too far apart.
    #[error("the times span {days} days; ask for at most {days_max} at once")]
    TooManyDays {
        /// What was asked for.
        days: u32,
        /// The most.
        days_max: u32,
    },
    /// The one item that was asked for does not fit its declaration.
    #[error("{key}: the item cannot be read")]
    Item {
        /// The item.
        key: Key,
        /// What does not fit.
        #[source]
        source: EntityError,
    },
    /// The store did not answer, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReadError {
    /// Is it worth asking again?
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retry())
    }
}
