//! Why an action of the workload was not done.

use queries::{read_error::ReadError, write_error::WriteError};
use store::StoreError;

/// Why an action was not done.
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
    /// Is it an answer, as an application gets now and then? Else the database could not be used.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Write(error) => {
                !matches!(error, WriteError::Store(_) | WriteError::Entity(_) | WriteError::Busy { last: Some(_), .. })
            }
            Self::Read(_) | Self::Store(_) => false,
        }
    }
}
