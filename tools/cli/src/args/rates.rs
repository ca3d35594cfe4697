//! The arguments of `ripple rates`.

use clap::Args as Group;

use super::Connection;

/// `ripple rates`
#[derive(Debug, Group)]
pub(crate) struct RatesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
