//! The arguments of `ripple catalogue`.

use clap::{Args as Group, Subcommand, value_parser};

use super::{Connection, Writing, values};

/// `ripple catalogue`
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogueCommand {
    /// Shows which derivations you have to deploy, backfill or clear away, and what that costs.
    Diff(Diff),
    /// Forgets derivations that the functions no longer have, after you cleared away what they derived.
    Forget(Forget),
}

/// `ripple catalogue diff`
#[derive(Debug, Group)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Reads at most this many items to estimate the cost of a backfill. 0 skips the estimate.
    #[arg(long, value_name = "MAX", default_value_t = 10_000)]
    pub(crate) items: u32,
    /// Uses at most this many read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple catalogue forget`
#[derive(Debug, Group)]
pub(crate) struct Forget {
    /// The derivations, by name.
    #[arg(value_name = "DERIVATION", required = true, value_parser = values::name)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) writing: Writing,
}
