//! The arguments of `ripple init`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, value_parser};

use super::values;

/// URL of the database of `ripple dev`.
pub(crate) const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:8000";

/// `ripple init`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("source").required(true).args(["file", "table"])))]
pub(crate) struct Init {
    /// File that describes the tables: a NoSQL Workbench model, a CloudFormation or SAM template, a `serverless.yml`, the
    /// JSON of `terraform show`, a `schema.json` or `dynamodb_data_model.json`, a `OneTable` schema, or a `schema.graphql`.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// An existing table. Its description and some of its items are read, and nothing is written to it.
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) table: Option<String>,
    /// URL of the DynamoDB. The default is that of `ripple dev`.
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_DYNAMODB", default_value = DEFAULT_ENDPOINT, value_parser = values::endpoint)]
    pub(crate) endpoint: String,
    /// Uses the real AWS, and ignores --endpoint. Credentials, and the endpoint of a VPC, are those of the standard AWS
    /// environment.
    #[arg(long)]
    pub(crate) aws: bool,
    /// AWS Region (default with --aws: that of the standard AWS environment).
    #[arg(long, env = "AWS_REGION", value_parser = values::region)]
    pub(crate) region: Option<String>,
    /// Reads at most this many items.
    #[arg(long, value_name = "MAX", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) items: u32,
    /// Uses at most this many read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// File to write, which must not exist. `-` prints the draft instead.
    #[arg(long, value_name = "FILE", default_value = "ripple.toml")]
    pub(crate) out: PathBuf,
}
