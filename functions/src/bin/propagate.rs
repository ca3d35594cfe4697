//! Keeps copies, mirrors and displays correct from the stream: the level-triggered derivations.

use std::process::ExitCode;

use functions::{handler::Function, lambda};

#[tokio::main]
async fn main() -> ExitCode {
    lambda::run(Function::Propagate).await
}
