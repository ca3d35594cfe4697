//! The arguments of `ripple verify`, and what others that verify share with it.

use std::path::PathBuf;

use clap::Args as Group;
use operate::tables::VerifyOptions;

use super::Connection;

/// `ripple verify`
#[derive(Debug, Group)]
pub(crate) struct Verify {
    /// The tables.
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// How it is verified.
    #[command(flatten)]
    pub(crate) verifying: Verifying,
    /// On the real AWS too, takes marks of a possible loss away when nothing is found, which writes to the ledger's table.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is verified, and how.
#[derive(Clone, Debug, Group)]
pub(crate) struct Verifying {
    /// Only these derivations, by name, with commas between; all where nothing is said.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) derivation: Vec<String>,
    /// Only items of these entities, and counts about them, with commas between; all where nothing is said.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) entity: Vec<String>,
    /// Only items, and counts about items, whose partition key begins so.
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) pk: String,
    /// Only items, and counts about items, of this sort key.
    #[arg(long, value_name = "KEY")]
    pub(crate) sk: Option<String>,
    /// Segments of the table that are read side by side.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) segments: u32,
    /// Most read units a second; as many as there are where nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) read_units: Option<u32>,
    /// Takes what differs for a finding at once: nobody writes, and no function has anything left to do.
    #[arg(long, conflicts_with = "iterator_age")]
    pub(crate) at_rest: bool,
    /// On the real AWS, the greatest iterator age that the functions reported lately, in seconds. Without it what differs
    /// is undecided there.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) iterator_age: Option<u64>,
    /// How long the functions are waited for, in seconds, before what differs is undecided.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,
    /// Keeps what was read in this file, and goes on from it where a verification was stopped.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
}

impl Verifying {
    /// As it is asked for.
    pub(crate) fn request(&self) -> VerifyOptions {
        let Self { derivation, entity, pk, sk, segments, read_units, at_rest, iterator_age, wait, resume } =
            self.clone();
        VerifyOptions { derivation, entity, pk, sk, segments, read_units, at_rest, iterator_age, wait, resume }
    }
}
