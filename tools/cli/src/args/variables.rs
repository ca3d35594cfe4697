//! The environment variables that stand for options.

use std::{env, ffi::OsStr};

use clap::{Command, CommandFactory as _, FromArgMatches as _, builder::Resettable};

use super::{Args, examples::with_examples};

/// Reads the arguments. Ends the process if they are wrong.
pub(crate) fn parse() -> Args {
    let matches = without_empty_variables(described()).try_get_matches();
    let matches = matches.unwrap_or_else(|error| without_variables_said(error).exit());
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
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
