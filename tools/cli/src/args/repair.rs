//! The arguments of `ripple repair` and `ripple backfill`.

use clap::{ArgGroup, Args as Group};

use super::{Writing, values, verify::Verifying};

/// `ripple repair`
#[derive(Debug, Group)]
pub(crate) struct Repair {
    /// Writes the repairs. Without it nothing is written.
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple backfill`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["name", "all"])))]
pub(crate) struct Backfill {
    /// Name of the derivation. Every instance of the functions must have it already.
    #[arg(value_name = "DERIVATION", value_parser = values::name)]
    pub(crate) name: Option<String>,
    /// Fills every derivation that can be filled, in one run.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
