//! Marks of a possible loss: those that there are before a table is read go when nothing is found.

use engine::account::loss::{Mark, clear, marks};
use store::Store;

use crate::{failure::OperateError, tables::Deployment};

/// A mark, and whether it was taken away.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The mark.
    pub mark: Mark,
    /// Was it taken away?
    pub is_cleared: bool,
}

/// The marks that there are before the table is read.
///
/// # Errors
///
/// [`OperateError::Store`] when they cannot be read.
pub async fn before<S: Store>(opened: &Deployment<S>) -> Result<Vec<Mark>, OperateError> {
    Ok(marks(&opened.store).await?)
}

/// Takes these marks away, where that may be done: when a whole verification found nothing.
///
/// # Errors
///
/// [`OperateError::Store`] when one cannot be taken away.
pub async fn settled<S: Store>(
    opened: &Deployment<S>,
    marks: Vec<Mark>,
    may_clear: bool,
) -> Result<Vec<Marked>, OperateError> {
    let mut marked = Vec::new();
    for mark in marks {
        let is_cleared = may_clear && clear(&opened.store, &mark).await?;
        marked.push(Marked { mark, is_cleared });
    }
    Ok(marked)
}
