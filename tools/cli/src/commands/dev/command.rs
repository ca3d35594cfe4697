//! Commands that run beside the service of `ripple dev`: the user's COMMAND, such as an application's tests, and those of
//! ripple itself, after COMMAND and after a change of the manifest.
//!
//! *Keeps true*: the exit code is that of COMMAND if it failed. If it succeeded, everything that it wrote is handled and
//! compared with its definition first, and a finding is exit code 3.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs,
    future::pending,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use aws_sdk_dynamodb::types::TableDescription;
use clap::Parser as _;
use functions::{
    config::{Config, DISABLED, TABLES},
    declared::declared,
};
use tokio::process::{Child, Command};

use crate::{
    args::{Args, Command as Subcommand, Dev, MANIFEST},
    commands::{
        dev::{Declared, Start, options, unfilled},
        verify,
    },
    exit::{Audience, Completion, Usage, report},
    opened::{ANY_CREDENTIALS, has_credentials},
    service::Service,
    tables::counted,
};

/// Exit code of a command that a signal ended, before the number of the signal is added: as a shell counts.
const SIGNALLED: i32 = 128;

/// The variables of a client of the database at this endpoint.
pub(super) fn variables(endpoint: &str, region: &str) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint.to_owned()),
        ("AWS_REGION", region.to_owned()),
        // The AWS command line and boto3 read this one.
        ("AWS_DEFAULT_REGION", region.to_owned()),
    ];
    if !has_credentials() {
        let any = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, ANY_CREDENTIALS.to_owned()));
        variables.extend(any);
    }
    variables
}

/// A running command. It ends with the service.
pub(super) struct ClientCommand {
    name: String,
    child: Child,
}

impl ClientCommand {
    /// Starts the command with these variables, and with those by which `ripple` commands find the manifest.
    pub(super) fn start(args: &Dev, variables: &[(&'static str, String)]) -> Result<Option<Self>, Usage> {
        let Some((program, arguments)) = args.command.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(config) = args.manifest.config.as_deref() {
            let absolute = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
            command.env(MANIFEST, absolute);
        }
        for (variable, names) in [(TABLES, &args.tables), (DISABLED, &args.disable)] {
            if !names.is_empty() {
                command.env(variable, names.join(","));
            }
        }
        let child = command.stdin(Stdio::inherit()).kill_on_drop(true).spawn();
        let child = child.map_err(|error| Usage(format!("cannot start the command {name}: {error}")))?;
        Ok(Some(Self { name, child }))
    }

    /// Waits until the command ends, and returns its exit code.
    pub(super) async fn ended(&mut self) -> anyhow::Result<u8> {
        let code = code(self.child.wait().await?);
        if code != 0 {
            report(&format!("ripple: {} ended with {code}", self.name));
        }
        Ok(code)
    }
}

/// Waits for the command, or for ever without one.
pub(super) async fn ended(command: &mut Option<ClientCommand>) -> anyhow::Result<u8> {
    match command {
        Some(command) => command.ended().await,
        None => std::future::pending().await,
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED.saturating_add(signal)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Waits until everything is handled, compares it with its definition, as `ripple verify` does, and stops the service.
/// Returns the exit code of the whole.
pub(super) async fn verified(
    args: &Dev,
    endpoint: &str,
    (table, ledger_table): (&str, &str),
    mut service: Service,
    code: u8,
) -> anyhow::Result<Completion> {
    service.quiet().await?;
    let words = arguments(args, endpoint, (table, ledger_table), &["verify"]);
    let Args { command: Some(Subcommand::Verify(verify)) } = Args::try_parse_from(words)? else {
        return Ok(Completion::Command(code));
    };
    let completion = Box::pin(verify::run(&verify)).await;
    service.stop().await?;
    let completion = completion?;
    Ok(if code == 0 { completion } else { Completion::Command(code) })
}

/// The arguments of another command of ripple about the same tables.
pub(super) fn arguments(
    args: &Dev,
    endpoint: &str,
    (table, ledger_table): (&str, &str),
    command: &[&str],
) -> Vec<OsString> {
    let options = ["--endpoint", endpoint, "--region", &args.region, "--table", table, "--ledger-table", ledger_table];
    let words = ["ripple"].iter().chain(command).chain(&options);
    let mut words: Vec<OsString> = words.map(OsString::from).collect();
    if let Some(config) = &args.manifest.config {
        words.extend([OsString::from("--config"), config.clone().into_os_string()]);
    }
    for (option, names) in [("--tables", &args.tables), ("--disable", &args.disable)] {
        if !names.is_empty() {
            words.extend([OsString::from(option), OsString::from(names.join(","))]);
        }
    }
    words
}

// ---- The manifest of a running `ripple dev`: a change of the file is a new version of the functions ----

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
        Ok(Args { command: Some(Subcommand::Backfill(backfill)) }) => Box::pin(verify::backfill(&backfill)).await,
        Ok(_) => Ok(Completion::InStep),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = filled {
        audience.problem(&format!("ripple: {error:#}\n        {}", unfilled(to_fill, &options(args, endpoint))));
    }
    pending().await
}
