//! Pages: how much of an answer is asked for, and what comes back.
//!
//! A page is full unless it is the last one, or its query passed over so many items that it gives way: then it is short
//! and has a cursor all the same. So the cursor alone shows whether there is more, and the last page may be empty.

use keys::{error::EntityError, key::Key};

use crate::{cursor::Cursor, read_error::ReadError};

/// Most items of a page, so that a reader holds one answer at a time.
pub const PAGE_ITEMS_MAX: u32 = 1_000;

/// Items, those passed over included, after which a page gives way: ten answers of the greatest size. It ends with the
/// answer that reaches them.
pub const LOOKED_AT_MAX: usize = 10_000;

/// What a page is asked for with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    after: Option<Cursor>,
}

impl PageRequest {
    /// The first page, of at most so many items.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self { limit, after: None }
    }

    /// The page behind the one that this cursor came with; it may have another limit.
    #[must_use]
    pub fn after(limit: u32, cursor: Cursor) -> Self {
        Self { limit, after: Some(cursor) }
    }

    /// The cursor that it goes on from.
    pub(crate) fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// Most items of the page.
    pub(crate) fn limit(&self) -> Result<usize, ReadError> {
        let limit = Some(self.limit).filter(|limit| (1..=PAGE_ITEMS_MAX).contains(limit));
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        limit.ok_or(ReadError::Limit { limit: self.limit, limit_max: PAGE_ITEMS_MAX })
    }
}

/// A page of an answer.
#[derive(Debug)]
#[must_use]
pub struct Page<T> {
    /// The items, in the order that the method names.
    pub items: Vec<T>,
    /// Items among them that do not fit their declaration, since another client wrote them. They stop nobody's page.
    pub unreadable: Vec<InvalidItem>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// An item that does not fit its declaration.
#[derive(Debug)]
pub struct InvalidItem {
    /// The item.
    pub key: Key,
    /// What does not fit.
    pub error: EntityError,
}

impl<T> Page<T> {
    pub(crate) fn empty() -> Self {
        Self { items: Vec::new(), unreadable: Vec::new(), next: None }
    }
}
