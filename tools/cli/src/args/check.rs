//! The arguments of `ripple check`, `ripple schema`, `ripple types` and `ripple wait`.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};

use super::{
    Connection,
    manifest::{MANIFEST, MANIFEST_HERE, ManifestFile},
    values,
};

/// `ripple check`
#[derive(Debug, Group)]
pub(crate) struct ManifestCheck {
    /// The manifest.
    #[arg(value_name = "FILE", env = MANIFEST, default_value = MANIFEST_HERE)]
    pub(crate) file: PathBuf,
    /// Also prints a sentence for each derivation: what it does, as Ripple reads the manifest.
    #[arg(long, conflicts_with = "json")]
    pub(crate) explain: bool,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple schema`
#[derive(Debug, Group)]
pub(crate) struct SchemaArgs {
    /// Prints the reference of manifests as Markdown instead.
    #[arg(long)]
    pub(crate) reference: bool,
    /// Prints the JSON Schema of the commands' JSON output and of the console's responses instead.
    #[arg(long, conflicts_with = "reference")]
    pub(crate) json_output: bool,
}

/// `ripple types`
#[derive(Debug, Group)]
pub(crate) struct TypesArgs {
    /// Programming language of your application.
    #[arg(long, value_enum)]
    pub(crate) language: ClientLanguage,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
}

/// Output language of `ripple types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientLanguage {
    /// TypeScript.
    Typescript,
    /// Python.
    Python,
    /// Rust.
    Rust,
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
