//! The command line's arguments.

pub(crate) mod catalogue;
pub(crate) mod demo;
pub(crate) mod jobs;
pub(crate) mod preflight;
pub(crate) mod repair;
pub(crate) mod verify;

use std::path::PathBuf;

use clap::{
    ArgGroup, Args as Group, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use engine::ledger::LedgerKind;

use crate::exit::Usage;
use catalogue::Catalogue;
use demo::Demo;
use jobs::Jobs;
use preflight::Preflight;
use repair::{Backfill, Repair};
use verify::Verify;

/// Keeps derived data in a DynamoDB table in step with the data it is derived from.
#[derive(Debug, Parser)]
#[command(name = "ripple", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// What to do; a demonstration where nothing is said.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 in step, 1 failed, 2 usage, 3 findings.";

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Writes a workload to an embedded DynamoDB, with the service running, and verifies the result.
    #[command(after_help = EXIT_CODES)]
    Demo(Demo),
    /// Runs the service on a laptop until it is stopped, for any AWS client.
    #[command(after_help = EXIT_CODES)]
    Dev(Dev),
    /// Compares every derived value with what it is derived from, while writes go on.
    #[command(after_help = EXIT_CODES)]
    Verify(Verify),
    /// Mends what verify finds, while writes go on; without --apply it says what it would do.
    #[command(after_help = EXIT_CODES)]
    Repair(Repair),
    /// Fills a derivation that is new or was changed, while writes go on.
    #[command(after_help = EXIT_CODES)]
    Backfill(Backfill),
    /// What is declared beside what the functions have: what has to be filled or cleared away.
    #[command(subcommand, after_help = EXIT_CODES)]
    Catalogue(Catalogue),
    /// Reads a part of a table and says whether it fits what is declared, before the service is attached to it.
    #[command(after_help = EXIT_CODES)]
    Preflight(Preflight),
    /// Says what the records of a captured Lambda event would do. Needs no database.
    #[command(after_help = EXIT_CODES)]
    Explain(Explain),
    /// Prints the table's design as a page of markdown, or with --check what a reviewer would ask about it.
    #[command(after_help = EXIT_CODES)]
    Design(Design),
    /// Lists the changes that cannot be applied, and the counts that need a recount.
    #[command(after_help = EXIT_CODES)]
    Parked(Parked),
    /// Applies parked changes, once what kept them from being applied is mended.
    #[command(after_help = EXIT_CODES)]
    Redrive(Redrive),
    /// Lists the jobs that work through many items, and where asked pauses, resumes or cancels some.
    #[command(after_help = EXIT_CODES)]
    Jobs(Jobs),
    /// Hands captured records to the service again; what is in already changes nothing.
    #[command(after_help = EXIT_CODES)]
    Replay(Replay),
}

/// `ripple dev`
#[derive(Debug, Group)]
pub(crate) struct Dev {
    /// Port of the embedded DynamoDB, on the loopback address.
    #[arg(long, default_value_t = 8_000, conflicts_with = "endpoint")]
    pub(crate) port: u16,
    /// Uses the DynamoDB at this URL instead of an embedded one.
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// The application's table. A name that is given must exist at an --endpoint; the default one is made.
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// The ledger's table; the table's name with `-ledger` where it is not given.
    #[arg(long, value_name = "NAME")]
    pub(crate) ledger_table: Option<String>,
    /// How it is known which changes are in already: `receipts` or `checkpoint`. A ledger's table stays with the first.
    #[arg(long, value_name = "KIND", default_value_t = LedgerKind::Receipts, value_parser = ledger_kind())]
    pub(crate) ledger: LedgerKind,
    /// Folder that keeps the embedded database, so that a start goes on where the last stop was.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Region of the endpoint.
    #[arg(long, default_value = "us-east-1", env = "AWS_REGION")]
    pub(crate) region: String,
    /// Calls the functions at this URL, which speaks Lambda's invoke API, such as `cargo lambda watch`; in this
    /// process where it is not given.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub(crate) functions: Option<String>,
    /// Which readers the stream has.
    #[arg(long, value_enum, default_value_t = Readers::Two)]
    pub(crate) readers: Readers,
    /// SAM template of which the event source mappings have the very settings; those of the repository's, at a laptop's
    /// pace, where it is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// Manifest that declares the table, such as `ripple.toml`; the shipped table where it is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Derivations that are switched off, by name, with commas between; `ground` is all that delete items.
    #[arg(long, value_name = "NAMES", env = "DISABLED", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
}

/// `ripple explain`
#[derive(Debug, Group)]
pub(crate) struct Explain {
    /// A Lambda event: JSON with a list `Records`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Manifest that declares the table, such as `ripple.toml`; the shipped table where it is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple design`
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("told").args(["check", "filters"])))]
pub(crate) struct Design {
    /// Prints the findings of a review instead, and ends with 3 when one is not answered.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints the event filters of each function instead: the records that it needs, as a template takes them.
    #[arg(long, conflicts_with = "check")]
    pub(crate) filters: bool,
    /// Manifest that declares the table, such as `ripple.toml`; the shipped table where it is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Answers to findings: a JSON list of objects with `check`, `subject` and `reason`. The shipped table has its own.
    #[arg(long, value_name = "FILE", requires_all = ["check", "config"])]
    pub(crate) answers: Option<PathBuf>,
    /// Prints the findings, or the filters, as one JSON object.
    #[arg(long, requires = "told")]
    pub(crate) json: bool,
}

/// `ripple parked`
#[derive(Debug, Group)]
pub(crate) struct Parked {
    /// Ids of events: these alone, each shown whole.
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// The tables.
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
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// All that is parked.
    #[arg(long)]
    pub(crate) all: bool,
    /// The tables.
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ripple replay`
#[derive(Debug, Group)]
pub(crate) struct Replay {
    /// Lambda events, `GetRecords` pages, and on-failure records as Lambda writes them to S3: JSON, in any order.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Stream of the records, for files that do not say it.
    #[arg(long, value_name = "ARN")]
    pub(crate) stream: Option<String>,
    /// Shard of the records, for files that do not say it. Only a ledger of checkpoints asks for it.
    #[arg(long, value_name = "ID")]
    pub(crate) shard: Option<String>,
    /// The tables.
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the tables are that a command writes.
#[derive(Debug, Group)]
pub(crate) struct Writing {
    /// The tables.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Writes on the real AWS, which is not done without.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Where the tables are.
#[derive(Debug, Group)]
pub(crate) struct Connection {
    /// Uses the DynamoDB at this URL; that of `ripple dev` where nothing is said.
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_DYNAMODB", default_value = "http://127.0.0.1:8000")]
    pub(crate) endpoint: String,
    /// Uses the real AWS, with the account of the standard AWS environment, whatever --endpoint says.
    #[arg(long)]
    pub(crate) aws: bool,
    /// The application's table.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE)]
    pub(crate) table: String,
    /// The ledger's table; the table's name with `-ledger` where it is not given.
    #[arg(long, value_name = "NAME")]
    pub(crate) ledger_table: Option<String>,
    /// Region; the standard AWS environment's with --aws.
    #[arg(long, env = "AWS_REGION")]
    pub(crate) region: Option<String>,
    /// Manifest that declares the table, such as `ripple.toml`; the shipped table where it is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Derivations that are switched off, by name, with commas between; `ground` is all that delete items.
    #[arg(long, value_name = "NAMES", env = "DISABLED", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
}

/// A URL that functions can be invoked at: plain HTTP, as emulators speak it.
fn http_url(text: &str) -> Result<String, String> {
    match text.strip_prefix("http://") {
        Some(host) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err("it must be of the form http://HOST:PORT".to_owned()),
    }
}

/// Name of the application's table where none is given.
pub(crate) const DEFAULT_TABLE: &str = "ripple";

fn ledger_kind() -> impl TypedValueParser<Value = LedgerKind> {
    PossibleValuesParser::new(["receipts", "checkpoint"]).try_map(|text| text.parse::<LedgerKind>())
}

/// How many functions read the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Readers {
    /// `combined`.
    One,
    /// `aggregate` and `propagate`.
    Two,
}

/// The ledger's table of an application's table, which is another: its items are nobody's but the service's.
pub(crate) fn ledger_table(given: Option<&String>, table: &str) -> Result<String, Usage> {
    match given {
        Some(given) if given == table => {
            Err(Usage(format!("{table} cannot be its own ledger: give another --ledger-table")))
        }
        given => Ok(given.cloned().unwrap_or_else(|| format!("{table}-ledger"))),
    }
}
