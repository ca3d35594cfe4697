//! The command line's arguments: the commands, the options that several of them share, and those of the commands that run
//! the service or stand beside it.

pub(crate) mod offline;
pub(crate) mod tables;
pub(crate) mod values;

use std::{
    ffi::OsString,
    net::IpAddr,
    ops::Deref,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Args as Group, Parser, Subcommand, ValueEnum, builder::OsStr};
use engine::ledger::LedgerKind;
use functions::{
    config::{DISABLED, TABLES},
    declared::Choice,
};
use serde::Serialize;

use crate::{
    args::{
        offline::{
            Completions, CostArgs, DesignArgs, Explain, InfraArgs, Man, ManifestCheck, McpArgs, SchemaArgs, TypesArgs,
        },
        tables::{
            AuditArgs, Backfill, CatalogueCommand, Init, Jobs, ParkedArgs, Preflight, RatesArgs, Redrive, Repair,
            Replay, Verify, WhyArgs,
        },
    },
    embedded,
    exit::{Usage, report},
};

/// Keeps derived data in a DynamoDB table up to date with the data it is derived from.
#[derive(Debug, Parser)]
#[command(name = "ripple", version)]
pub(crate) struct Args {
    /// The command to run (default: demo).
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the service and a workload on an embedded DynamoDB, and verifies the result.
    Demo(Demo),
    /// Runs the service on this machine, for any AWS client, until you stop it.
    Dev(Dev),
    /// Waits until a running `ripple dev` has handled everything that was written before the call.
    Wait(Wait),
    /// Computes every derived value from its sources and reports those that differ, while writes continue.
    Verify(Verify),
    /// Explains how a derived value of an item came about, from its sources, pending work and recent changes.
    Why(WhyArgs),
    /// Serves pages about a table to a browser on this machine: the derived values of each item, and how they came
    /// about. Without --allow-writes, the pages only read.
    Console(ConsoleArgs),
    /// Repairs what `ripple verify` finds, while writes continue. Without --apply, it only prints the repairs.
    Repair(Repair),
    /// Computes a new or changed derivation for all existing items, while writes continue.
    Backfill(Backfill),
    /// Compares the declared derivations with those of the deployed functions.
    #[command(subcommand)]
    Catalogue(CatalogueCommand),
    /// Reads a part of a table and reports whether it fits the manifest, before you attach the service.
    Preflight(Preflight),
    /// Drafts a manifest from an existing table, or from a file that describes tables. Changes no table.
    Init(Init),
    /// Reports how wrong the derived values are in a table that Ripple does not maintain. Only reads.
    Audit(AuditArgs),
    /// Checks a manifest. Needs no database.
    Check(ManifestCheck),
    /// Prints the JSON Schema of manifests, for an editor. Needs no database.
    Schema(SchemaArgs),
    /// Prints typed keys and items of a table for your application. Needs no database.
    Types(TypesArgs),
    /// Shows the effects that the records of a captured Lambda event would have. Needs no database.
    Explain(Explain),
    /// Prints the table's design as Markdown. With --check, prints the findings of a design review instead.
    Design(DesignArgs),
    /// Estimates the monthly cost of a table under either ledger, with the formula of each line. Needs no database.
    Cost(CostArgs),
    /// Measures the application's write rates from the records still in the stream, and prints them as options for
    /// `ripple cost`.
    Rates(RatesArgs),
    /// Prints a template of the infrastructure: tables, functions, mappings with filters, roles, alarms and a
    /// dashboard.
    Infra(InfraArgs),
    /// Lists the changes that the service could not apply, and the counts that need a recount.
    Parked(ParkedArgs),
    /// Applies parked changes again, after you fixed the cause.
    Redrive(Redrive),
    /// Lists the jobs (fan-outs and cascades over many items), or pauses, resumes or cancels some of them.
    Jobs(Jobs),
    /// Applies captured records again. Records that were already applied change nothing.
    Replay(Replay),
    /// Gives the commands that only read to a coding agent: a server of the Model Context Protocol on standard input and
    /// output.
    Mcp(McpArgs),
    /// Prints the completion script for a shell.
    Completions(Completions),
    /// Prints a manual page for `man`.
    Man(Man),
}

/// `ripple dev`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Group)]
pub(crate) struct Dev {
    /// Port of the embedded DynamoDB (default: 8000, or a free one with a COMMAND).
    #[arg(long, conflicts_with = "endpoint")]
    pub(crate) port: Option<u16>,
    /// Port of the console, on the loopback address 127.0.0.1 (default: 8080, or a free one if that is in use).
    #[arg(long, value_name = "PORT")]
    pub(crate) console_port: Option<u16>,
    /// Address on which the embedded DynamoDB listens. It has no authentication: with another address than the default,
    /// every machine that can reach it can read and write all data.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = values::address, conflicts_with = "endpoint")]
    pub(crate) host: IpAddr,
    /// Another name of this machine that clients may use for the embedded DynamoDB, such as `host.docker.internal`; give it
    /// once for each. It answers no other name than localhost and addresses of this machine.
    #[arg(long, value_name = "NAME", value_parser = embedded::host, conflicts_with = "endpoint")]
    pub(crate) allow_host: Vec<String>,
    /// Site of web pages that may read and write everything in the embedded DynamoDB, such as `http://localhost:3000`; give
    /// it once for each. No page may by default.
    #[arg(long, value_name = "ORIGIN", value_parser = embedded::origin, conflicts_with = "endpoint")]
    pub(crate) allow_origin: Vec<String>,
    /// Uses the DynamoDB at this URL instead of an embedded one.
    #[arg(long, value_name = "URL", value_parser = values::endpoint)]
    pub(crate) endpoint: Option<String>,
    /// Writes nothing: prints what the functions would write into an existing table. Creates only the ledger's table, which
    /// stays empty.
    #[arg(long, requires = "endpoint", conflicts_with_all = ["functions", "command"])]
    pub(crate) observe: bool,
    /// The application's table (default: ripple). With --endpoint, a table that you name must exist: ripple creates
    /// only the default one.
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) table: Option<String>,
    /// DynamoDB names of the manifest's tables, as `NAME=TABLE,NAME=TABLE` (default: the names in the manifest). With
    /// several tables, --table names the one for Ripple's own items.
    #[arg(long, value_name = "NAMES", env = TABLES, value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// The ledger's table (default: the application's table with the suffix `-ledger`).
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) ledger_table: Option<String>,
    /// How the ledger recognizes changes that are already counted: `receipts` or `watermarks`. A ledger's table keeps
    /// the kind that it was created for.
    #[arg(long, value_name = "KIND", default_value_t, value_parser = values::ledger_kind())]
    pub(crate) ledger: LedgerKind,
    /// Folder for the embedded database, so that the next start continues where this one stopped (default: in memory).
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    pub(crate) data: Option<PathBuf>,
    /// Accepts a manifest that differs from the last one of this --data folder. Creates new indexes and drops removed
    /// derivations; new and changed derivations need `ripple backfill`.
    #[arg(long, requires = "data")]
    pub(crate) redeploy: bool,
    /// Region of the endpoint.
    #[arg(long, default_value = "us-east-1", env = "AWS_REGION", value_parser = values::region)]
    pub(crate) region: String,
    /// Invokes the functions by Lambda's Invoke API at this URL, such as that of `cargo lambda watch` (default: the
    /// functions run in this process).
    #[arg(long, value_name = "URL", value_parser = values::http_url)]
    pub(crate) functions: Option<String>,
    /// Number of functions that read the stream.
    #[arg(long, value_enum, default_value_t = Readers::Two)]
    pub(crate) readers: Readers,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// Switches these derivations off: names, separated by commas. `ground` stands for all derivations that delete the
    /// application's items.
    #[arg(long, value_name = "NAMES", env = DISABLED, value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
    /// Also prints a line for each batch.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Prints a JSON object a line: that it is ready, each batch, each problem, and the end.
    #[arg(long, conflicts_with_all = ["verbose", "functions", "command"])]
    pub(crate) json: bool,
    /// Command that runs against the service, such as `ripple dev -- npm test`, with the variables of a client set. When it
    /// has ended, ripple waits until everything is handled, verifies, and ends with the command's exit code, or with 3 if
    /// something differs.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The tables that a command writes to.
#[derive(Debug, Group)]
pub(crate) struct Writing {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Allows writes to the real AWS.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The tables that a command reads: the application's, and the ledger's.
#[derive(Debug, Group)]
pub(crate) struct Connection {
    #[command(flatten)]
    pub(crate) application: ApplicationTables,
    /// The ledger's table (default: the application's table with the suffix `-ledger`).
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) ledger_table: Option<String>,
}

impl Deref for Connection {
    type Target = ApplicationTables;

    fn deref(&self) -> &ApplicationTables {
        &self.application
    }
}

/// The application's tables.
#[derive(Clone, Debug, Group)]
pub(crate) struct ApplicationTables {
    /// URL of the DynamoDB. The default is that of `ripple dev`.
    #[arg(long, value_name = "URL", env = ENDPOINT, default_value = DEFAULT_ENDPOINT, value_parser = values::endpoint)]
    pub(crate) endpoint: String,
    /// Uses the real AWS, and ignores --endpoint. Credentials, and the endpoint of a VPC, are those of the standard AWS
    /// environment.
    #[arg(long)]
    pub(crate) aws: bool,
    /// The application's table.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE, value_parser = values::table)]
    pub(crate) table: String,
    /// DynamoDB names of the manifest's tables, as `NAME=TABLE,NAME=TABLE` (default: the names in the manifest). With
    /// several tables, --table names the one for Ripple's own items.
    #[arg(long, value_name = "NAMES", env = TABLES, value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// AWS Region (default with --aws: that of the standard AWS environment).
    #[arg(long, env = "AWS_REGION", value_parser = values::region)]
    pub(crate) region: Option<String>,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// Switches these derivations off: names, separated by commas. `ground` stands for all derivations that delete the
    /// application's items.
    #[arg(long, value_name = "NAMES", env = DISABLED, value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
}

/// Variable with the URL of the DynamoDB.
pub(crate) const ENDPOINT: &str = "AWS_ENDPOINT_URL_DYNAMODB";

/// Default URL of the DynamoDB.
pub(crate) const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:8000";

/// Default name of the application's table.
pub(crate) const DEFAULT_TABLE: &str = "ripple";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Readers {
    /// `combined`.
    One,
    /// `aggregate` and `propagate`.
    Two,
}

/// Returns the name of the ledger's table. It must not be the application's table, because only the service may write
/// ledger items.
pub(crate) fn ledger_table(given: Option<&String>, table: &str) -> Result<String, Usage> {
    match given {
        Some(given) if given == table => {
            Err(Usage(format!("{table} cannot be its own ledger: give another --ledger-table")))
        }
        given => Ok(given.cloned().unwrap_or_else(|| format!("{table}-ledger"))),
    }
}

impl Connection {
    /// The manifest, its tables, and the derivations that are switched off.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.manifest.file(), tables: &self.tables, disabled: &self.disable }
    }
}

/// Port of the embedded DynamoDB, the same as DynamoDB Local's.
const DATABASE_PORT: u16 = 8_000;

impl Dev {
    /// The port of the embedded DynamoDB; 0 is any free one.
    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.command.is_empty() { DATABASE_PORT } else { 0 })
    }

    /// The manifest, its tables, and the derivations that are switched off.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.manifest.file(), tables: &self.tables, disabled: &self.disable }
    }
}

/// Default port of the console.
pub(crate) const PORT: u16 = 8_080;

/// `ripple console`
#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Allows the pages to redrive parked changes, to pause, resume and cancel jobs, to verify and to repair. On the
    /// real AWS, it also needs --yes.
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Port of the pages, on the loopback address 127.0.0.1. 0 selects a free port.
    #[arg(long, default_value_t = PORT)]
    pub(crate) port: u16,
}

// ---- The manifest ----

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
pub(crate) fn config_option() -> &'static str {
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

// ---- `ripple wait` ----

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

// ---- `ripple demo` ----

/// Number of writes of a load without `--writes`.
const WRITES: u32 = 2_000;

/// `ripple demo`
#[derive(Debug, Group)]
pub(crate) struct Demo {
    /// Workload of the application (default: `story`; with --writes, --rate or --json `mixed`).
    #[arg(long, value_enum)]
    scenario: Option<Scenario>,
    /// Number of writes (default: 2000). For `hot`, the number of likes. For `famous`, the number of comments by the
    /// renamed user.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    writes: Option<u32>,
    /// Seed of the workload. The same seed gives the same writes.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Writes a second (default: as fast as the database accepts them).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: Option<u32>,
    /// For `famous`: writes a second by other users, before and during the renames. The demo reports their lag.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) others: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Uses the DynamoDB at this URL, such as DynamoDB Local, instead of an embedded one. The demo creates its own
    /// tables.
    #[arg(long, value_name = "URL", value_parser = values::endpoint)]
    pub(crate) endpoint: Option<String>,
    /// How the ledger recognizes changes that are already counted: `receipts` or `watermarks`.
    #[arg(long, value_name = "KIND", default_value_t, value_parser = values::ledger_kind())]
    pub(crate) ledger: LedgerKind,
    /// Number of functions that read the stream.
    #[arg(long, value_enum, default_value_t = Readers::Two)]
    pub(crate) readers: Readers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scenario {
    /// A rename and 200 likes, while functions are killed and records are delivered again.
    Story,
    /// All kinds of writes that the table supports.
    Mixed,
    /// Every user likes the same post.
    Hot,
    /// A user with many comments is renamed three times in quick succession.
    Famous,
}

impl Demo {
    /// The workload.
    pub(crate) fn scenario(&self) -> Scenario {
        self.scenario.unwrap_or(if self.is_load() { Scenario::Mixed } else { Scenario::Story })
    }

    /// True if an option was given that only a load has.
    fn is_load(&self) -> bool {
        self.writes.is_some() || self.rate.is_some() || self.json
    }

    /// Number of writes of a load.
    pub(crate) fn writes(&self) -> u32 {
        self.writes.unwrap_or(WRITES)
    }

    /// Refuses options that exclude each other.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        let scenario = self.scenario();
        if self.others > 0 && scenario != Scenario::Famous {
            let what = "--others needs --scenario famous: it is the lag of other people while a user is renamed";
            return Err(Usage(what.to_owned()));
        }
        if scenario == Scenario::Story && self.is_load() {
            let what = "--writes, --rate and --json need a load: give --scenario mixed, hot or famous";
            return Err(Usage(what.to_owned()));
        }
        Ok(())
    }
}
