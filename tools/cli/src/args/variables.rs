//! The environment variables that stand for options.

use std::{
    env,
    ffi::OsStr,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _, builder::Resettable, error::ErrorKind};

use super::{Args, examples::with_examples};
use crate::exit::report;

/// Reads the arguments. Where they are wrong, or ask for help, prints that and gives the exit code.
pub(crate) fn parse() -> Result<Args, ExitCode> {
    let mut command = without_empty_variables(described());
    let matches = command.try_get_matches_from_mut(env::args_os()).map_err(|error| {
        match no_text(&command).filter(|_| error.kind() == ErrorKind::InvalidUtf8) {
            Some(name) => {
                let what =
                    format!("the environment variable {name} is not UTF-8: set it to another value, or unset it");
                command.error(ErrorKind::InvalidUtf8, what)
            }
            None => without_variables_said(error),
        }
    });
    matches.and_then(|matches| Args::from_arg_matches(&matches)).map_err(|error| printed(&error))
}

/// Prints the help that was asked for, or what is wrong with the arguments.
fn printed(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(failed) if !error.use_stderr() && failed.kind() != io::ErrorKind::BrokenPipe => {
            report(&format!("ripple: cannot write the output: {failed}"));
            ExitCode::FAILURE
        }
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// A variable that stands for an option, and whose value is no text.
fn no_text(command: &Command) -> Option<String> {
    let is_no_text = |name: &&OsStr| env::var_os(name).is_some_and(|value| value.to_str().is_none());
    let here = command.get_arguments().filter_map(Arg::get_env).find(is_no_text);
    let below = || command.get_subcommands().find_map(no_text);
    here.map(|name| name.to_string_lossy().into_owned()).or_else(below)
}

/// The same error without the variables, if they have no part in it: its usage would show the options that they stand for
/// as if those were required.
fn without_variables_said(error: clap::Error) -> clap::Error {
    let alone = without_variables(described(), &|_| true).try_get_matches().err();
    alone.filter(|alone| alone.kind() == error.kind()).unwrap_or(error)
}

/// All commands, as help, completions and manual pages describe them.
pub(crate) fn described() -> Command {
    with_examples(Args::command(), "ripple")
}

/// Treats an empty variable as one that is not set, as the functions and the AWS tools do.
fn without_empty_variables(command: Command) -> Command {
    without_variables(command, &|value| value.is_empty())
}

/// Ignores the variables with such values.
fn without_variables(command: Command, is_ignored: &dyn Fn(&OsStr) -> bool) -> Command {
    command
        .mut_args(|argument| {
            let value = argument.get_env().and_then(env::var_os);
            if value.is_some_and(|value| is_ignored(&value)) { argument.env(Resettable::Reset) } else { argument }
        })
        .mut_subcommands(|below| without_variables(below, is_ignored))
}
