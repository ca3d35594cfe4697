//! The arguments of `ripple design`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, ValueEnum};

use super::manifest::ManifestFile;

/// `ripple design`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("printed").args(["check", "filters"])))]
pub(crate) struct DesignArgs {
    /// Prints the findings of a review instead. The exit code is 3 if a finding has no answer.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints the event filters of each function instead, in the form of a SAM template.
    #[arg(long, conflicts_with = "check")]
    pub(crate) filters: bool,
    /// Prints the tables, entities and reads instead, as a file of another tool. What such a file cannot contain is listed
    /// on standard error.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["printed", "answers", "json"])]
    pub(crate) export: Option<ExportFormat>,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// File with answers to findings: a JSON list of objects with `check`, `subject` and `reason`.
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) answers: Option<PathBuf>,
    /// Prints the findings, or the filters, as one JSON object.
    #[arg(long, requires = "printed")]
    pub(crate) json: bool,
}

/// The file that `ripple design --export` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A model of `NoSQL` Workbench, of version 3.0.
    Workbench,
    /// A `schema.json` of the `DynamoDB` MCP server.
    SchemaJson,
}
