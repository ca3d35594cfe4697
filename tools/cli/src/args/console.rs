//! The arguments of `ripple console`.

use clap::Args as Group;

use super::Connection;

/// Port of the console, unless another one is asked for.
pub(crate) const PORT: u16 = 8_080;

/// `ripple console`
#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Port of the pages, on the loopback address 127.0.0.1; 0 is any that is free.
    #[arg(long, default_value_t = PORT)]
    pub(crate) port: u16,
}
