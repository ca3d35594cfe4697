//! Keeps counters in step with the stream: the additive derivations.

use std::process::ExitCode;

use functions::{handler::Function, lambda};

#[tokio::main]
async fn main() -> ExitCode {
    lambda::run(Function::Aggregate).await
}
