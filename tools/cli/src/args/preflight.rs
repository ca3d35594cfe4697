//! The arguments of `ripple preflight`.

use clap::{Args as Group, value_parser};

use super::Connection;

/// `ripple preflight`
#[derive(Debug, Group)]
pub(crate) struct Preflight {
    /// The tables; that of the ledger need not be there yet.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Most items that are read.
    #[arg(long, value_name = "MAX", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    pub(crate) items: u32,
    /// Reads the first of so many equal parts of the table: the more, the smaller.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) segment_of: u32,
    /// Most read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
