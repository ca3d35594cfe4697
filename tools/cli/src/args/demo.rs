//! The arguments of `ripple demo`.

use clap::{Args as Group, ValueEnum};
use engine::ledger::LedgerKind;
use serde::Serialize;

use super::{Readers, values};
use crate::exit::Usage;

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
