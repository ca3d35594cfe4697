//! `ripple`: the service on a laptop, and the operator's tools.

mod args;
mod bar;
mod capture;
mod commands;
mod embedded;
mod exit;
mod lines;
mod opened;
mod service;
mod tables;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Replaces the system's allocator, which takes a quarter of a fan-out's time: the database and the SDK allocate for
/// each value of an item.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    commands::main().await
}
