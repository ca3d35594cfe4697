//! The marks of a possible loss. A verification without findings removes those that existed before it began.

use engine::account::loss::{Mark, clear, marks};
use store::Store;

use crate::{failure::OperateError, tables::Deployment};

/// A mark, and whether it was removed.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The mark.
    pub mark: Mark,
    /// Was it removed?
    pub is_cleared: bool,
}

/// Reads the marks before the table is read.
///
/// # Errors
///
/// [`OperateError::Store`] if they cannot be read.
pub async fn before<S: Store>(opened: &Deployment<S>) -> Result<Vec<Mark>, OperateError> {
    Ok(marks(&opened.store).await?)
}

/// Removes these marks after a verification of the whole table without findings, if that is permitted.
///
/// # Errors
///
/// [`OperateError::Store`] if one cannot be removed.
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
