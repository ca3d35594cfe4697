//! Pages are not of one moment: other callers write between them.

use std::sync::{Mutex, PoisonError};

use crate::{Cursor, Page};

/// Ends of pages that were not continued yet, with the number of writes until then.
#[derive(Debug, Default)]
pub(super) struct PageEnds(Mutex<Vec<(Cursor, u64)>>);

impl PageEnds {
    /// True if the table was written since the previous page; `n_written` is the number of writes when this page was
    /// read.
    pub(super) fn is_torn(&self, after: Option<&Cursor>, page: &Page, n_written: u64) -> bool {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = after.and_then(|after| ends.iter().position(|(cursor, _)| cursor == after));
        let is_torn = before.is_some_and(|at| ends.swap_remove(at).1 != n_written);
        ends.extend(page.next.clone().map(|next| (next, n_written)));
        is_torn
    }
}
