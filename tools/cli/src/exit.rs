//! What all commands do with their output and with the files and ports that options name, and their exit codes.
//!
//! The exit codes are stable: 0 nothing to do, 1 failed, 2 wrong usage, 3 findings.

use std::{
    fs::OpenOptions,
    io::{self, ErrorKind, StdoutLock, Write},
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use functions::{config::ConfigError, declared::DeclaredError};
use operate::{OperateError, objects::with_version, words::visible};
use serde_json::{Value, json};
use store::StoreError;
use tokio::net::TcpListener;

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Everything is correct.
    InStep,
    /// There are findings.
    Findings,
    /// Some of the work is not done. The command has reported it.
    Unfinished,
    /// Some of the given ids do not exist. The command has reported them.
    UnknownId,
    /// A command of the user ran, and ended with this exit code.
    Command(u8),
}

/// Wrong usage: exit code 2, like the argument parser's own errors. An unusable input file is wrong usage too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Longest file that an argument names, in bytes: many times Lambda's largest event of 6 MB.
const FILE_BYTES_MAX: u64 = 256_000_000;

/// The text of a file that an argument names.
pub(crate) fn file_text(file: &Path) -> Result<String, Usage> {
    manifest::file_text(file, FILE_BYTES_MAX).map_err(|error| Usage(format!("cannot read {}: {error}", file.display())))
}

/// True for the text of a manifest, which some commands take by `--config` only.
pub(crate) fn is_manifest(text: &str) -> bool {
    text.lines().any(|line| ["[table]", "[tables.", "[entity."].iter().any(|head| line.trim().starts_with(head)))
}

/// Writes a new file that an option names. An existing one is never overwritten.
pub(crate) fn write_new(file: &Path, option: &str, text: &str) -> Result<(), Usage> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(file, option),
        _ => Usage(format!("cannot write {}: {error}", file.display())),
    };
    let mut new = OpenOptions::new().write(true).create_new(true).open(file).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)
}

/// Refuses a file that [`write_new`] could not create, before the work that fills it.
pub(crate) fn is_new(file: &Path, option: &str) -> Result<(), Usage> {
    if file.try_exists().unwrap_or(true) { Err(exists(file, option)) } else { Ok(()) }
}

fn exists(file: &Path, option: &str) -> Usage {
    Usage(format!("{} exists: name another file with {option}", file.display()))
}

/// The exit code of a result. Reports a failure in one line.
pub(crate) fn code(result: anyhow::Result<Completion>) -> ExitCode {
    match result {
        Ok(_) if IS_LOST.load(Ordering::Relaxed) => ExitCode::FAILURE,
        Ok(Completion::InStep) => ExitCode::SUCCESS,
        Ok(Completion::Findings) => ExitCode::from(3),
        Ok(Completion::Unfinished) => ExitCode::FAILURE,
        Ok(Completion::UnknownId) => ExitCode::from(2),
        Ok(Completion::Command(code)) => ExitCode::from(code),
        Err(error) => {
            if is_gone(&error) {
                report(
                    "ripple: the database does not respond any more: what is done stays done; start the database, then this \
                     command again",
                );
            } else {
                report(&format!("ripple: {}", engine::backoff::describe(error.as_ref())));
            }
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

fn is_usage(error: &anyhow::Error) -> bool {
    let is_of_ours = error.is::<Usage>() || error.is::<DeclaredError>() || error.is::<ConfigError>();
    is_of_ours || matches!(error.downcast_ref(), Some(OperateError::Usage(_)))
}

/// True if the database stopped responding. It responded earlier, when the command opened its tables.
fn is_gone(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref()).any(StoreError::is_unreachable)
}

/// True if a result was lost because standard output cannot be written.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// True if results go to standard error, because standard output belongs to a command of the user, or to the
/// objects of `dev --json`.
static ON_STDERR: AtomicBool = AtomicBool::new(false);

/// Prints all results on standard error from now on.
pub(crate) fn results_on_stderr() {
    ON_STDERR.store(true, Ordering::Relaxed);
}

/// Prints progress or a failure on standard error.
pub(crate) fn report(line: &str) {
    // A closed standard error cannot be reported anywhere.
    let _closed = writeln!(io::stderr(), "{}", visible(line)).is_err();
}

/// Reports each unknown id, and the command that lists the existing ones.
pub(crate) fn report_unknown(ids: &[&str], what: &str, command: &str) {
    for id in ids {
        report(&format!("ripple: {id} is {what}: `ripple {command}` lists all"));
    }
}

/// Prints a command's result on standard output.
pub(crate) fn print(text: &str) {
    if ON_STDERR.load(Ordering::Relaxed) { report(text) } else { print_object(text) }
}

/// Prints an object of a command that prints one a line, on standard output even if other results are elsewhere.
fn print_object(text: &str) {
    let mut output = Output::new();
    let written = writeln!(output, "{}", visible(text)).and_then(|()| output.flush());
    if let Err(error) = written
        && !IS_LOST.swap(true, Ordering::Relaxed)
    {
        report(&format!("ripple: cannot write the output: {error}"));
    }
}

/// Standard output. If the reader closes the pipe early, the rest is dropped without an error.
pub(crate) struct Output(StdoutLock<'static>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

fn unless_closed<T>(written: io::Result<T>, all: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(all),
        written => written,
    }
}

/// Prints an object, with the version of the output added.
pub(crate) fn print_json(object: Value) {
    print(&with_version(object).to_string());
}

// ---- Events of a running `ripple dev`: lines for people, or with `--json` one object a line ----

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    People,
    /// A program, which reads a JSON object a line.
    Program,
}

impl Audience {
    /// The audience of a command with this option.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Program } else { Self::People }
    }

    /// Prints a line for people, or the object of an event.
    pub(crate) fn print(self, line: impl FnOnce() -> String, event: &str, names: impl FnOnce() -> Value) {
        match self {
            Self::People => print(&line()),
            Self::Program => object(event, names()),
        }
    }

    /// Reports a problem, on standard error for people.
    pub(crate) fn problem(self, sentence: &str) {
        match self {
            Self::People => report(sentence),
            Self::Program => object("problem", json!({ "message": sentence })),
        }
    }
}

fn object(event: &str, mut names: Value) {
    if let Some(names) = names.as_object_mut() {
        names.insert("event".to_owned(), event.into());
    }
    print_object(&with_version(names).to_string());
}

// ---- Ports ----

/// Listens at an address; port 0 takes a free port. The option names the port in the error.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Usage> {
    let port = address.port();
    TcpListener::bind(address).await.map_err(|error| {
        Usage(match error.kind() {
            ErrorKind::AddrInUse => format!("port {port} is in use: stop what uses it, or give another {option}"),
            _ => format!("cannot listen on {address}: {error}: give another {option}"),
        })
    })
}
