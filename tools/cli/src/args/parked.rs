//! The arguments of `ripple parked` and `ripple redrive`.

use clap::{ArgGroup, Args as Group};

use super::{Connection, Writing, values};

/// `ripple parked`
#[derive(Debug, Group)]
pub(crate) struct ParkedArgs {
    /// Shows only these events, in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple redrive`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub(crate) struct Redrive {
    /// Ids of events, as `ripple parked` lists them.
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Applies everything that is parked.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
