//! The arguments of `ripple audit`.

use std::path::PathBuf;

use clap::{Args as Group, value_parser};

use super::ApplicationTables;

/// `ripple audit`
#[derive(Debug, Group)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) application: ApplicationTables,
    /// Number of segments of the table to read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) segments: u32,
    /// Uses at most this many read units a second (default: no limit).
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) read_units: Option<u32>,
    /// Reads the table once, even if something differs. Use it only if no program writes.
    #[arg(long)]
    pub(crate) at_rest: bool,
    /// Also shows the stored and the derived values of the worst differences.
    #[arg(long)]
    pub(crate) values: bool,
    /// Also writes the report as a page for a browser into this new file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
