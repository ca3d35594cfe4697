//! The commands.

mod audit;
mod catalogue;
mod check;
mod console;
mod cost;
mod demo;
mod design;
mod dev;
mod init;
mod jobs;
mod mcp;
mod parked;
mod preflight;
mod replay;
mod verify;
mod wait;
mod why;

use std::process::ExitCode;

use crate::{
    args::{Args, Command, Demo, values::parse},
    exit::{self, Completion},
};

/// Log level if `RUST_LOG` is not set. Warnings of the embedded database and of the credentials lookup are off, because
/// the command reports those problems itself.
const LOG_FILTER: &str = "warn,dynoxide=error,aws_config=error";

/// Log level for commands that print refused and parked changes themselves.
const QUIET_LOG_FILTER: &str = "warn,aws_config=error,engine=off";

/// Reads the arguments and runs the command.
pub(crate) async fn main() -> ExitCode {
    match parse() {
        Ok(args) => exit::code(run(args).await),
        Err(code) => code,
    }
}

async fn run(args: Args) -> anyhow::Result<Completion> {
    match args.command {
        None => Box::pin(demo::run(&defaults())).await,
        Some(Command::Demo(args)) => Box::pin(demo::run(&args)).await,
        Some(Command::Dev(args)) => Box::pin(dev::run(&args)).await,
        Some(Command::Verify(args)) => Box::pin(verify::run(&args)).await,
        Some(Command::Why(args)) => Box::pin(why::run(&args)).await,
        Some(Command::Console(args)) => Box::pin(console::run(&args)).await,
        Some(Command::Repair(args)) => Box::pin(verify::repair(&args)).await,
        Some(Command::Backfill(args)) => Box::pin(verify::backfill(&args)).await,
        Some(Command::Catalogue(args)) => Box::pin(catalogue::run(&args)).await,
        Some(Command::Preflight(args)) => Box::pin(preflight::run(&args)).await,
        Some(Command::Init(args)) => Box::pin(init::run(&args)).await,
        Some(Command::Audit(args)) => Box::pin(audit::run(&args)).await,
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Schema(args)) => check::schema(&args),
        Some(Command::Types(args)) => check::types(&args),
        Some(Command::Wait(args)) => Box::pin(wait::run(&args)).await,
        Some(Command::Completions(args)) => check::completions(&args),
        Some(Command::Man(args)) => check::man(&args),
        Some(Command::Explain(args)) => replay::explain(&args),
        Some(Command::Design(args)) => design::run(&args),
        Some(Command::Cost(args)) => Box::pin(cost::run(&args)).await,
        Some(Command::Rates(args)) => Box::pin(cost::measure(&args)).await,
        Some(Command::Infra(args)) => check::infra(&args),
        Some(Command::Parked(args)) => parked::run(&args).await,
        Some(Command::Redrive(args)) => Box::pin(parked::redrive_chosen(&args)).await,
        Some(Command::Jobs(args)) => Box::pin(jobs::run(&args)).await,
        Some(Command::Mcp(args)) => Box::pin(mcp::run(&args)).await,
        Some(Command::Replay(args)) => Box::pin(replay::run(&args)).await,
    }
}

/// The arguments of `ripple` without a command.
fn defaults() -> Demo {
    use clap::{Args as _, Command as Parser, FromArgMatches as _};
    let matches = Demo::augment_args(Parser::new("demo")).get_matches_from(["demo"]);
    Demo::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}
