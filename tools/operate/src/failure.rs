//! Why what was asked for was not done.

use std::io;

use engine::backoff::GaveUp;
use store::StoreError;
use stream::{checkpoint::CheckpointError, poller::StreamError};

use crate::verify::report::VerifyError;

/// Why a verification or a repair ended early. What a file holds up to there is kept.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// It was asked for wrongly; the text says what to ask for instead.
    #[error("{0}")]
    Usage(String),
    /// It cannot be relied on, or not gone on with; the text says what to do.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be opened.
    #[error("{file} is no file of a verification")]
    NoSpool {
        /// The file.
        file: String,
        /// Why.
        #[source]
        cause: rusqlite::Error,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Spool(#[from] rusqlite::Error),
    /// What the file holds cannot be read.
    #[error(transparent)]
    Kept(#[from] serde_json::Error),
    /// A number in the file cannot be read.
    #[error("{text} is no number")]
    NoNumber {
        /// What is there.
        text: String,
    },
    /// A file, or what is printed, cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The verification ended.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The database refuses a call, or does not answer.
    #[error(transparent)]
    Call(#[from] GaveUp),
    /// The database refuses a read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A position in the stream cannot be read.
    #[error(transparent)]
    Position(#[from] CheckpointError),
    /// The stream cannot be followed.
    #[error("the table's stream cannot be followed: give --at-rest if nobody writes")]
    Stream(#[source] StreamError),
    /// The task that follows the stream ended.
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}
