//! The manifest of a command.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Args as Group, builder::OsStr};

use crate::exit::report;

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

/// True if the command works on the shipped table, because nobody named a manifest.
static IS_SHIPPED: AtomicBool = AtomicBool::new(false);

/// Says that a command works on the shipped table.
pub(crate) const SHIPPED: &str = "no ripple.toml is here: this is the shipped example's table";

/// The option of the manifest, as messages name it.
pub(crate) fn option() -> &'static str {
    if IS_SHIPPED.load(Ordering::Relaxed) {
        "--config (no ripple.toml is here, so the shipped example's table is declared)"
    } else {
        "--config"
    }
}

impl ManifestFile {
    /// The manifest; `None` for the shipped table.
    pub(crate) fn file(&self) -> Option<&Path> {
        IS_SHIPPED.store(self.config.is_none(), Ordering::Relaxed);
        self.config.as_deref()
    }

    /// The manifest of a command whose result shows no name of a table, so that the shipped table is said.
    pub(crate) fn file_or_said(&self) -> Option<&Path> {
        if self.config.is_none() {
            report(SHIPPED);
        }
        self.file()
    }
}

/// The manifest in the working directory.
fn here() -> Option<OsStr> {
    // What cannot be read is refused then, as it is when --config names it.
    Path::new(MANIFEST_HERE).symlink_metadata().is_ok().then(|| MANIFEST_HERE.into())
}
