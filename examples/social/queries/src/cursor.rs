//! Cursors: where the next page of a query begins, as a text that outlives the process.
//!
//! A cursor contains the pattern's ID, a fingerprint of the query, the position, and a checksum of these. It is refused
//! if it is damaged, or if it belongs to another query.
//!
//! It contains no partition key: the query that continues supplies the partition keys. So nobody can read more with a
//! forged cursor than the query permits anyway.
//!
//! ```
//! use queries::cursor::PageCursor;
//!
//! let kept: String = PageCursor::from("bm90IGEgY3Vyc29y").to_string();
//! assert_eq!(PageCursor::from(kept), PageCursor::from("bm90IGEgY3Vyc29y"));
//! ```

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use derive::query::{Order, Query, SortKeys};
use keys::{escape, fnv};

/// Version of the form of these cursors. Clients store cursors, so it changes with the form.
const VERSION: &str = "1";

/// Separates the parts of a cursor, which are escaped.
const JOINT: char = '#';

/// Where the next page of a query begins: opaque text of letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor(String);

impl<T: Into<String>> From<T> for PageCursor {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a cursor cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// It is no cursor, or it was changed.
    #[error("{pattern}: the cursor is damaged, or of another version; ask for the first page again")]
    Damaged {
        /// The pattern of the query.
        pattern: &'static str,
    },
    /// It was made for another pattern, or for other inputs.
    #[error("{pattern}: the cursor belongs to another query; ask for the first page of this one")]
    OtherQuery {
        /// The pattern of the query.
        pattern: &'static str,
    },
}

/// The query that a cursor belongs to.
#[derive(Clone, Debug)]
pub(crate) struct CursorScope {
    pattern: &'static str,
    fingerprint: u64,
}

impl CursorScope {
    /// The scope of these queries with a filter on their items. The limit may differ from page to page.
    pub(crate) fn new(pattern: &'static str, queries: &[Query], filter: &str) -> Self {
        let mut parts = vec![pattern, filter];
        parts.extend(queries.iter().flat_map(inputs));
        Self { pattern, fingerprint: hash(&joined(&parts)) }
    }

    /// The cursor at a position.
    pub(crate) fn seal(&self, position: &[String]) -> PageCursor {
        let fingerprint = format!("{:016x}", self.fingerprint);
        let mut parts = vec![VERSION, self.pattern, &fingerprint];
        parts.extend(position.iter().map(String::as_str));
        let text = joined(&parts);
        PageCursor(URL_SAFE_NO_PAD.encode(format!("{text}{JOINT}{:016x}", hash(&text))))
    }

    /// The position of a cursor.
    pub(crate) fn open(&self, cursor: &PageCursor) -> Result<Vec<String>, CursorError> {
        let (pattern, fingerprint, position) = opened(cursor).ok_or_else(|| self.damaged())?;
        let is_ours = pattern == self.pattern && fingerprint == format!("{:016x}", self.fingerprint);
        if is_ours { Ok(position) } else { Err(CursorError::OtherQuery { pattern: self.pattern }) }
    }

    /// The error for a position that does not belong to this query.
    pub(crate) fn damaged(&self) -> CursorError {
        CursorError::Damaged { pattern: self.pattern }
    }
}

/// Pattern, fingerprint and position of an unchanged cursor.
fn opened(cursor: &PageCursor) -> Option<(String, String, Vec<String>)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(&cursor.0).ok()?).ok()?;
    let (text, sum) = text.rsplit_once(JOINT)?;
    if sum != format!("{:016x}", hash(text)) {
        return None;
    }
    let mut parts = text.split(JOINT).map(escape::restored);
    let version = parts.next()?;
    (version == VERSION).then_some((parts.next()?, parts.next()?, parts.collect()))
}

fn joined(parts: &[&str]) -> String {
    parts.iter().map(|part| escape::value(part)).collect::<Vec<_>>().join(&JOINT.to_string())
}

fn inputs(query: &Query) -> [&str; 6] {
    let (form, first, last) = match &query.sk {
        SortKeys::All => ("all", "", ""),
        SortKeys::Prefix(prefix) => ("prefix", prefix.as_str(), ""),
        SortKeys::Between(first, last) => ("between", first.as_str(), last.as_str()),
        SortKeys::After(first) => ("after", first.as_str(), ""),
    };
    let order = match query.order {
        Order::Ascending => "up",
        Order::Descending => "down",
    };
    [query.index.as_deref().unwrap_or_default(), &query.pk, form, first, last, order]
}

/// A hash that is the same in every process. A collision gives an attacker no advantage.
fn hash(text: &str) -> u64 {
    fnv::hash_64(text.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(pattern: &'static str, pk: &str, filter: &str) -> CursorScope {
        CursorScope::new(pattern, &[Query::prefix(None, pk, "COMMENT#")], filter)
    }

    #[test]
    fn a_cursor_is_the_same_in_every_process() {
        let cursor = scope("AP-009", "POST#p", "").seal(&["COMMENT#2024#c".to_owned()]);
        assert_eq!(
            cursor.to_string(),
            "MSNBUC0wMDkjYzk0YTNmOWIwZjM3MzczNSNDT01NRU5UJTIzMjAyNCUyM2MjNzMyMjFkNjNhMDRmMTBlNw"
        );
    }

    proptest::proptest! {
        #[test]
        fn a_position_reads_back_and_no_letter_can_be_changed(
            position in proptest::collection::vec(".*", 0..4), at: proptest::sample::Index, other in "[A-Za-z0-9_-]"
        ) {
            let scope = scope("AP-009", "POST#p", "");
            let cursor = scope.seal(&position);
            proptest::prop_assert_eq!(scope.open(&cursor), Ok(position));
            let mut letters: Vec<char> = cursor.to_string().chars().collect();
            let at = at.index(letters.len());
            letters[at] = other.chars().next().unwrap();
            let changed = PageCursor::from(String::from_iter(letters));
            if changed != cursor {
                proptest::prop_assert_eq!(scope.open(&changed), Err(scope.damaged()));
            }
        }

        #[test]
        fn arbitrary_text_is_no_cursor(text in ".*") {
            let scope = scope("AP-009", "POST#p", "");
            proptest::prop_assert_eq!(scope.open(&PageCursor::from(text)), Err(scope.damaged()));
        }
    }

    #[test]
    fn a_cursor_of_another_query_is_refused() {
        let cursor = scope("AP-009", "POST#p", "draft").seal(&[]);
        for other in
            [scope("AP-010", "POST#p", "draft"), scope("AP-009", "POST#p1", "draft"), scope("AP-009", "POST#p", "")]
        {
            assert_eq!(other.open(&cursor), Err(CursorError::OtherQuery { pattern: other.pattern }));
        }
        assert_eq!(scope("AP-009", "POST#p", "draft").open(&cursor), Ok(vec![]));
    }
}
