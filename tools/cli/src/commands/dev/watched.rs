//! The manifest of a running `ripple dev`: a change of the file is a new version of the functions.

use std::{convert::Infallible, fs, future::pending, path::PathBuf, time::Duration};

use aws_sdk_dynamodb::types::TableDescription;
use clap::Parser as _;
use functions::{config::Config, declared::declared};

use super::{Declared, Start, command::arguments, options, unfilled};
use crate::{
    args::{Args, Command, Dev},
    commands::repair,
    events::Audience,
    exit::Completion,
    tables::counted,
};

/// Time between two looks at the file. A change counts if two looks find the same text, because some editors write a
/// file in several steps.
const POLL: Duration = Duration::from_millis(200);

/// Greatest number of items that are filled without being asked.
const ITEMS_MAX: u64 = 100_000;

/// The manifest's file.
pub(super) struct WatchedManifest {
    /// `None` if nothing is watched: the shipped table, functions of another process, or a command that ends.
    file: Option<PathBuf>,
    /// Its text when it was last read.
    seen: Option<Vec<u8>>,
    /// The text of the running functions' manifest.
    running: Option<Vec<u8>>,
}

impl WatchedManifest {
    /// The manifest before it is read.
    pub(super) fn of(args: &Dev) -> Self {
        let is_watched = args.functions.is_none() && args.command.is_empty();
        let file = args.manifest.config.clone().filter(|_| is_watched);
        let text = file.as_ref().and_then(|file| fs::read(file).ok());
        Self { file, running: text.clone(), seen: text }
    }

    /// Waits until the file has another valid manifest that the tables can have. Reports a wrong one.
    pub(super) async fn changed<F>(&mut self, args: &Dev, fits: impl Fn(Declared) -> F) -> Declared
    where
        F: Future<Output = anyhow::Result<Declared>>,
    {
        let Some(file) = &self.file else { return pending().await };
        let mut before = self.seen.clone();
        loop {
            tokio::time::sleep(POLL).await;
            let text = fs::read(file).ok();
            let is_new = text == before && text != self.seen;
            before = text;
            if !is_new {
                continue;
            }
            self.seen.clone_from(&before);
            if self.seen == self.running {
                continue;
            }
            let fitting = match declared(args.choice()) {
                Ok(declared) => fits(declared).await,
                Err(error) => Err(error.into()),
            };
            match fitting {
                Ok(declared) => {
                    self.running.clone_from(&self.seen);
                    return declared;
                }
                Err(error) => Audience::of(args.json)
                    .problem(&format!("ripple: {error:#}\n        the functions run as before the change")),
            }
        }
    }
}

/// Fills what a new version needs if the tables are small, and says so otherwise. It never ends, because the functions
/// run on.
pub(super) async fn fill(
    args: &Dev,
    (endpoint, config): (&str, &Config),
    tables: &[TableDescription],
    start: Start,
    to_fill: &[String],
) -> Infallible {
    if start == Start::First || to_fill.is_empty() {
        return pending().await;
    }
    let audience = Audience::of(args.json);
    let n_items: u64 = tables.iter().map(|table| counted(table.item_count())).sum();
    if n_items > ITEMS_MAX {
        audience.problem(&unfilled(to_fill, &options(args, endpoint)));
        return pending().await;
    }
    let tables = (&*config.table, &*config.ledger_table);
    let words = arguments(args, endpoint, tables, &["backfill", "--all", "--yes"]);
    let filled = match Args::try_parse_from(words) {
        Ok(Args { command: Some(Command::Backfill(backfill)) }) => Box::pin(repair::backfill(&backfill)).await,
        Ok(_) => Ok(Completion::InStep),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = filled {
        audience.problem(&format!("ripple: {error:#}\n        {}", unfilled(to_fill, &options(args, endpoint))));
    }
    pending().await
}
