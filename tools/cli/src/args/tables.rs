//! The arguments of the commands that read or write tables.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Subcommand, value_parser};
use engine::jobs::JobOrder;
use keys::key::Key;
use operate::{parked::About, tables::VerifyOptions};
use serde::Deserialize;

use crate::args::{ApplicationTables, Connection, DEFAULT_ENDPOINT, ENDPOINT, Writing, values};

/// `ripple verify`
#[derive(Debug, Group)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    /// Allows writes to the ledger's table on the real AWS. If a run finds nothing to correct, it marks derivations as
    /// filled; it also removes the mark of a possible loss if it finds nothing to correct in the mark's family of
    /// derivations.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of a verification.
#[derive(Clone, Debug, Group)]
pub(crate) struct Verifying {
    /// Only these derivations: names, separated by commas (default: all).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = values::name)]
    derivation: Vec<String>,
    /// Verifies only items of these entities, and the counts about them: names, separated by commas (default: all).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = values::name)]
    entity: Vec<String>,
    /// Verifies only items, and counts about items, whose partition key begins with this prefix.
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pk: String,
    /// Verifies only items, and counts about items, with this sort key.
    #[arg(long, value_name = "KEY")]
    sk: Option<String>,
    /// Number of segments of the table to read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    segments: u32,
    /// Uses at most this many read units a second (default: no limit).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    read_units: Option<u32>,
    /// Reports every difference as a finding at once. Use it only if no program writes and the functions have no
    /// backlog.
    #[arg(long, conflicts_with = "iterator_age")]
    at_rest: bool,
    /// Greatest recent iterator age of the functions, in seconds. Without it, differences on the real AWS stay
    /// undecided, except those of counts, which the ledger proves.
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    iterator_age: Option<u64>,
    /// Waits at most this many seconds for the functions to catch up, then reports a difference as undecided.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = values::seconds)]
    wait: u64,
    /// Ends with exit code 0 if nothing differs, even if items are unreadable. They are still reported.
    #[arg(long)]
    allow_unreadable: bool,
    /// Saves the progress in this file. Run it again with the same file to continue after an interruption.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
}

impl Verifying {
    pub(crate) fn request(&self) -> VerifyOptions {
        let given = self.clone();
        VerifyOptions {
            derivation: given.derivation,
            entity: given.entity,
            pk: given.pk,
            sk: given.sk,
            segments: given.segments,
            read_units: given.read_units,
            at_rest: given.at_rest,
            iterator_age: given.iterator_age,
            wait: given.wait,
            allow_unreadable: given.allow_unreadable,
            progress: given.progress,
        }
    }
}

/// `ripple why`
#[derive(Debug, Group)]
pub(crate) struct WhyArgs {
    /// Key of the item, as `PK / SK` or as the JSON object `{"pk": …, "sk": …}`; with `[tables]`, `TABLE#PK / SK`. The item
    /// need not exist.
    #[arg(value_name = "KEY", value_parser = about)]
    pub(crate) key: About,
    /// Explains only this attribute (default: all derived attributes).
    #[arg(value_name = "ATTRIBUTE")]
    pub(crate) attribute: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Lists at most this many sources of a counter, and this many changes.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) list: u32,
    /// Reads at most this many source items of a counter. If there are more, the report does not decide whether the
    /// counter is correct.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) sources: u32,
    /// Reads the table's stream from its oldest record, for the changes that affected the values. This may take long on
    /// the real AWS, so it is the default only for an emulator.
    #[arg(long, overrides_with = "no_changes")]
    pub(crate) changes: bool,
    /// Does not read the table's stream.
    #[arg(long)]
    pub(crate) no_changes: bool,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl WhyArgs {
    /// True if the stream is read.
    pub(crate) const fn reads_stream(&self) -> bool {
        !self.no_changes && (self.changes || !self.connection.application.aws)
    }
}

/// A key, as `--json` prints it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyObject {
    pk: String,
    sk: String,
}

fn item(text: &str) -> Result<Key, String> {
    let text = text.trim();
    if text.starts_with('{') {
        let KeyObject { pk, sk } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        return Ok(Key::new(pk, sk));
    }
    match text.split(" / ").collect::<Vec<_>>().as_slice() {
        [pk, sk] if !pk.is_empty() && !sk.is_empty() => Ok(Key::new(*pk, *sk)),
        [_, _, _, ..] => Err(r#"it has several ` / `: give {"pk": "…", "sk": "…"}"#.to_owned()),
        _ => Err("it must be `PK / SK`, such as 'POST#p / METADATA'".to_owned()),
    }
}

/// Accepts the keys of an item, or a partition key alone.
fn about(text: &str) -> Result<About, String> {
    let has_both = text.contains(" / ");
    let text = text.trim();
    if !has_both && !text.starts_with('{') {
        return if text.is_empty() || text.ends_with(" /") {
            Err("it must be `PK / SK` or `PK`, such as 'POST#p / METADATA'".to_owned())
        } else {
            Ok(About { pk: text.to_owned(), sk: None })
        };
    }
    item(text).map(|Key { pk, sk }| About { pk, sk: Some(sk) })
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

/// `ripple rates`
#[derive(Debug, Group)]
pub(crate) struct RatesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// `ripple parked`
#[derive(Debug, Group)]
pub(crate) struct ParkedArgs {
    /// Shows the parked changes with these event ids in full (default: a list of all).
    #[arg(value_name = "ID", value_parser = values::name)]
    pub(crate) ids: Vec<String>,
    /// Shows only the changes about an item: its keys as `PK / SK`, or `PK` alone for all items with that partition key.
    /// A change is about an item if it changed it, would change it, or contains its key or its id.
    #[arg(long, value_name = "KEY", value_parser = about, conflicts_with_all = ["ids", "discard"])]
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

/// `ripple audit`
#[derive(Debug, Group)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) application: ApplicationTables,
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
    #[arg(long, value_name = "URL", env = ENDPOINT, default_value = DEFAULT_ENDPOINT, value_parser = values::endpoint)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_key_alone_stands_for_all_its_items() {
        let of = |pk: &str, sk: Option<&str>| About { pk: pk.to_owned(), sk: sk.map(str::to_owned) };
        assert_eq!(about("USER#ada "), Ok(of("USER#ada", None)));
        assert_eq!(about("USER#ada / PROFILE"), Ok(of("USER#ada", Some("PROFILE"))));
        assert_eq!(about(r#"{"pk": "a / b", "sk": "c"}"#), Ok(of("a / b", Some("c"))));
        assert!(about("").is_err() && about("USER#ada / ").is_err() && about(" / PROFILE").is_err());
    }

    #[test]
    fn a_key_is_two_texts_or_an_object() {
        assert_eq!(item(" POST#p / METADATA "), Ok(Key::new("POST#p", "METADATA")));
        assert_eq!(item(r#"{"pk": "a / b", "sk": "c"}"#), Ok(Key::new("a / b", "c")));
        for (wrong, why) in [
            ("POST#p", "it must be `PK / SK`"),
            (" / b", "it must be `PK / SK`"),
            ("a / b / c", "it has several ` / `"),
            (r#"{"pk": "a"}"#, "missing field `sk`"),
            (r#"{"PK": "a", "SK": "b"}"#, "unknown field `PK`"),
        ] {
            assert!(item(wrong).is_err_and(|error| error.contains(why)), "{wrong}: {:?}", item(wrong));
        }
    }
}
