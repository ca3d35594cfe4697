//! Why a verification, repair or backfill ended early.

use std::io;

use engine::{backoff::GaveUp, ledger::settings::SettingsError};
use store::StoreError;
use stream::{checkpoint::CheckpointError, poller::StreamError};

use crate::verify::VerifyError;

/// Why a verification or a repair ended early. The file keeps the progress so far.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// Wrong usage; the text says what to change.
    #[error("{0}")]
    Usage(String),
    /// The work cannot be trusted or continued; the text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The progress file cannot be opened or created.
    #[error("cannot open the progress file {file}")]
    Unopened {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The temporary folder for the progress file cannot be created.
    #[error("cannot write temporary files in the folder {folder}: name another with TMPDIR, or a file with --progress")]
    NoTemporary {
        /// The folder.
        folder: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The file is not a progress file.
    #[error("{file} is not the progress file of a verification: give another file")]
    NoSpool {
        /// The file.
        file: String,
    },
    /// The progress file cannot be read or written.
    #[error(transparent)]
    Spool(#[from] rusqlite::Error),
    /// The content of the progress file cannot be decoded.
    #[error(transparent)]
    Kept(#[from] serde_json::Error),
    /// A number in the progress file cannot be decoded.
    #[error("{text} is not a number")]
    NoNumber {
        /// The text instead of the number.
        text: String,
    },
    /// A file or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The verification stopped with an error.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The database refuses a call, or does not respond.
    #[error(transparent)]
    Call(#[from] GaveUp),
    /// The database refuses a read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger's settings cannot be read, or do not fit.
    #[error(transparent)]
    Ledger(#[from] SettingsError),
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
