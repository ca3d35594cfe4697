//! The arguments of `ripple verify`, and those that `repair` and `backfill` share with it.

use std::path::PathBuf;

use clap::Args as Group;
use operate::tables::VerifyOptions;

use super::{Connection, values};

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
    pub(crate) derivation: Vec<String>,
    /// Verifies only items of these entities, and the counts about them: names, separated by commas (default: all).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = values::name)]
    pub(crate) entity: Vec<String>,
    /// Verifies only items, and counts about items, whose partition key begins with this prefix.
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) pk: String,
    /// Verifies only items, and counts about items, with this sort key.
    #[arg(long, value_name = "KEY")]
    pub(crate) sk: Option<String>,
    /// Number of segments of the table to read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) segments: u32,
    /// Uses at most this many read units a second (default: no limit).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) read_units: Option<u32>,
    /// Reports every difference as a finding at once. Use it only if no program writes and the functions have no
    /// backlog.
    #[arg(long, conflicts_with = "iterator_age")]
    pub(crate) at_rest: bool,
    /// Greatest recent iterator age of the functions, in seconds. Without it, differences on the real AWS stay
    /// undecided, except those of counts, which the ledger proves.
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) iterator_age: Option<u64>,
    /// Waits at most this many seconds for the functions to catch up, then reports a difference as undecided.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = values::seconds)]
    pub(crate) wait: u64,
    /// Ends with exit code 0 if nothing differs, even if items are unreadable. They are still reported.
    #[arg(long)]
    pub(crate) allow_unreadable: bool,
    /// Saves the progress in this file. Run it again with the same file to continue after an interruption.
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
}

impl Verifying {
    pub(crate) fn request(&self) -> VerifyOptions {
        let Self {
            derivation,
            entity,
            pk,
            sk,
            segments,
            read_units,
            at_rest,
            iterator_age,
            wait,
            allow_unreadable,
            progress,
        } = self.clone();
        VerifyOptions {
            derivation,
            entity,
            pk,
            sk,
            segments,
            read_units,
            at_rest,
            iterator_age,
            wait,
            allow_unreadable,
            progress,
        }
    }
}
