//! Exit codes. They are stable: 0 in step, 1 failed, 2 usage, 3 findings.

use std::process::ExitCode;

use operate::failure::OperateError;

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// All is in step.
    InStep,
    /// There are findings.
    Findings,
    /// Some of the work is not done; the command has named it.
    Unfinished,
}

/// Wrong usage: exit code 2, like the argument parser's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The exit code of a result. Reports a failure in one line.
pub(crate) fn code(result: anyhow::Result<Completion>) -> ExitCode {
    match result {
        Ok(Completion::InStep) => ExitCode::SUCCESS,
        Ok(Completion::Findings) => ExitCode::from(3),
        Ok(Completion::Unfinished) => ExitCode::FAILURE,
        Err(error) => {
            report(&format!("ripple: {}", engine::backoff::describe(error.as_ref())));
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Usage>() || matches!(error.downcast_ref(), Some(OperateError::Usage(_)))
}

/// Prints progress or a failure on standard error.
#[expect(clippy::print_stderr, reason = "the one place that writes to standard error")]
pub(crate) fn report(line: &str) {
    eprintln!("{line}");
}

/// Prints a command's result on standard output.
#[expect(clippy::print_stdout, reason = "the one place that writes to standard output")]
pub(crate) fn print(text: &str) {
    use std::io::Write as _;
    println!("{text}");
    // The reader may close the pipe early.
    let _closed = std::io::stdout().flush().is_err();
}
