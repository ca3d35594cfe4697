//! The arguments of `ripple audit`.

use std::path::PathBuf;

use clap::{Args as Group, value_parser};

use super::{Connection, DEFAULT_TABLE, values};

/// `ripple audit`
#[derive(Debug, Group)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) audited: AuditedTables,
    /// Number of segments of the table to read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) segments: u32,
    /// Uses at most this many read units a second (default: no limit).
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) read_units: Option<u32>,
    /// Reads the table once, even if something differs. Use it only if no program writes.
    #[arg(long)]
    pub(crate) at_rest: bool,
    /// Also shows the stored and the derived values of the worst differences.
    #[arg(long)]
    pub(crate) values: bool,
    /// Also writes the report as a page for a browser into this new file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The application's tables, without any of Ripple's.
#[derive(Debug, Group)]
pub(crate) struct AuditedTables {
    /// URL of the DynamoDB. The default is that of `ripple dev`.
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_DYNAMODB", default_value = "http://127.0.0.1:8000", value_parser = values::endpoint)]
    endpoint: String,
    /// Uses the real AWS, and ignores --endpoint. The credentials are those of the standard AWS environment.
    #[arg(long)]
    aws: bool,
    /// The application's table.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE, value_parser = values::table)]
    table: String,
    /// DynamoDB names of the manifest's tables, as `NAME=TABLE,NAME=TABLE` (default: the names in the manifest).
    #[arg(long, value_name = "NAMES", env = "TABLES", value_delimiter = ',')]
    tables: Vec<String>,
    /// AWS Region (default with --aws: that of the standard AWS environment).
    #[arg(long, env = "AWS_REGION", value_parser = values::region)]
    region: Option<String>,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE", env = "RIPPLE_CONFIG")]
    config: Option<PathBuf>,
    /// Leaves these derivations out: names, separated by commas. `ground` stands for all derivations that delete the
    /// application's items.
    #[arg(long, value_name = "NAMES", env = "DISABLED", value_delimiter = ',')]
    disable: Vec<String>,
}

impl AuditedTables {
    /// The connection. The ledger's table of the default name is never called.
    pub(crate) fn connection(&self) -> Connection {
        Connection {
            endpoint: self.endpoint.clone(),
            aws: self.aws,
            table: self.table.clone(),
            tables: self.tables.clone(),
            ledger_table: None,
            region: self.region.clone(),
            config: self.config.clone(),
            disable: self.disable.clone(),
        }
    }
}
