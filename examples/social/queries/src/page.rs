//! Pages of a result.
//!
//! A page is full unless it is the last one, or its query skipped so many items that it stops early: such a page is
//! short, but has a cursor. So only the cursor shows whether there is more, and the last page may be empty.

use keys::{error::EntityError, key::Key};

use crate::{cursor::PageCursor, read_error::ReadError};

/// Most items of a page, so that a reader holds one response of the database at a time.
pub const PAGE_ITEMS_MAX: u32 = 1_000;

/// Number of items, skipped ones included, after which a page stops early: ten responses of the greatest size. The page
/// ends with the response that reaches this number.
pub const LOOKED_AT_MAX: usize = 10_000;

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    after: Option<PageCursor>,
}

impl PageRequest {
    /// The first page, with at most this many items.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self { limit, after: None }
    }

    /// The page after the one with this cursor; it may have another limit.
    #[must_use]
    pub fn after(limit: u32, cursor: PageCursor) -> Self {
        Self { limit, after: Some(cursor) }
    }

    /// The cursor to continue from.
    pub(crate) fn cursor(&self) -> Option<&PageCursor> {
        self.after.as_ref()
    }

    /// Most items of the page.
    pub(crate) fn limit(&self) -> Result<usize, ReadError> {
        let limit = Some(self.limit).filter(|limit| (1..=PAGE_ITEMS_MAX).contains(limit));
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        limit.ok_or(ReadError::Limit { limit: self.limit, limit_max: PAGE_ITEMS_MAX })
    }
}

/// A page of a result.
#[derive(Debug)]
#[must_use]
pub struct Page<T> {
    /// The items, in the order that the method names.
    pub items: Vec<T>,
    /// Items of the page that do not fit their declaration, because another client wrote them. The rest of the page is
    /// read.
    pub unreadable: Vec<InvalidItem>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<PageCursor>,
}

/// An item that does not fit its declaration.
#[derive(Debug)]
pub struct InvalidItem {
    /// Its key.
    pub key: Key,
    /// How it does not fit.
    pub error: EntityError,
}

impl<T> Page<T> {
    pub(crate) fn empty() -> Self {
        Self { items: Vec::new(), unreadable: Vec::new(), next: None }
    }
}
