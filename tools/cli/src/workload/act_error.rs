//! Why an action of the workload failed.

use queries::{read_error::ReadError, write_error::WriteError};
use store::StoreError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActError {
    /// Did the query interface refuse the action, as happens to an application? If not, the database failed.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Write(error) => {
                !matches!(error, WriteError::Store(_) | WriteError::Entity(_) | WriteError::Busy { last: Some(_), .. })
            }
            Self::Read(_) | Self::Store(_) => false,
        }
    }
}
