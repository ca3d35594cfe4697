//! Lets jobs begin that are due, and rings those that stand still: on a schedule, not on the stream.

use lambda_runtime::Error;
use runtime::{handler::Function, lambda};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda::run(Function::Sweep).await
}
