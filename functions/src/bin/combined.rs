//! Runs all derivations in one function, for a stream with a single free reader.

use std::process::ExitCode;

use functions::{handler::Function, lambda};

#[tokio::main]
async fn main() -> ExitCode {
    lambda::run(Function::Combined).await
}
