//! Exit codes. They are stable: 0 in step, 1 failed, 2 usage, 3 findings.

use std::process::ExitCode;

use operate::failure::OperateError;

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All is in step.
    InStep,
    /// There are findings.
    Findings,
    /// Not all that was asked for is done; what is not has been named.
    Unfinished,
}

/// A command that was called wrongly: exit code 2, as the argument parser's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The exit code; a failure is reported in one line.
pub(crate) fn code(result: anyhow::Result<Ended>) -> ExitCode {
    match result {
        Ok(Ended::InStep) => ExitCode::SUCCESS,
        Ok(Ended::Findings) => ExitCode::from(3),
        Ok(Ended::Unfinished) => ExitCode::FAILURE,
        Err(error) => {
            report(&format!("ripple: {}", engine::backoff::describe(error.as_ref())));
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// Was something asked for wrongly?
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Usage>() || matches!(error.downcast_ref(), Some(OperateError::Usage(_)))
}

/// Says something to the person at the terminal: progress and failures, on standard error.
#[expect(clippy::print_stderr, reason = "the one place that writes to standard error")]
pub(crate) fn report(line: &str) {
    eprintln!("{line}");
}

/// Prints a command's result on standard output.
#[expect(clippy::print_stdout, reason = "the one place that writes to standard output")]
pub(crate) fn print(text: &str) {
    use std::io::Write as _;
    println!("{text}");
    // A closed pipe is the reader's choice.
    let _closed = std::io::stdout().flush().is_err();
}
