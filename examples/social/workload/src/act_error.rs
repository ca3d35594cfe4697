//! Why an action of the workload failed.

use queries::{read_error::ReadError, write_error::WriteError};
use store::StoreError;

/// An action that was not performed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// A write was refused or failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A read before the write failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A plain write failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActError {
    /// Did the query interface refuse the action, as happens to an application? If not, the database failed.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Write(error) => {
                !matches!(error, WriteError::Store(_) | WriteError::Entity(_) | WriteError::Busy { last: Some(_), .. })
            }
            Self::Read(_) | Self::Store(_) => false,
        }
    }
}
