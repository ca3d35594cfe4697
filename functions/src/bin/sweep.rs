//! Runs on a schedule instead of the stream: starts due jobs, checks the next slice of the table for drift, and deletes
//! counters of zero.

use std::process::ExitCode;

use functions::{handler::Function, lambda};
use mimalloc::MiMalloc;

/// A fifth of the instructions of a call were the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    lambda::run(Function::Sweep).await
}
