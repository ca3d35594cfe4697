//! The arguments of `ripple console`.

use clap::Args as Group;

use super::Writing;

/// Port of the console, unless another one is asked for.
pub(crate) const PORT: u16 = 8_080;

/// `ripple console`
#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Lets the pages redrive parked changes, order jobs, verify, repair, and run access patterns that write. On the real AWS
    /// it requires --yes.
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Port of the pages, on the loopback address 127.0.0.1; 0 is any that is free.
    #[arg(long, default_value_t = PORT)]
    pub(crate) port: u16,
}
