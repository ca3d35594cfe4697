//! The arguments of the commands that need no database.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, ValueEnum, value_parser};
use clap_complete::Shell;
use design::cost::FanOutRate;
use infra::mapping::{BATCH_SIZE, BATCHING_WINDOW_S, LANES};

use crate::args::{MANIFEST, MANIFEST_HERE, ManifestFile};

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

/// `ripple cost`
#[derive(Debug, Group)]
pub(crate) struct CostArgs {
    /// New items a second of an entity, such as `Like=10`. Repeat the option for each entity that the application
    /// writes.
    #[arg(long, value_name = "ENTITY=N", value_parser = named::<f64>)]
    pub(crate) rate: Vec<(String, f64)>,
    /// Number of targets over which the items of a count or roll-up spread, such as `like-count=100` (default: each
    /// item has its own target).
    #[arg(long, value_name = "DERIVATION=N", value_parser = named::<u32>)]
    pub(crate) targets: Vec<(String, u32)>,
    /// Changes a second of a source, and the number of items that each change affects, such as
    /// `comment-author=0.01x200`.
    #[arg(long, value_name = "DERIVATION=RATExITEMS", value_parser = fan_out)]
    pub(crate) fan_out: Vec<(String, FanOutRate)>,
    /// Full pages a second of a declared read (`[access.NAME]`), such as `comments-of-post=20`. A full `batch-get` has 100
    /// keys.
    #[arg(long, value_name = "READ=N", value_parser = named::<f64>)]
    pub(crate) read: Vec<(String, f64)>,
    /// Number of partitions of the table. Each has one open shard of the stream.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) shards: u32,
    /// Seconds for which Lambda gathers records (`BatchingWindowSeconds`).
    #[arg(long, value_name = "SECONDS", default_value_t = BATCHING_WINDOW_S, value_parser = value_parser!(u32).range(..=300))]
    pub(crate) window: u32,
    /// Most records of a batch (`BatchSize`).
    #[arg(long, value_name = "N", default_value_t = BATCH_SIZE, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
    /// Concurrent batches of a shard for `propagate` (`Lanes`).
    #[arg(long, value_name = "N", default_value_t = LANES, value_parser = value_parser!(u32).range(1..=10))]
    pub(crate) lanes: u32,
    /// Memory of a function (`MemoryMegabytes`).
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = value_parser!(u32).range(128..=10_240))]
    pub(crate) memory: u32,
    /// Assumed time of a call to DynamoDB, in milliseconds. Not measured on AWS.
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) call_ms: u32,
    /// Price in dollars that replaces the default, such as `write-unit=0.7`. The output of --json lists the names and
    /// units.
    #[arg(long, value_name = "NAME=DOLLARS", value_parser = price)]
    pub(crate) price: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A positive number that an option accepts.
trait Positive: std::str::FromStr {
    fn is_positive(&self) -> bool;
}

impl Positive for f64 {
    fn is_positive(&self) -> bool {
        self.is_finite() && *self > 0.0
    }
}

impl Positive for u32 {
    fn is_positive(&self) -> bool {
        *self > 0
    }
}

fn named<T: Positive>(text: &str) -> Result<(String, T), String> {
    number(text, T::is_positive).ok_or_else(|| "it must be NAME=NUMBER, with a number above 0".to_owned())
}

fn price(text: &str) -> Result<(String, f64), String> {
    let is_price = |dollars: &f64| dollars.is_finite() && *dollars >= 0.0;
    number(text, is_price).ok_or_else(|| "it must be NAME=DOLLARS, with a number of at least 0".to_owned())
}

fn number<T: std::str::FromStr>(text: &str, is: impl FnOnce(&T) -> bool) -> Option<(String, T)> {
    let (name, number) = text.split_once('=')?;
    Some((name.to_owned(), number.parse().ok().filter(is)?))
}

fn fan_out(text: &str) -> Result<(String, FanOutRate), String> {
    let (name, rate) = text.split_once('=').ok_or("it must be DERIVATION=CHANGES_A_SECONDxITEMS")?;
    Ok((name.to_owned(), rate.parse()?))
}

/// `ripple mcp`
#[derive(Debug, Group)]
pub(crate) struct McpArgs {
    /// Gives the tools the option `aws`, by which they read the real AWS.
    #[arg(long)]
    pub(crate) aws: bool,
}

/// `ripple completions`
#[derive(Debug, Group)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `ripple man`
#[derive(Debug, Group)]
pub(crate) struct Man {
    /// Command of the page, such as `catalogue diff` (default: `ripple` itself).
    #[arg(value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

/// `ripple explain`
#[derive(Debug, Group)]
pub(crate) struct Explain {
    /// JSON file with a Lambda event: an object with the list `Records`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple infra`
#[derive(Debug, Group)]
pub(crate) struct InfraArgs {
    /// Leaves the existing table as it is, and creates everything else.
    #[arg(long)]
    pub(crate) attach: bool,
    /// Format of the output, by the tool that deploys it.
    #[arg(long, value_enum, default_value_t = InfraFormat::Sam)]
    pub(crate) format: InfraFormat,
    /// The file that this command printed for the last deployment. Prints the next one, which creates or deletes at most
    /// one index of a table, and names the deployments that are left. Exits with 3 while there are any.
    #[arg(long, value_name = "FILE", conflicts_with = "attach")]
    pub(crate) deployed: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfraFormat {
    /// A SAM template, for `sam build` in the repository.
    Sam,
    /// A SAM template that takes the functions' packages from an S3 bucket.
    Cloudformation,
    /// A Terraform module around that template.
    Terraform,
    /// A CDK construct in TypeScript around that template.
    Cdk,
}
