//! Looks after jobs, verifies the next slice of the table again, and collects counters of zero: on a schedule, not on the
//! stream.

use lambda_runtime::Error;
use runtime::{handler::Function, lambda};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda::run(Function::Sweep).await
}
