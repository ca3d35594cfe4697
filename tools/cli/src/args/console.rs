//! The arguments of `ripple console`.

use clap::Args as Group;

use super::Connection;

/// `ripple console`
#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Port of the pages, on the loopback address 127.0.0.1; 0 is any that is free.
    #[arg(long, default_value_t = 8_080)]
    pub(crate) port: u16,
}
