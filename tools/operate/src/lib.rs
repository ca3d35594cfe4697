//! Verify, repair and backfill, as the command line uses them.
//!
//! The command line parses arguments and prints. This crate does the rest, and is tested without the command line.
//!
//! - [`verify`] decides what is a finding, over any [`Store`](store::Store). [`verify::check`] is a whole verification:
//!   it keeps its progress in a file, and follows the stream.
//! - [`repair`] is a whole repair: it takes the right to repair, verifies, corrects each finding, and marks derivations
//!   as filled. [`repair::remedy`] corrects one finding.
//! - [`why`] explains the derived values of one item, and reads only what they need.
//! - [`audit`] compares a table that Ripple does not maintain with its definition.
//! - [`rates`] measures the application's write rates.
//! - [`parked`] redrives and discards parked changes, and finds those about an item.
//! - [`objects`] builds the JSON objects of `--json`, which the console serves too.
//!
//! All work on a [`Deployment`](tables::Deployment), and return an [`OperateError`] when they fail.

pub mod audit;
pub mod checkpoints;
pub mod objects;
pub mod parked;
pub mod rates;
pub mod repair;
pub mod tables;
pub mod verify;
pub mod why;
pub mod words;

use std::io;

use engine::{backoff::GaveUp, ledger::SettingsError};
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
