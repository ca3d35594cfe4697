//! Looks after jobs, verifies the next slice of the table again, and collects counters of zero: on a schedule, not on the
//! stream.

use std::process::ExitCode;

use functions::{handler::Function, lambda};

#[tokio::main]
async fn main() -> ExitCode {
    lambda::run(Function::Sweep).await
}
