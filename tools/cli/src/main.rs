//! `ripple`: the service on a laptop, and the operator's tools.

mod args;
mod bar;
mod book;
mod capture;
mod caught_up;
mod commands;
mod embedded;
mod events;
mod exit;
mod lag;
mod lines;
mod listening;
mod mappings;
mod metered;
mod opened;
mod opening;
mod service;
mod tables;
mod words;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    commands::main().await
}
