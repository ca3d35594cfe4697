//! The arguments of `ripple catalogue`.

use clap::{Args as Group, Subcommand, value_parser};

use super::{Connection, EXIT_CODES, Writing};

/// `ripple catalogue`
#[derive(Debug, Subcommand)]
pub(crate) enum Catalogue {
    /// Compares what is declared with what the functions have: what has to be deployed, filled or cleared away, and what
    /// that costs.
    #[command(after_help = EXIT_CODES)]
    Diff(Diff),
    /// Forgets derivations that the functions do not have any more, once what they derived is cleared away.
    #[command(after_help = EXIT_CODES)]
    Forget(Forget),
}

/// `ripple catalogue diff`
#[derive(Debug, Group)]
pub(crate) struct Diff {
    /// The tables.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Most items that are read for what a backfill costs; 0 reads none, and does not tell.
    #[arg(long, value_name = "MAX", default_value_t = 10_000)]
    pub(crate) items: u32,
    /// Most read units a second.
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
    #[arg(value_name = "DERIVATION", required = true)]
    pub(crate) names: Vec<String>,
    /// The tables.
    #[command(flatten)]
    pub(crate) writing: Writing,
}
