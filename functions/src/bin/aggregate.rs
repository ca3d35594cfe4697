//! Keeps counters correct from the stream: the additive derivations.

use std::process::ExitCode;

use functions::{handler::Function, lambda};
use mimalloc::MiMalloc;

/// A fifth of the instructions of a call were the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    lambda::run(Function::Aggregate).await
}
