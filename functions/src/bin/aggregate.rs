//! Keeps counters correct from the stream: the additive derivations.

use std::process::ExitCode;

use functions::{handler::Function, lambda};

#[tokio::main]
async fn main() -> ExitCode {
    lambda::run(Function::Aggregate).await
}
