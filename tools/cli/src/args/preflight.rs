//! The arguments of `ripple preflight`.

use clap::{Args as Group, value_parser};

use super::Connection;

/// `ripple preflight`
#[derive(Debug, Group)]
pub(crate) struct Preflight {
    /// The tables. The ledger's table need not exist yet.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Reads at most this many items.
    #[arg(long, value_name = "MAX", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    pub(crate) items: u32,
    /// Divides the table into this many equal segments and reads only the first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) segment_of: u32,
    /// Uses at most this many read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
