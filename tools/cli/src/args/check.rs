//! The arguments of `ripple check`, `ripple schema` and `ripple wait`.

use std::path::PathBuf;

use clap::Args as Group;

use super::{Connection, values};

/// `ripple check`
#[derive(Debug, Group)]
pub(crate) struct ManifestCheck {
    /// The manifest, such as `ripple.toml`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple schema`
#[derive(Debug, Group)]
pub(crate) struct SchemaArgs {
    /// Prints the reference of the language as Markdown instead.
    #[arg(long)]
    pub(crate) reference: bool,
}

/// `ripple wait`
#[derive(Debug, Group)]
pub(crate) struct Wait {
    /// Fails after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = values::timeout)]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
