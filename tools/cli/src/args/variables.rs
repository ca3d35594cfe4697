//! The environment variables that stand for options.

use std::env;

use clap::{Command, CommandFactory as _, FromArgMatches as _, builder::Resettable};

use super::{Args, examples::with_examples};

/// Reads the arguments. Ends the process if they are wrong.
pub(crate) fn parse() -> Args {
    let matches = without_empty_variables(described()).get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// All commands, as help, completions and manual pages describe them.
pub(crate) fn described() -> Command {
    with_examples(Args::command(), "ripple")
}

/// Treats an empty variable as one that is not set, as the functions and the AWS tools do.
fn without_empty_variables(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let is_empty = argument.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
            if is_empty { argument.env(Resettable::Reset) } else { argument }
        })
        .mut_subcommands(without_empty_variables)
}
