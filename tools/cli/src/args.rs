//! The command line's arguments.

pub(crate) mod check;
pub(crate) mod cost;
pub(crate) mod demo;
mod examples;
pub(crate) mod values;
pub(crate) mod verify;
pub(crate) mod why;

use std::{net::IpAddr, path::PathBuf};

use check::{ManifestCheck, SchemaArgs, TypesArgs, Wait};
use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;
use cost::CostArgs;
use demo::Demo;
use engine::{jobs::JobOrder, ledger::LedgerKind};
use functions::declared::Choice;
use verify::Verify;
use why::WhyArgs;

use crate::{args::verify::Verifying, embedded::access, exit::Usage};

/// Keeps derived data in a DynamoDB table in step with the data it is derived from.
#[derive(Debug, Parser)]
#[command(name = "ripple", version)]
pub(crate) struct Args {
    /// What to do (default: demo).
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Writes a workload to an embedded DynamoDB, with the service running, and verifies the result.
    Demo(Demo),
    /// Runs the service on a laptop until it is stopped, for any AWS client.
    Dev(Dev),
    /// Waits until everything that was written before is handled, by a `ripple dev` that runs.
    Wait(Wait),
    /// Compares every derived value with what it is derived from, while writes go on.
    Verify(Verify),
    /// Explains why a derived value of an item is what it is. Reads only that item and what it is derived from.
    Why(WhyArgs),
    /// Serves pages about a table to a browser on this machine: what is derived of each item, and why. It only
    /// reads unless you give --allow-writes.
    Console(ConsoleArgs),
    /// Repairs what verify finds, while writes go on. Without --apply it only shows what it would do.
    Repair(Repair),
    /// Fills a derivation that is new or was changed, while writes go on.
    Backfill(Backfill),
    /// Compares the declared derivations with those that the functions have deployed.
    #[command(subcommand)]
    Catalogue(CatalogueCommand),
    /// Reads a part of a table and reports whether it fits the declaration, before you attach the service.
    Preflight(Preflight),
    /// Checks a manifest alone. Needs no database.
    Check(ManifestCheck),
    /// Prints a JSON Schema of manifests, for an editor. Needs no database.
    Schema(SchemaArgs),
    /// Prints typed keys and items of a table for your application. Needs no database.
    Types(TypesArgs),
    /// Explains what the records of a captured Lambda event would do. Needs no database.
    Explain(Explain),
    /// Prints the table's design as Markdown, or with --check the questions that a reviewer would ask.
    Design(DesignArgs),
    /// Estimates what a table costs a month under either ledger, with the formula of each line. Needs no database.
    Cost(CostArgs),
    /// Measures what the application writes, by the records that the stream still has, as options of `ripple cost`.
    Rates(RatesArgs),
    /// Prints the infrastructure of a table: tables, functions, mappings with filters, roles, alarms and a dashboard.
    Infra(InfraArgs),
    /// Lists the changes that the service could not apply, and the counts that need a recount.
    Parked(ParkedArgs),
    /// Applies parked changes again, after you fixed what blocked them.
    Redrive(Redrive),
    /// Lists the jobs that work through many items, or pauses, resumes or cancels some of them.
    Jobs(Jobs),
    /// Sends captured records to the service again. Records that were applied before change nothing.
    Replay(Replay),
    /// Prints the completions of a shell.
    Completions(Completions),
    /// Prints a manual page, in the form of man.
    Man(Man),
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
    /// The command that the page is about, such as `catalogue diff` (default: `ripple` itself).
    #[arg(value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

/// `ripple dev`
#[derive(Debug, Group)]
pub(crate) struct Dev {
    /// Port of the embedded DynamoDB.
    #[arg(long, default_value_t = 8_000, conflicts_with = "endpoint")]
    pub(crate) port: u16,
    /// Address of the embedded DynamoDB. It asks nobody for a password, so whoever reaches another address than the
    /// default one can read and write everything.
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
    /// The application's table (default: ripple). With --endpoint a table that you name must exist; ripple creates only
    /// the default one.
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) table: Option<String>,
    /// What the tables of a manifest with several are called, where that is not their name there: `NAME=TABLE`, separated by
    /// commas. --table is then the one of Ripple's own items.
    #[arg(long, value_name = "NAMES", env = "TABLES", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// The ledger's table (default: the table's name with `-ledger`).
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) ledger_table: Option<String>,
    /// How the ledger recognizes changes that were applied before: `receipts` or `watermarks`. A ledger's table keeps the
    /// kind that it started with.
    #[arg(long, value_name = "KIND", default_value_t, value_parser = values::ledger_kind())]
    pub(crate) ledger: LedgerKind,
    /// Folder that keeps the embedded database, so that the next start continues from the last stop.
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    pub(crate) data: Option<PathBuf>,
    /// Takes another manifest than the folder's last one for a new version of the functions: what it lacks is dropped,
    /// what it declares otherwise has to be filled again, and the indexes that it adds are created.
    #[arg(long, requires = "data")]
    pub(crate) redeploy: bool,
    /// Region of the endpoint.
    #[arg(long, default_value = "us-east-1", env = "AWS_REGION", value_parser = values::region)]
    pub(crate) region: String,
    /// Calls the functions at this URL, which speaks Lambda's invoke API, such as `cargo lambda watch` (default: the
    /// functions run in this process).
    #[arg(long, value_name = "URL", value_parser = values::http_url)]
    pub(crate) functions: Option<String>,
    /// How many functions read the stream.
    #[arg(long, value_enum, default_value_t = Readers::Two)]
    pub(crate) readers: Readers,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Switches these derivations off: names, separated by commas. `ground` means all derivations that delete items.
    #[arg(long, value_name = "NAMES", env = "DISABLED", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
    /// Prints a line for each batch too.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// `ripple explain`
#[derive(Debug, Group)]
pub(crate) struct Explain {
    /// A Lambda event: JSON with a list `Records`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple design`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("printed").args(["check", "filters"])))]
pub(crate) struct DesignArgs {
    /// Prints the findings of a review instead, and exits with 3 when one has no answer.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints the event filters of each function instead, in the form that a SAM template uses.
    #[arg(long, conflicts_with = "check")]
    pub(crate) filters: bool,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Answers to findings: a JSON list of objects with `check`, `subject` and `reason`.
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) answers: Option<PathBuf>,
    /// Prints the findings, or the filters, as one JSON object.
    #[arg(long, requires = "printed")]
    pub(crate) json: bool,
}

/// `ripple replay`
#[derive(Debug, Group)]
pub(crate) struct Replay {
    /// JSON files in any order: Lambda events, `GetRecords` pages, or on-failure records as Lambda writes them to S3.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Stream of the records, for files that do not name it.
    #[arg(long, value_name = "ARN")]
    pub(crate) stream: Option<String>,
    /// Shard of the records, for files that do not name it. Only a ledger of watermarks needs it.
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
    /// Allows writes on the real AWS.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Connection {
    /// Uses the DynamoDB at this URL. The default is that of `ripple dev`.
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_DYNAMODB", default_value = "http://127.0.0.1:8000", value_parser = values::endpoint)]
    pub(crate) endpoint: String,
    /// Uses the real AWS with the credentials of the standard AWS environment, and ignores --endpoint.
    #[arg(long)]
    pub(crate) aws: bool,
    /// The application's table.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE, value_parser = values::table)]
    pub(crate) table: String,
    /// What the tables of a manifest with several are called, where that is not their name there: `NAME=TABLE`, separated by
    /// commas. --table is then the one of Ripple's own items.
    #[arg(long, value_name = "NAMES", env = "TABLES", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// The ledger's table (default: the table's name with `-ledger`).
    #[arg(long, value_name = "NAME", value_parser = values::table)]
    pub(crate) ledger_table: Option<String>,
    /// Region (default with --aws: that of the standard AWS environment).
    #[arg(long, env = "AWS_REGION", value_parser = values::region)]
    pub(crate) region: Option<String>,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Switches these derivations off: names, separated by commas. `ground` means all derivations that delete items.
    #[arg(long, value_name = "NAMES", env = "DISABLED", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
}

/// Default name of the application's table.
pub(crate) const DEFAULT_TABLE: &str = "ripple";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Readers {
    /// `combined`.
    One,
    /// `aggregate` and `propagate`.
    Two,
}

/// Gives the name of the ledger's table. It is never the application's table, because only the service may write ledger
/// items.
pub(crate) fn ledger_table(given: Option<&String>, table: &str) -> Result<String, Usage> {
    match given {
        Some(given) if given == table => {
            Err(Usage(format!("{table} cannot be its own ledger: give another --ledger-table")))
        }
        given => Ok(given.cloned().unwrap_or_else(|| format!("{table}-ledger"))),
    }
}

// ---- What the options of a command say of the declarations ----

impl Connection {
    /// The choice of declarations.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.config.as_deref(), tables: &self.tables, disabled: &self.disable }
    }
}

impl Dev {
    /// The choice of declarations.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.config.as_deref(), tables: &self.tables, disabled: &self.disable }
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

/// Port of the console, unless another one is asked for.
pub(crate) const PORT: u16 = 8_080;

/// `ripple console`
#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Lets the pages redrive parked changes, order jobs, verify and repair. On the real AWS it requires --yes.
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Port of the pages, on the loopback address 127.0.0.1; 0 is any that is free.
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
    /// Reads at most this many items.
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
    /// For a table that exists already: makes everything else, and does not change the table.
    #[arg(long)]
    pub(crate) attach: bool,
    /// What deploys it.
    #[arg(long, value_enum, default_value_t = InfraFormat::Sam)]
    pub(crate) format: InfraFormat,
    /// Manifest that declares the table, such as `ripple.toml` (default: the shipped table).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfraFormat {
    /// A SAM template, for `sam build` in the repository.
    Sam,
    /// A SAM template that takes the functions' packages from a bucket.
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
    /// Shows only these events, in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple redrive`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub(crate) struct Redrive {
    /// Ids of events, as `ripple parked` lists them.
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Applies everything that is parked.
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
    /// Shows only these jobs, in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Pauses these jobs.
    #[arg(long)]
    pub(crate) pause: bool,
    /// Resumes these jobs.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Cancels these jobs. The work that is left stays undone.
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
    /// Writes the repairs. Without it nothing is written.
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
    /// Name of the derivation. Every instance of the functions must have it already.
    #[arg(value_name = "DERIVATION", value_parser = values::name)]
    pub(crate) name: Option<String>,
    /// Fills every derivation that can be filled, in one run.
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
    /// Shows which derivations you have to deploy, backfill or clear away, and what that costs.
    Diff(Diff),
    /// Forgets derivations that the functions no longer have, after you cleared away what they derived.
    Forget(Forget),
}

/// `ripple catalogue diff`
#[derive(Debug, Group)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Reads at most this many items to estimate the cost of a backfill. 0 skips the estimate.
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
    /// The derivations, by name.
    #[arg(value_name = "DERIVATION", required = true, value_parser = values::name)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) writing: Writing,
}
