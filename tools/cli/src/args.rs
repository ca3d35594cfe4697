//! The command line's arguments.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod cost;
pub(crate) mod demo;
pub(crate) mod design;
mod examples;
pub(crate) mod init;
pub(crate) mod manifest;
pub(crate) mod values;
pub(crate) mod verify;
pub(crate) mod why;

use std::{ffi::OsString, net::IpAddr, ops::Deref, path::PathBuf};

use audit::AuditArgs;
use check::{ManifestCheck, SchemaArgs, TypesArgs, Wait};
use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;
use cost::CostArgs;
use demo::Demo;
use design::DesignArgs;
use engine::{jobs::JobOrder, ledger::LedgerKind};
use functions::{
    config::{DISABLED, TABLES},
    declared::Choice,
};
use init::Init;
use manifest::ManifestFile;
use operate::about::About;
use verify::Verify;
use why::WhyArgs;

use crate::{args::verify::Verifying, embedded::access, exit::Usage};

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
    #[arg(long, value_name = "NAME", value_parser = access::host, conflicts_with = "endpoint")]
    pub(crate) allow_host: Vec<String>,
    /// Site of web pages that may read and write everything in the embedded DynamoDB, such as `http://localhost:3000`; give
    /// it once for each. No page may by default.
    #[arg(long, value_name = "ORIGIN", value_parser = access::origin, conflicts_with = "endpoint")]
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

/// `ripple replay`
#[derive(Debug, Group)]
pub(crate) struct Replay {
    /// JSON files in any order: Lambda events, `GetRecords` pages, or on-failure files from S3.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// ARN of the stream, for files that do not contain it.
    #[arg(long, value_name = "ARN")]
    pub(crate) stream: Option<String>,
    /// ID of the shard, for files that do not contain it. Only a ledger of watermarks needs it.
    #[arg(long, value_name = "ID")]
    pub(crate) shard: Option<String>,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
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

// ---- The declarations that the options of a command select ----

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

// ---- The arguments of `ripple rates` ----

/// `ripple rates`
#[derive(Debug, Group)]
pub(crate) struct RatesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

// ---- The arguments of `ripple console` ----

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

// ---- The arguments of `ripple preflight` ----

/// `ripple preflight`
#[derive(Debug, Group)]
pub(crate) struct Preflight {
    /// The tables. The ledger's table need not exist yet.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Reads at most this many items of each table.
    #[arg(long, value_name = "MAX", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    pub(crate) items: u32,
    /// Divides the table into this many equal segments and reads only the first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) segment_of: u32,
    /// Uses at most this many read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

// ---- The arguments of `ripple infra` ----

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

// ---- The arguments of `ripple parked` and `ripple redrive` ----

/// `ripple parked`
#[derive(Debug, Group)]
pub(crate) struct ParkedArgs {
    /// Shows the parked changes with these event ids in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Shows only the changes about an item: its keys as `PK / SK`, or `PK` alone for all items with that partition key.
    /// A change is about an item if it changed it, would change it, or contains its key or its id.
    #[arg(long, value_name = "KEY", value_parser = why::about, conflicts_with_all = ["ids", "discard"])]
    pub(crate) about: Option<About>,
    /// Removes these changes without applying them, and says what is lost. Their counts are listed for a recount.
    #[arg(long, requires = "ids")]
    pub(crate) discard: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple redrive`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub(crate) struct Redrive {
    /// Event ids of the changes, as `ripple parked` lists them.
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Applies all parked changes.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

// ---- The arguments of `ripple jobs` ----

/// `ripple jobs`
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(group(ArgGroup::new("order").args(["pause", "resume", "cancel"]).requires("ids")))]
pub(crate) struct Jobs {
    /// Shows these jobs in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Pauses these jobs.
    #[arg(long)]
    pub(crate) pause: bool,
    /// Resumes these jobs.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Cancels these jobs. Their remaining work is not done.
    #[arg(long)]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Jobs {
    /// The operator's order for the jobs, or `None` to list them.
    pub(crate) fn order(&self) -> Option<JobOrder> {
        let orders = [(self.pause, JobOrder::Pause), (self.resume, JobOrder::Resume), (self.cancel, JobOrder::Cancel)];
        orders.into_iter().find_map(|(is_asked, order)| is_asked.then_some(order))
    }
}

// ---- The arguments of `ripple repair` and `ripple backfill` ----

/// `ripple repair`
#[derive(Debug, Group)]
pub(crate) struct Repair {
    /// Writes the repairs (default: only prints them).
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple backfill`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["name", "all"])))]
pub(crate) struct Backfill {
    /// Name of the derivation. Deploy the functions with it first.
    #[arg(value_name = "DERIVATION", value_parser = values::name)]
    pub(crate) name: Option<String>,
    /// Fills all derivations that can be filled, in one run.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

// ---- The arguments of `ripple catalogue` ----

/// `ripple catalogue`
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogueCommand {
    /// Shows which derivations you have to deploy, backfill or remove, and what that costs.
    Diff(Diff),
    /// Removes derivations from the registry that the functions no longer have, after you deleted their derived data.
    Forget(Forget),
}

/// `ripple catalogue diff`
#[derive(Debug, Group)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Reads at most this many items of each table to estimate the cost of a backfill. 0 skips the estimate.
    #[arg(long, value_name = "MAX", default_value_t = 10_000)]
    pub(crate) items: u32,
    /// Uses at most this many read units a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) units_per_second: u32,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple catalogue forget`
#[derive(Debug, Group)]
pub(crate) struct Forget {
    /// Names of the derivations.
    #[arg(value_name = "DERIVATION", required = true, value_parser = values::name)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) writing: Writing,
}
