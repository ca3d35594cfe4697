//! The manifest of a command.

use std::path::{Path, PathBuf};

use clap::{Args as Group, builder::OsStr};

/// Variable with the manifest. Stable.
pub(crate) const MANIFEST: &str = "RIPPLE_CONFIG";

/// Name of the manifest that every command takes from the working directory.
pub(crate) const MANIFEST_HERE: &str = "ripple.toml";

/// The manifest of a command.
#[derive(Clone, Debug, Group)]
pub(crate) struct ManifestFile {
    /// Manifest that declares the table (default: `ripple.toml` in the working directory; if there is none, the shipped
    /// table).
    #[arg(
        long,
        value_name = "FILE",
        env = MANIFEST,
        default_values = here(),
        hide_default_value = true
    )]
    pub(crate) config: Option<PathBuf>,
}

/// The manifest in the working directory.
fn here() -> Option<OsStr> {
    // What cannot be read is refused then, as it is when --config names it.
    Path::new(MANIFEST_HERE).symlink_metadata().is_ok().then(|| MANIFEST_HERE.into())
}
